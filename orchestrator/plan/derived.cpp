// derived: the closed list of derived figures.
#include "orchestrator/plan/derived.h"

#include <algorithm>

namespace assay::plan {
namespace {

constexpr std::string_view kMemoryRate[] = {"memory_rate"};
constexpr std::string_view kMemoryFitted[] = {"memory_fitted"};
constexpr std::string_view kLinkRate[] = {"link_rate_max"};
constexpr std::string_view kBaseClock[] = {"base_clock_hz", "flop_per_cycle", "threads"};
constexpr std::string_view kPath[] = {"link_speed_max"};
constexpr std::string_view kPayload[] = {"payload_limit"};
constexpr std::string_view kWire[] = {"wire_rate"};
constexpr std::string_view kDrive[] = {"rotational"};
constexpr std::string_view kRatedBandwidth[] = {"rated_read_bandwidth"};
constexpr std::string_view kRatedLatency[] = {"rated_read_latency_s"};

constexpr DerivedFigure kFigures[] = {
    {.name = "memory_rate",
     .unit = "B/s",
     .from = DerivedFrom::inventory,
     .parts = kMemoryRate,
     .meaning = "transfers a second of the memory modules times 8 B, summed over the channels (SMBIOS)"},
    {.name = "memory_fitted",
     .unit = "B",
     .from = DerivedFrom::inventory,
     .parts = kMemoryFitted,
     .meaning = "summed capacity of the memory modules (SMBIOS)"},
    {.name = "link_rate_max",
     .unit = "B/s",
     .from = DerivedFrom::metric,
     .parts = kLinkRate,
     .meaning = "the fastest mode that the port and its driver support"},
    {.name = "compute_at_base_clock",
     .unit = "FLOP/s",
     .from = DerivedFrom::conditions,
     .parts = kBaseClock,
     .meaning = "threads times the FLOPs that a core does in a cycle times the processor's base clock"},
    {.name = "tcp_rate",
     .unit = "B/s",
     .from = DerivedFrom::conditions,
     .parts = kPath,
     .meaning = "the fastest mode of the slower of the ports, at most the 100 Gb/s that a few streams reach"},
    {.name = "rdma_rate",
     .unit = "B/s",
     .from = DerivedFrom::conditions,
     .parts = kPayload,
     .meaning = "largest payload rate of the slower of the ports, by its fastest mode where it tells it"},
    {.name = "wire_rate",
     .unit = "B/s",
     .from = DerivedFrom::metric,
     .parts = kWire,
     .meaning = "bus bandwidth at which the first network adapter is at its line rate, by NCCL's rings"},
    {.name = "drive_patience",
     .unit = "s",
     .from = DerivedFrom::conditions,
     .parts = kDrive,
     .meaning = "50 ms for a drive with moving parts, 2 ms for one without"},
    {.name = "rated_read_bandwidth",
     .unit = "B/s",
     .from = DerivedFrom::conditions,
     .parts = kRatedBandwidth,
     .meaning = "bandwidth that the firmware rates the memory node at (ACPI HMAT)"},
    {.name = "rated_read_latency",
     .unit = "s",
     .from = DerivedFrom::conditions,
     .parts = kRatedLatency,
     .meaning = "latency that the firmware rates the memory node at (ACPI HMAT)"},
};

}  // namespace

std::span<const DerivedFigure> derived_figures() { return kFigures; }

const DerivedFigure* derived_figure(std::string_view name) {
  const auto found = std::ranges::find(kFigures, name, &DerivedFigure::name);
  return found == std::end(kFigures) ? nullptr : found;
}

}  // namespace assay::plan
