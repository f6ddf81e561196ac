// node_work: proc_stat(5) and proc_pid_stat(5); names of vhost threads are those of drivers/vhost/vhost.c.
#include "probes/host/node_work.h"

#include <algorithm>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <thread>

#include <unistd.h>

#include <nlohmann/json.hpp>

#include "probes/core/json_io.h"

namespace assay::host {
namespace {

using nlohmann::json;

constexpr std::size_t kMostStat = 1 << 20;           // proc/stat of 4096 processors has some 300 kB
constexpr std::chrono::seconds kCountersCatchUp{2};  // drivers refresh the counters of their hardware every second
constexpr std::string_view kSwitch = "ovs-vswitchd", kVhost = "vhost-", kMachine = "qemu";

double in_seconds(std::uint64_t ticks) {
  return static_cast<double>(ticks) / static_cast<double>(std::max(1L, sysconf(_SC_CLK_TCK)));
}

/// User and kernel time of a process or thread, in ticks.
std::optional<std::uint64_t> ticks_of(const MachineTree& tree, const std::string& directory) {
  constexpr int kBefore = 11;  // fields between the name and utime
  const auto text = tree.text(directory + "/stat");
  const auto name_end = text ? text->rfind(')') : std::string::npos;
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields(text->substr(name_end + 1));
  std::string skipped;
  for (int i = 0; i < kBefore; ++i) fields >> skipped;
  std::uint64_t user = 0, system = 0;
  if (!(fields >> user >> system)) return std::nullopt;
  return user + system;
}

/// Directories of the processes and threads that forward packets in software.
std::vector<std::string> forwarders(const MachineTree& tree) {
  std::vector<std::string> found;
  for (const auto& process : tree.names("proc")) {
    if (process.find_first_not_of("0123456789") != std::string::npos) continue;
    const std::string directory = "proc/" + process;
    const auto name = tree.text(directory + "/comm");
    if (!name) continue;
    if (*name == kSwitch || name->starts_with(kVhost)) found.push_back(directory);
    if (!name->starts_with(kMachine)) continue;
    for (const auto& thread : tree.names(directory + "/task")) {
      const std::string task = directory + "/task/" + thread;
      if (tree.text(task + "/comm").value_or("").starts_with(kVhost)) found.push_back(task);
    }
  }
  return found;
}

json to_words(const PhaseWork& work) {
  json words = {{"busy", work.busy_cores}};
  if (work.switch_cores) words["switch"] = *work.switch_cores;
  if (work.offloaded_share) words["share"] = *work.offloaded_share;
  return words;
}

PhaseWork from_words(const std::string& words, int rank) {
  const auto document = parse_json_or_throw(words, "the work of rank " + std::to_string(rank));
  PhaseWork work{.busy_cores = document.at("busy")};
  if (document.contains("switch")) work.switch_cores = document.at("switch").get<double>();
  if (document.contains("share")) work.offloaded_share = document.at("share").get<double>();
  return work;
}

}  // namespace

ProcessorTime processor_time(const MachineTree& tree) {
  const auto text = tree.bytes("proc/stat", kMostStat);
  std::istringstream fields(text.value_or(""));
  std::string name;
  std::uint64_t user = 0, nice = 0, system = 0, idle = 0, wait = 0, interrupts = 0, soft_interrupts = 0;
  if (!(fields >> name >> user >> nice >> system >> idle >> wait >> interrupts >> soft_interrupts) || name != "cpu")
    throw std::runtime_error("proc/stat does not show the time of all processors in its first line");
  ProcessorTime time{.busy_s = in_seconds(user + nice + system + interrupts + soft_interrupts)};
  for (const auto& directory : forwarders(tree)) {
    if (const auto ticks = ticks_of(tree, directory)) time.switch_s = time.switch_s.value_or(0) + in_seconds(*ticks);
  }
  return time;
}

void WorkOfPhases::begin() {
  before_ = read_forwarding(counters_);
  from_ = processor_time(MachineTree("/"));
  begun_ = Clock::now();
}

void WorkOfPhases::end() {
  ended_ = Clock::now();
  to_ = processor_time(MachineTree("/"));
}

void WorkOfPhases::settle(Rendezvous& group, std::uint64_t payload, bool established) {
  const double seconds = std::max(1e-6, std::chrono::duration<double>(ended_ - begun_).count());
  PhaseWork mine{.busy_cores = std::max(0.0, to_.busy_s - from_.busy_s) / seconds};
  if (from_.switch_s && to_.switch_s)
    mine.switch_cores = std::max(0.0, *to_.switch_s - *from_.switch_s) / seconds;  // a thread may have ended
  if (established && !before_.source.empty()) {
    std::this_thread::sleep_for(kCountersCatchUp);
    mine.offloaded_share = offloaded_share(before_, read_forwarding(before_.source), payload);
  }
  const auto said = group.all_gather(to_words(mine).dump());
  phases_.push_back({from_words(said[0], 0), from_words(said[1], 1)});
  if (!established) return;
  for (const PhaseWork& one : phases_.back()) {
    share_unknown_ = share_unknown_ || !one.offloaded_share;
    least_share_ = std::min(least_share_.value_or(1), one.offloaded_share.value_or(1));
  }
}

void WorkOfPhases::record(Recorder& record, int rank, const Subject& subject) const {
  if (least_share_ && !share_unknown_) {
    record.condition("offloaded_share", *least_share_);
    record.condition("offload_source", before_.source);
  }
  if (rank != 0) return;
  Sampling busy{.samples = {}, .warmup = {}, .stopped = "fixed"}, switches = busy;
  for (const auto& [first, second] : phases_) {
    busy.samples.push_back(std::max(first.busy_cores, second.busy_cores));
    if (first.switch_cores || second.switch_cores)
      switches.samples.push_back(std::max(first.switch_cores.value_or(0), second.switch_cores.value_or(0)));
  }
  record.measurement("busy_cores", busy, subject);
  if (switches.samples.size() == phases_.size()) record.measurement("switch_cores", switches, subject);
}

}  // namespace assay::host
