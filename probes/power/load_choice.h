// load_choice: which load a probe makes on its node, by parameters that all such probes have.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "probes/core/probe.h"
#include "probes/power/gpu_load.h"
#include "probes/power/load_engine.h"

namespace assay {
class Recorder;
}  // namespace assay

namespace assay::power {

inline constexpr Parameter kLoadEngineParameter =
    choice("engine", "cpu", "cpu gpu",
           "engine of the products: the CPUs in FP64, or the GPUs in BF16 by cuBLASLt or hipBLASLt");
inline constexpr Parameter kLoadThreadsParameter = parameter(
    "threads", "1", "0",
    "CPU threads of the load; 0: of engine cpu one for each CPU, of engine gpu none. Beside GPUs they load the "
    "node and are not counted in its rate");
inline constexpr Parameter kLoadGpusParameter = parameter(
    "gpus", "", "all", "of engine gpu, which: all, a UUID, a PCI bus id, or an index in the order of PCI bus ids");
inline constexpr Parameter kLoadLibraryParameter = parameter(
    "library_path", "", "",
    "of engine gpu: folders with libcublasLt or libhipblaslt, separated by colons, searched before the usual ones");
inline constexpr Parameter kLoadOrderParameter =
    parameter("order", "1", "4096", "of engine gpu: order of the matrices, a multiple of 64 up to 16384");

inline constexpr ConditionSpec kLoadEngineCondition{
    .name = "engine",
    .meaning = "engine of the products, with operands of normal numbers: cpu_gemm (FP64) or gpu_gemm (BF16)"};
inline constexpr ConditionSpec kLoadThreadsCondition{.name = "threads", .meaning = "CPU threads that multiply"};
inline constexpr ConditionSpec kLoadGpuCondition =
    if_asked("gpu_load", "GPU, type and library, of each GPU that multiplies, where GPUs do");

/// The load that `given` asks for, prepared and at rest, with its conditions.
class ChosenLoad {
 public:
  /// Throws Skip where the node has not what `engine` names, or OpenBLAS no kernels as wide as the processor's vectors.
  explicit ChosenLoad(const Parameters& given);

  [[nodiscard]] LoadEngine& engine() const { return *engine_; }
  /// Records the conditions above and kPartitionConditions, and the checks of a job; the engine must rest then.
  void record(Recorder& record) const;
  /// Wrong results of a job so far.
  [[nodiscard]] std::uint64_t mismatches() const;
  /// Whether the load is a job, which checks all its results.
  [[nodiscard]] bool is_job() const { return engine_name_ == "job"; }
  /// Watches the GPUs of a job from now on; until end_watch().
  void watch();
  void end_watch();

 private:
  std::string engine_name_;
  std::size_t threads_ = 0;
  std::vector<LoadedGpu> gpus_;  ///< their units belong to the engine
  std::unique_ptr<LoadEngine> engine_;
};

}  // namespace assay::power
