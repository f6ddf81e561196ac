// gpu_facts: one AMD GPU: identity, partitions, errors it has counted, links, throttling, users; and a time limit for
// questions to a library that may never answer.
#pragma once

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "probes/amd/smi.h"
#include "probes/core/probe.h"
#include "probes/core/units.h"
#include "probes/health/gpu_state.h"

namespace assay::amd {

/// Gives each question a time limit. After it a call of the driver hangs, which nothing ends: the process leaves
/// (leave_stuck) with the GPU and the question as its reason.
class AnswerLimit {
 public:
  explicit AnswerLimit(Seconds limit);
  ~AnswerLimit();
  AnswerLimit(const AnswerLimit&) = delete;
  AnswerLimit& operator=(const AnswerLimit&) = delete;

  /// Begins a question, in place of the one before; empty: none is open.
  void asking(std::string question);

 private:
  void watch();

  using Clock = std::chrono::steady_clock;
  const Seconds limit_;
  std::mutex lock_;
  std::condition_variable changed_;
  std::string question_;
  Clock::time_point since_ = Clock::now();
  bool over_ = false;
  std::thread watcher_;  // last: it uses all of the above
};

/// Errors of one block of a GPU.
struct BlockErrors {
  std::string_view block;  ///< of smi::kBlocks
  smi::Errors errors;
};

/// Values reported by one GPU.
struct GpuFacts {
  Subject subject;  ///< its UUID, else its PCI address, else "index-5"
  std::string pci_address;
  health::GpuState state;  ///< by the names of health_amd's metrics and conditions
  std::vector<BlockErrors> blocks;
  bool answers = false;  ///< its UUID or its address is known
};

/// The conditions that identify a GPU, for the spec of every AMD probe that records them.
inline constexpr ConditionSpec kIdentityConditions[] = {
    if_reported("model", "product name of a gpu, where AMD SMI reports it"),
    if_reported("serial", "serial number of a gpu's board, where AMD SMI reports it"),
    if_reported("part", "part number of a gpu's board, where AMD SMI reports it"),
    if_reported("vbios", "version of a gpu's video BIOS, where AMD SMI reports it"),
    if_reported(
        "firmware",
        "versions of a gpu's firmware by its numbers (1 power management, 7 compute queues, 9 run list, 10 copy "
        "engine, 31 security), where AMD SMI reports them"),
    if_reported("pci_address", "PCI function of a gpu, where AMD SMI reports it"),
    if_reported("compute_partition",
                "whether a gpu is one device (SPX) or several (DPX, QPX, CPX), where AMD SMI reports it"),
    if_reported("memory_partition", "in how many parts a gpu's memory is (NPS1, NPS2, NPS4), where AMD SMI reports it"),
};

/// Asks `gpu`, the `index`-th of the list, everything; `limit` watches the questions.
GpuFacts read_gpu_facts(const AmdSmi& smi, const AmdGpu& gpu, std::size_t index, AnswerLimit& limit);

/// How far the metric `name` went; nothing if it was not reported twice or went back (the driver was loaded anew).
std::optional<double> growth_of(std::string_view name, const GpuFacts& begin, const GpuFacts& end);

/// Version of the driver amdgpu as AMD SMI reports it of `gpu`.
std::optional<std::string> driver_version(const AmdSmi& smi, const AmdGpu& gpu);

/// Readings that change from moment to moment: clocks, temperatures, power and its limit, the PCIe link, by the names
/// of health_amd's conditions and metrics. Failed questions are added to `failures`.
std::map<std::string_view, double> read_gpu_state(const AmdSmi& smi, const AmdGpu& gpu, AnswerLimit& limit,
                                                  std::int64_t& failures);

/// Processes besides this one on `gpu`. Nothing in a process namespace of its own, where no list has those of others.
std::optional<std::int64_t> other_processes(const Answer<std::vector<std::uint32_t>>& listed);

/// PCIe generation of a rate in MT/s; nothing for a rate that none has.
std::optional<int> pcie_generation(std::uint32_t rate);

}  // namespace assay::amd
