// hardware_hbm_bandwidth: cuda_hbm_bandwidth on a real GPU keeps its contract.
#include "tests/hardware/link_claims.h"

namespace assay {
namespace {

/// No GPU known to date has memory beyond 8 TB/s (B200, GB200; NVIDIA's data sheets). 1.2 times that is a wrong unit or
/// a cache.
constexpr double kBeyond = 1.2 * 8e12;
/// Data moves on both edges of the memory clock that the runtime tells, on every bus of HBM; 5 % for a boosted clock.
constexpr double kEdges = 2, kMargin = 1.05, kBitsOfByte = 8;

/// Rate of the memory bus of `gpu` by the device's own attributes, in B/s; nothing when it does not tell them.
std::optional<double> bus_rate(const Record& record, const Subject& gpu) {
  const auto clock = value_of(record, "memory_clock_hz", gpu), bits = value_of(record, "memory_bus_bits", gpu);
  if (!clock || !bits) return std::nullopt;
  return kEdges * std::get<double>(*clock) * static_cast<double>(std::get<std::int64_t>(*bits)) / kBitsOfByte;
}

void expect_within_bus(const Record& record, const std::string& metric, Claims& claims) {
  for (const Subject& gpu : subjects_of(record, metric)) {
    const auto rate = bus_rate(record, gpu);
    const auto samples = samples_of(record, metric, gpu);
    claims.expect(!rate || std::ranges::max(samples) < kMargin * *rate,
                  metric + " is within the memory bus of " + gpu.id);
  }
}

void expect_slices(const Record& record, Claims& claims) {
  std::size_t counted = 0;
  for (const auto& measurement : record.measurements) counted += measurement.metric == "slice_bandwidth" ? 1 : 0;
  std::int64_t planned = 0;
  for (const auto& condition : record.conditions) {
    if (condition.name == "slices") planned += std::get<std::int64_t>(condition.value);
  }
  claims.expect(planned > 0 && counted == static_cast<std::size_t>(planned), "every slice was measured");
  const auto worst = all_samples(record, "slice_worst");
  claims.expect(!worst.empty() && std::ranges::all_of(worst, [](double share) { return share > 0 && share <= 1; }),
                "the slowest slice is no faster than the median");
  expect_share(record, "slice_coverage", claims);
  for (const char* share : {"detects_stuck_share", "detects_single_bit_low", "detects_burst_low",
                            "detects_warp_aligned_low", "detects_rare_stuck_low"})
    expect_share(record, share, claims);
}

void test(const std::string& folder, Claims& claims) {
  for (const char* schedule : {"one_by_one", "together"}) {
    const auto record =
        claims.measured(folder + "/cuda_hbm_bandwidth", {"--quick", "--passes", "1", "--schedule", schedule});
    if (!record) continue;
    for (const char* kernel : {"read", "write", "copy", "scale", "add", "triad", "dot"}) {
      expect_below(*record, std::string(kernel) + "_bandwidth", kBeyond, claims);
      expect_within_bus(*record, std::string(kernel) + "_bandwidth", claims);
    }
    expect_slices(*record, claims);
    expect_no_mismatches(*record, subjects_of(*record, "read_bandwidth").size(), claims);
  }
}

}  // namespace
}  // namespace assay

int main(int argc, char** argv) { return assay::hardware_main(argc, argv, assay::test); }
