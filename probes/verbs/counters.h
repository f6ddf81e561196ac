// counters: a port's counters before and after, and the meaning of their difference.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "probes/core/probe.h"

namespace assay {
class MachineTree;
class Recorder;
}  // namespace assay

namespace assay::verbs {

struct PortFacts;

/// Counters by name, sorted. One that the port does not have, or does not report, is not in it; it is never 0 for that.
/// Names are those of the kernel: "symbol_error" and "out_of_sequence" from the port's counters and hw_counters, with
/// "net." before those of its network interface (ethtool's and the interface's own) that concern the link, not one
/// queue.
using Counters = std::map<std::string, std::int64_t>;

/// Everything the port counts now. Counters of the network interface's driver (ETHTOOL_GSTATS) are asked of the kernel
/// only when `tree` is this machine.
Counters read_counters(const MachineTree& tree, const PortFacts& port);

/// after - before for every counter that is in both; negative when it was reset in between.
Counters change_of(const Counters& before, const Counters& after);

/// The meaning of a group of counters.
struct CounterGroup {
  std::string_view name;                      ///< of the condition
  std::span<const std::string_view> members;  ///< names; each `*` matches any text
};

/// The groups, in the order of their conditions: retransmits, link_errors, discards, pauses, congestion_marks.
std::span<const CounterGroup> counter_groups();

/// Sum of the members of `group` in `change`; nothing if it has none of them.
std::optional<std::int64_t> sum_of(const CounterGroup& group, const Counters& change);

/// "name=1 other=2", counters that are 0 left out; "none" when nothing is left.
std::string counter_words(const Counters& counters);

/// The conditions that record_counters() writes, for a spec.
inline constexpr ConditionSpec kCounterConditions[] = {
    if_occurred("counters_before",
                "counters of this rank's port before the measurement that are not 0, where it has any"),
    if_occurred("counters_after", "the same after the measurement, where it has any"),
    if_occurred("counters_changed", "their differences that are not 0, where it has any"),
    {.name = "counters_read", .meaning = "how many counters the port reports"},
    if_present("retransmits",
               "change of the counters of lost, repeated and out-of-order packets, timeouts and retries, where the "
               "port has one"),
    if_present(
        "link_errors",
        "change of the counters of symbol, FEC and other receive errors and of link downs, where the port has one"),
    if_present("discards", "change of the counters of packets dropped for want of buffers, where the port has one"),
    if_present(
        "pauses",
        "change of the counters of PFC and global pause frames and of waiting for credit, where the port has one"),
    if_present("congestion_marks", "change of the counters of ECN marks and CNPs, where the port has one"),
    {.name = "counters_reset", .meaning = "whether a counter ran backwards during the measurement"},
};

/// Records the conditions about one rank's port. A counter group of which the port has no member is left out.
void record_counters(Recorder& record, const Counters& before, const Counters& after);

}  // namespace assay::verbs
