// link_counters: names are those of Documentation/ABI/testing/sysfs-class-net, Documentation/ABI/stable/
// sysfs-class-infiniband, drivers/net/ethernet/mellanox/mlx5/core/en_stats.c and broadcom/bnxt/bnxt_ethtool.c.
#include "probes/health/link_counters.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "probes/core/machine_tree.h"

namespace assay::health {
namespace {

std::optional<double> first_of(NamedCounters named, std::initializer_list<std::string_view> names) {
  for (const auto name : names) {
    const auto found = std::ranges::find(named, name, &std::pair<std::string, std::int64_t>::first);
    if (found != named.end() && found->second >= 0) return static_cast<double>(found->second);
  }
  return std::nullopt;
}

/// How often the carrier went; older kernels count going and coming together.
std::optional<double> carrier_losses(const MachineTree& tree, const std::string& directory) {
  if (const auto downs = tree.number(directory + "/carrier_down_count")) return static_cast<double>(*downs);
  const auto changes = tree.number(directory + "/carrier_changes");
  if (!changes) return std::nullopt;
  const std::int64_t losses = *changes / 2;
  return static_cast<double>(losses);
}

void read_corrections(NamedCounters named, const FecStatistics& fec, LinkCounters& link) {
  const auto number = [](const std::optional<std::uint64_t>& value) {
    return value ? std::optional(static_cast<double>(*value)) : std::nullopt;
  };
  auto bits = number(fec.corrected_bits);
  if (!bits) bits = first_of(named, {"rx_corrected_bits_phy", "rx_corrected_bits"});
  auto blocks = number(fec.corrected_blocks);
  if (!blocks) blocks = first_of(named, {"rx_fec_corrected_blocks"});
  link.corrects_bits = bits.has_value();
  link.corrected = bits ? bits : blocks;
  constexpr int kMostLanes = 16;
  for (int lane = 0; lane < kMostLanes; ++lane) {
    const auto value = first_of(named, {fmt::format("rx_err_lane_{}_phy", lane)});
    if (!value) break;
    link.corrected_by_lane.push_back(*value);
  }
  if (link.corrected_by_lane.empty())
    link.corrected_by_lane.assign(fec.corrected_by_lane.begin(), fec.corrected_by_lane.end());
}

}  // namespace

LinkCounters read_link_counters(const MachineTree& tree, const std::string& interface, NamedCounters named,
                                const FecStatistics& fec) {
  const std::string directory = "sys/class/net/" + interface;
  LinkCounters link;
  const auto put = [&](std::string_view name, std::optional<double> value) {
    if (value) link.totals[name] = *value;
  };
  put("carrier_losses", carrier_losses(tree, directory));
  const auto crc = tree.number(directory + "/statistics/rx_crc_errors");
  put("crc_errors", crc ? std::optional(static_cast<double>(*crc)) : std::nullopt);
  put("pcs_symbol_errors", first_of(named, {"rx_pcs_symbol_err_phy", "rx_pcs_symbol_err"}));
  auto lost = first_of(named, {"rx_fec_uncorrectable_blocks"});
  if (fec.uncorrectable_blocks) lost = static_cast<double>(*fec.uncorrectable_blocks);
  put("fec_uncorrectable", lost);
  read_corrections(named, fec, link);
  return link;
}

std::map<std::string, LinkCounters> read_rdma_counters(const MachineTree& tree) {
  static constexpr std::array<std::pair<std::string_view, const char*>, 7> kFiles = {{
      {"symbol_errors", "counters/symbol_error"},
      {"link_recoveries", "counters/link_error_recovery"},
      {"link_downed", "counters/link_downed"},
      {"receive_errors", "counters/port_rcv_errors"},
      {"link_integrity_errors", "counters/local_link_integrity_errors"},
      {"buffer_overruns", "counters/excessive_buffer_overrun_errors"},
      {"rnr_retries", "hw_counters/rnr_nak_retry_err"},
  }};
  std::map<std::string, LinkCounters> ports;
  for (const auto& device : tree.names("sys/class/infiniband")) {
    for (const auto& port : tree.names(fmt::format("sys/class/infiniband/{}/ports", device))) {
      LinkCounters& link = ports[device + "/" + port];
      for (const auto& [name, file] : kFiles) {
        if (const auto value = tree.number(fmt::format("sys/class/infiniband/{}/ports/{}/{}", device, port, file)))
          link.totals[name] = static_cast<double>(*value);
      }
    }
  }
  return ports;
}

}  // namespace assay::health
