// condition_words: the table of sentences and remedies for each condition, and the wording of bounds.
#include "orchestrator/judge/cells/condition_words.h"

#include <algorithm>
#include <cctype>
#include <span>

#include <fmt/format.h>

#include "probes/core/json_io.h"
#include "probes/core/scale.h"

namespace assay::judge {
namespace {

/// The text for one condition. `{}` in `seen` is the value; without it the sentence names the fault. `unit` is a base
/// unit, "%" for shares, "" for words and counts.
struct ConditionWords {
  std::string_view name, unit, seen;
  std::string_view remedy = "";  ///< how to measure without it; empty: the table of actions says what to do
};

constexpr std::string_view kPutFaults =
    "where slice_coverage is low, free memory of the GPU; where it is not, the check does not work: take the GPU out";
constexpr std::string_view kDrive = "name a directory on a local file system that can do direct I/O, with --directory";
constexpr std::string_view kPort = "check the cable and the counters of both ports, then run again";

constexpr ConditionWords kWords[] = {
    {"off_cpu_share", "%", "{} of the time a thread was off its CPU", "other work ran; stop it and run again"},
    {"cpu_load_by_others", "%", "{} of the CPUs' time went to other processes", "stop them and run again"},
    {"cpu_steal", "%", "{} of the CPUs' time went to other virtual machines",
     "stop them on its host, or move it, and run again"},
    {"clock_synchronised", "", "the clock of the node follows no time source",
     "start a time service there, such as chrony"},
    {"pinned", "", "not every thread could be bound to one CPU",
     "allow it all CPUs of the node (cpuset, container) and run again"},
    {"huge_page_share", "%", "huge pages backed {} of the memory",
     "enable transparent huge pages, free memory, and run again"},
    {"bare_metal", "", "a hypervisor shows the memory, which may be emulated",
     "measure on the machine itself; in a guest only the nodes and policies are shown, no speed"},
    {"misplaced_pages", "", "{} pages were on another memory node than asked for",
     "free memory of that node and run again"},
    {"local_misplaced_pages", "", "{} pages of the local memory were on another node",
     "free memory of every node and run again"},
    {"non_temporal_stores", "", "results went through the caches",
     "this CPU has no kernels without them; leave the figure out"},
    {"driver_version", "", "the driver states the version {}",
     "install the driver of the GPUs that the profile is for"},
    {"credential", "", "the key that signs for the TPM is not bound to its endorsement key ({})",
     "run again; if it stays so, the keys are of two TPMs, or the TPM has no RSA endorsement key of the standard "
     "template"},
    {"attested", "", "{} of the GPUs gave an attestation report",
     "the record names each of the others with NVML's words: turn confidential computing on for every GPU"},
    {"meter_doubts", "", "what the BMC or the energy counters told is doubtful ({})",
     "compare the BMC with another meter, update its firmware, or leave the figure out"},
    {"feed_restored", "", "the feed did not come back while the load was held",
     "give it back before the load ends, then run again"},
    {"steady", "", "temperatures, clocks and power had not stopped moving in time",
     "raise time_cap, or keep the inlet steady, then run again"},
    {"cap_reached", "", "the load stayed below the limit, and shows nothing of it",
     "give it a heavier load, then run again"},
    {"event_seen", "", "no feed that carried a load lost it",
     "take one feed away while the load is held, then run again"},
    {"nodes_unseen", "", "{} have no meter by themselves",
     "name the outlets of every node in the site, or read its BMC"},
    {"weather_metered", "", "dry and wet bulb outside were not read",
     "give the site a meter with outdoor_dry_bulb and outdoor_wet_bulb"},
    {"accuracy_bound", "%", "the worst of its meters is accurate to {}",
     "meter the rack by an instrument of a better class, and name its data sheet in the site"},
    {"levels_reached", "", "idle and the two loads lie less than a tenth of the highest power apart",
     "stop what else runs on the node, then run again"},
    {"window_s", "s", "each window lasted {}", "leave the window at a minute: --quick accepts nothing"},
    {"handles", "", "memory was shared by handles of kind {}",
     "register the GPUs with the fabric of the rack, as handles_reason explains, then run again"},
    {"engine", "", "the engine was {}", "measure with the engine that the profile names"},
    {"processes_per_gpu", "", "{} processes shared a GPU", "leave processes_per_gpu at 1"},
    {"gpu_path", "", "the adapter's way to the GPU's memory was {}", "leave gpu_path at direct"},
    {"gpus_per_tray", "", "{} GPUs of a tray took part", "make all GPUs of every tray visible, then run again"},
    {"ranks", "", "{} ranks took part", "give the step as many GPUs as the limit is of"},
    {"job_s", "s", "the load lasted {}", "let it run as long as the profile demands"},
    {"detects_stuck_share", "%", "a stuck bit would have been seen in {} of the memory",
     "free memory of the GPU, then run again"},
    {"detects_single_bit_low", "%", "of single wrong bits in an hour {} are found for certain", kPutFaults},
    {"detects_burst_low", "%", "of bursts of wrong bits in an hour {} are found for certain", kPutFaults},
    {"detects_warp_aligned_low", "%", "of bits wrong in all lanes of a warp in an hour {} are found for certain",
     kPutFaults},
    {"walk_patterns", "", "only {} patterns were written", "leave passes as the profile has them"},
    {"links_known", "", "not every GPU reported the states of its NVLinks", "update the driver, then run again"},
    {"together", "", "the ranks did not work at the same time", "stop other work on the trays, then run again"},
    {"direct_io", "", "the page cache took part", kDrive},
    {"rate_ratio", "", "the rate that fio reported was {} times the one of the bytes and I/Os that it counted",
     "compare fio_sha256 of the record with fio of the node's distribution: another program may run in its place"},
    {"resident_pages", "", "{} pages of the test files were in the page cache", kDrive},
    {"read_by_other_node", "", "a machine read what it had written itself",
     "give the probe one rank on each of two or more machines (clients=nodes)"},
    {"cold_rung", "", "that the storage was read, and no cache of the readers, is proved to rung {} alone",
     "read on other machines than wrote, from a file system that lets its page cache be asked and dropped"},
    {"served_by", "", "files were restored from {}",
     "name the tiers that are to serve (tiers, lost); where a nearer copy was not valid the notes of the record name "
     "it"},
    {"interrupted", "", "no fault came while the nodes wrote, so nothing was put to the test",
     "kill a server of the storage, take a drive away or cut its power while the probe runs, and say so in state"},
    {"preloaded", "", "the loader was told to load {} first, which can replace calls of the probe",
     "unset LD_PRELOAD and empty /etc/ld.so.preload on the node"},
    {"nvml", "", "NVML did not answer", "install the NVIDIA driver with libnvidia-ml on the node"},
    {"amd_smi", "", "AMD SMI did not answer", "install the driver amdgpu and AMD SMI of ROCm 7.0 or newer on the node"},
    {"other_processes", "", "{} other processes were on the GPU",
     "stop them (`nvidia-smi` or `amd-smi process` lists them) and run again"},
    {"throttle_hw_thermal_s", "s", "hardware lowered the clocks for temperature during {}"},
    {"throttle_sw_thermal_s", "s", "software lowered the clocks for temperature during {}"},
    {"throttle_thermal_s", "s", "the clocks were lowered for temperature during {}"},
    {"throttle_power_brake_s", "s", "an outside signal lowered the clocks during {}"},
    {"throttle_power_cap_s", "s", "the power limit lowered the clocks during {}"},
    {"thermal_violations_delta", "", "in {} readings heat had lowered the clocks"},
    {"temperature_max_c", "", "the GPU reached {} °C"},
    {"power_mean_w", "W", "the GPU drew {} on average", "it was not under full load: check its power limit and clocks"},
    {"power_limit_w", "W", "the power limit was {}"},
    {"ecc_uncorrected_delta", "", "{} uncorrected memory errors occurred"},
    {"ecc_corrected_delta", "", "{} corrected memory errors occurred"},
    {"ecc_mode", "", "ECC of the GPU's memory is off"},
    {"mig_mode", "", "the GPU is partitioned", "switch MIG off (`nvidia-smi -mig 0`)"},
    {"compute_partition", "", "the GPU's partition is {}",
     "set the one that the profile names (`amd-smi set --compute-partition`), and run again"},
    {"memory_partition", "", "the partition of the GPU's memory is {}",
     "set the one that the profile names (`amd-smi set --memory-partition`), and run again"},
    {"mig", "", "a part of a GPU was measured", "switch MIG off (`nvidia-smi -mig 0`)"},
    {"fabric_state", "", "the GPU's state in its NVLink fabric was {}"},
    {"recovery_action", "", "the driver asks for {} to recover the GPU"},
    {"gpu_errors_delta", "", "the GPUs of the node counted {} errors",
     "health_gpu or health_amd and the kernel log say which"},
    {"link_contradictions", "", "{} answers of the driver about the GPU's links contradict each other",
     "`link_contradiction_names` in the record says which; compare with `nvidia-smi nvlink -s`"},
    {"nvlink_errors_delta", "", "NVLinks counted {} errors"},
    {"remapped_rows_delta", "", "{} memory rows were replaced or wait for it"},
    {"xid_events_delta", "", "the driver reported {} errors (Xid) of the GPU"},
    {"sm_clock_drift", "%", "at the end the SM clock was at {} of what it was before",
     "it had not settled: measure longer, and check cooling and power limit"},
    {"watch_s", "s", "the GPU was watched for {}",
     "measure longer: leave --quick out, or raise `time_limit` and `max_samples`"},
    {"gpudirect", "", "not every transport read and wrote the GPUs' memory itself",
     "check GPUDirect RDMA: the driver's peer memory module or DMA-BUF"},
    {"payload_limit_of", "", "what the ports could carry is known by their {} alone",
     "use adapters and drivers that list their link modes, or a profile with a rate in B/s"},
    {"pcie_replays_delta", "", "PCIe replayed {} packets"},
    {"pcie_generation_min", "", "the link ran at PCIe generation {}"},
    {"pcie_width_min", "", "the link ran with {} PCIe lanes"},
    {"overlap", "%", "all took part at the same time during {} of a sample",
     "stop other work on the node and run again"},
    {"slice_coverage", "%", "{} of the GPU's memory could be tested",
     "stop what holds the rest (`nvidia-smi` lists it)"},
    {"peer_access", "", "the GPUs reached each other by {}",
     "check the links between them (`nvidia-smi topo -m`, `amd-smi topology`) and the fabric manager"},
    {"path", "", "the payload went through {}", "check the addresses in the site file, and peer access between GPUs"},
    {"transport", "", "the transport was {}", "check the GID index and the mode of the port"},
    {"fabric", "", "the payload crossed the network by {}",
     "check the adapters' driver, GPUDirect RDMA and the NCCL_* settings"},
    {"algorithm", "", "the algorithm was {}", "check the NCCL_* settings of the nodes"},
    {"data", "", "the operands were {}", "correct the parameters of the requirement"},
    {"fast_accumulation", "", "products were accumulated in full precision",
     "correct the parameters of the requirement"},
    {"gpus_per_node", "", "{} GPUs of each node took part", "check that every GPU is there and not partitioned"},
    {"ranks_per_node", "", "{} ranks ran on each node", "correct the parameters of the requirement"},
    {"nodes", "", "{} nodes took part", "check the nodes that did not"},
    {"retransmits", "", "the port repeated or lost {} packets", kPort},
    {"segments_retransmitted", "", "{} segments were sent again", kPort},
    {"link_errors", "", "the port counted {} link errors"},
    {"discards", "", "{} packets were dropped for want of buffers",
     "check flow control (PFC, ECN) of hosts and switches"},
    {"pauses", "", "the port counted {} pause frames", "check flow control (PFC, ECN) of hosts and switches"},
    {"congestion_marks", "", "the port counted {} congestion marks", "stop other traffic and run again"},
    {"refresh_s", "s", "the switch refreshes its counters every {}",
     "a count may be of before the load; shorten the period of the switch's SNMP counters"},
    {"counters_reset", "", "a counter of the port ran backwards", "the port was reset; run again"},
    {"port_unchanged", "", "the port's state or rate changed during the measurement", kPort},
    {"cpus_bound", "", "the thread could not stay on the CPUs next to the adapter",
     "allow it those CPUs and run again"},
    {"kernel_log_whole", "", "the kernel log does not begin at boot",
     "events may be missing from it; enlarge the log and reboot"},
    {"launch_excluded", "", "the launch of a batch is in its time", "stop other work on the node and run again"},
    {"tried", "", "the same attempt by a node of the path's own tenant ended in {}",
     "see that the service runs, and that the site has its address"},
    {"own_mark", "", "the process that wrote the mark found it {} in its own memory",
     "see the record: without its own mark nothing says that another's would be found"},
    {"outcome", "", "the outcome of the attempt was {}",
     "see `evidence` in the record: the node has no way to the address, or the service answers neither yes nor no"},
    {"offloaded_share", "%", "the adapter's hardware forwarded {} of the traffic",
     "switch hardware offload on (for Open vSwitch other_config:hw-offload=true) and look for flows that are not in "
     "hardware: `ovs-appctl dpctl/dump-flows -m type=non-offloaded`, `tc -s filter show`"},
    {"encryption", "", "the payload was encrypted by {}",
     "check the IPsec policies of both nodes (`ip xfrm policy`) and that the addresses of the plane are theirs"},
    {"encryption_offload", "", "the part of the encryption that the adapter did was: {}",
     "check `ip xfrm state` (offload), the adapter's feature esp-hw-offload, and its firmware"},
    {"checked_share", "%", "{} of the blocks were compared", "correct the parameters of the requirement"},
};

constexpr bool has_one_row_each(std::span<const ConditionWords> words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (words[i].name == words[j].name) return false;
    }
  }
  return true;
}
static_assert(has_one_row_each(kWords), "a second row of a condition would never be read");

