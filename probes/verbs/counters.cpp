// counters: names differ between drivers; the groups list those of mlx5, mlx4, bnxt_re, irdma, hns, rxe and the
// InfiniBand Architecture's own PortCounters.
#include "probes/verbs/counters.h"

#include <algorithm>

#include <fmt/format.h>

#include "probes/core/machine_tree.h"
#include "probes/core/recorder.h"
#include "probes/health/ethtool_netlink.h"
#include "probes/verbs/port_facts.h"

namespace assay::verbs {
namespace {

// Documentation/infiniband, the mlx5 counter pages of NVIDIA's driver documentation,
// drivers/infiniband/sw/rxe/rxe_hw_counters.c.
constexpr std::string_view kRetransmits[] = {
    "out_of_sequence",    "packet_seq_err",      "local_ack_timeout_err", "implied_nak_seq_err", "rnr_nak_retry_err",
    "duplicate_request",  "roce_adp_retrans",    "roce_adp_retrans_to",   "roce_slow_restart",   "rcvd_seq_err",
    "out_of_seq_request", "completer_retry_err", "retry_exceeded_err",    "to_retransmits",      "seq_err_naks_rcvd",
    "max_retry_exceeded", "rnr_naks_rcvd",       "missing_resp",          "retransSegs"};
constexpr std::string_view kLinkErrors[] = {"symbol_error",
                                            "link_error_recovery",
                                            "link_downed",
                                            "port_rcv_errors",
                                            "port_rcv_remote_physical_errors",
                                            "local_link_integrity_errors",
                                            "excessive_buffer_overrun_errors",
                                            "rx_icrc_encapsulated",
                                            "net.rx_crc_errors",
                                            "net.rx_crc_errors_phy",
                                            "net.rx_symbol_err_phy",
                                            "net.rx_pcs_symbol_err_phy",
                                            "net.rx_fec_uncorrectable*",
                                            "net.link_down_events_phy",
                                            "net.fec_uncorrectable*"};
constexpr std::string_view kDiscards[] = {"port_xmit_discards",   "out_of_buffer",        "VL15_dropped",
                                          "rx_discards",          "net.rx_discards_phy",  "net.tx_discards_phy",
                                          "net.rx_out_of_buffer", "net.rx_prio*_discard", "net.rx_prio*_buf_discard"};
constexpr std::string_view kPauses[] = {"port_xmit_wait",     "net.rx_pause*",      "net.tx_pause*",
                                        "net.rx_prio*_pause", "net.tx_prio*_pause", "net.rx_global_pause",
                                        "net.tx_global_pause"};
constexpr std::string_view kCongestionMarks[] = {
    "np_ecn_marked_roce_packets", "np_cnp_sent", "rp_cnp_handled", "rp_cnp_ignored", "port_xmit_ecn*",
    "rx_ecn_marked_pkts",         "rx_cnp_pkts", "tx_cnp_pkts"};
constexpr CounterGroup kGroups[] = {
    {.name = "retransmits", .members = kRetransmits},
    {.name = "link_errors", .members = kLinkErrors},
    {.name = "discards", .members = kDiscards},
    {.name = "pauses", .members = kPauses},
    {.name = "congestion_marks", .members = kCongestionMarks},
};

/// Whether `name` is `pattern`, in which each '*' matches any text.
bool fits(std::string_view pattern, std::string_view name) {
  const auto star = pattern.find('*');
  if (star == std::string_view::npos) return pattern == name;
  if (!name.starts_with(pattern.substr(0, star))) return false;
  const auto rest = pattern.substr(star + 1);
  for (std::size_t skip = star; skip <= name.size(); ++skip) {
    if (fits(rest, name.substr(skip))) return true;
  }
  return false;
}

/// Whether a counter of a network interface says something of the link. Drivers keep thousands for each queue that do
/// not.
bool tells_of_link(std::string_view name) {
  constexpr std::string_view kWords[] = {"err",    "drop", "discard", "pause",  "ecn",     "cnp",          "fec",
                                         "symbol", "crc",  "phy",     "missed", "carrier", "out_of_buffer"};
  if (name.find("queue_") != std::string_view::npos) return false;
  return std::ranges::any_of(kWords, [&](std::string_view word) { return name.find(word) != std::string_view::npos; });
}

void add_directory(const MachineTree& tree, const std::string& directory, std::string_view prefix, Counters& counters) {
  for (const auto& name : tree.names(directory)) {
    if (name == "lifespan") continue;  // how long the kernel caches the others, ms
    if (const auto value = tree.number(directory + "/" + name))
      counters.emplace(fmt::format("{}{}", prefix, name), *value);
  }
}

}  // namespace

std::span<const CounterGroup> counter_groups() { return kGroups; }

Counters read_counters(const MachineTree& tree, const PortFacts& port) {
  Counters counters;
  const std::string directory = fmt::format("sys/class/infiniband/{}/ports/{}", port.device, port.port);
  add_directory(tree, directory + "/counters", "", counters);
  add_directory(tree, directory + "/hw_counters", "", counters);
  if (port.interface.empty()) return counters;
  if (tree.is_this_machine()) {
    for (const auto& [name, value] : health::ethtool_counters(port.interface)) counters.emplace("net." + name, value);
  }
  add_directory(tree, fmt::format("sys/class/net/{}/statistics", port.interface), "net.", counters);
  std::erase_if(counters,
                [](const auto& counter) { return counter.first.starts_with("net.") && !tells_of_link(counter.first); });
  return counters;
}

Counters change_of(const Counters& before, const Counters& after) {
  Counters change;
  for (const auto& [name, value] : after) {
    if (const auto first = before.find(name); first != before.end()) change.emplace(name, value - first->second);
  }
  return change;
}

std::optional<std::int64_t> sum_of(const CounterGroup& group, const Counters& change) {
  std::optional<std::int64_t> sum;
  for (const auto& [name, value] : change) {
    if (std::ranges::any_of(group.members, [&](std::string_view member) { return fits(member, name); }))
      sum = sum.value_or(0) + value;
  }
  return sum;
}

std::string counter_words(const Counters& counters) {
  std::string text;
  for (const auto& [name, value] : counters) {
    if (value != 0) text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, value);
  }
  return text.empty() ? "none" : text;
}

void record_counters(Recorder& record, const Counters& before, const Counters& after) {
  const Counters change = change_of(before, after);
  record.condition("counters_read", static_cast<std::int64_t>(change.size()));
  if (change.empty()) return;
  record.condition("counters_before", counter_words(before));
  record.condition("counters_after", counter_words(after));
  record.condition("counters_changed", counter_words(change));
  record.condition("counters_reset",
                   std::ranges::any_of(change, [](const auto& counter) { return counter.second < 0; }));
  for (const auto& group : kGroups) {
    if (const auto sum = sum_of(group, change)) record.condition(group.name, *sum);
  }
}

}  // namespace assay::verbs