const ConditionWords* words_of_condition(std::string_view name) {
  const auto* const found = std::ranges::find(kWords, name, &ConditionWords::name);
  return found == std::end(kWords) ? nullptr : found;
}

/// "15.79 %", "665 W", "3".
std::string amount(double number, std::string_view unit) {
  constexpr double kHundred = 100;
  if (unit == "%") return for_people(number * kHundred, "1") + " %";
  return for_people(number, unit.empty() ? "1" : unit);
}

std::string amount(const Value& value, std::string_view unit) {
  if (const auto number = number_in(value)) return amount(*number, unit);
  const auto* text = std::get_if<std::string>(&value);
  return text != nullptr ? *text : assay::to_json(value).dump();
}

/// The value seen; "a little over 10 %" where four digits would show the bound that it misses.
std::string seen_amount(const plan::RequiredCondition& demand, const Value& seen, std::string_view unit) {
  std::string text = amount(seen, unit);
  const auto number = number_in(seen);
  if (!number) return text;
  if (demand.at_most && *number > *demand.at_most && text == amount(*demand.at_most, unit))
    return "a little over " + text;
  if (demand.at_least && *number < *demand.at_least && text == amount(*demand.at_least, unit))
    return "a little under " + text;
  return text;
}

/// ", at most 10 % is allowed"; empty for a truth value, because the sentence names the fault.
std::string bound_words(const plan::RequiredCondition& demand, const ConditionSeen& seen, std::string_view unit) {
  if (!demand.site.empty())
    return fmt::format(", demanded is {}",
                       std::string_view(seen.demanded).substr(seen.demanded.starts_with("= ") ? 2 : 0));
  if (demand.equals) {
    if (std::holds_alternative<bool>(*demand.equals)) return "";
    return fmt::format(", demanded is {}", amount(*demand.equals, unit));
  }
  if (demand.version) {
    const std::string text = seen.seen ? plan::version_in(*seen.seen) : "";
    if (!plan::is_version(text)) return ", which is not a version that can be compared";
    return fmt::format(", which {}", missed_of(*demand.version, text));
  }
  if (!demand.one_of.empty()) return fmt::format(", demanded is {}", seen.demanded);
  std::string text;
  if (demand.at_least) text = fmt::format(", at least {} is demanded", amount(*demand.at_least, unit));
  if (demand.at_most) text += fmt::format(", at most {} is allowed", amount(*demand.at_most, unit));
  return text;
}

std::string capitalised(std::string text) {
  if (!text.empty()) text.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(text.front())));
  return text;
}

/// `meaning` in brackets, without its full stop.
std::string bracketed(std::string_view meaning) {
  while (meaning.ends_with('.')) meaning.remove_suffix(1);
  return meaning.empty() ? "" : fmt::format(" ({})", meaning);
}

}  // namespace

bool has_condition_words(std::string_view name) { return words_of_condition(name) != nullptr; }

std::string condition_sentence(const plan::RequiredCondition& demand, const ConditionSeen& seen,
                               std::string_view meaning) {
  if (!seen.seen)
    return fmt::format("The condition {} {} is demanded, and it was not recorded{}.", demand.name, seen.demanded,
                       bracketed(meaning));
  const ConditionWords* const words = words_of_condition(demand.name);
  if (!demand.site.empty()) {
    return fmt::format(
        "The {} was {}{}: the traffic took another port; check the cables, the addresses and the site file.",
        demand.name, amount(*seen.seen, ""), bound_words(demand, seen, ""));
  }
  if (words == nullptr) {
    std::string bound = bound_words(demand, seen, "");
    if (bound.empty()) bound = fmt::format(", demanded is {}", assay::to_json(*demand.equals).dump());
    return fmt::format("The condition {}{} was {}{}.", demand.name, bracketed(meaning),
                       seen_amount(demand, *seen.seen, ""), bound);
  }
  std::string text(words->seen);
  if (const auto at = text.find("{}"); at != std::string::npos)
    text.replace(at, 2, seen_amount(demand, *seen.seen, words->unit));
  return capitalised(fmt::format("{}{}{}{}.", text, bound_words(demand, seen, words->unit),
                                 words->remedy.empty() ? "" : ": ", words->remedy));
}

}  // namespace assay::judge
