// gemm_run: one GPU's part of a measurement: trials, the load, the checks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "probes/core/sampling.h"
#include "probes/cuda/algorithm_choice.h"
#include "probes/cuda/gemm_bench.h"
#include "probes/cuda/sm_cycles.h"
#include "probes/nvml/gpu_watch.h"

namespace assay::cuda {

/// Results of one algorithm on one device.
struct GemmFigures {
  Sampling throughput;
  std::optional<SmCycles::Counted> counted;
  double flop = 0;  ///< while cycles were counted
  double mean_rate = 0;
};

/// Results of one device.
struct GemmOutcome {
  GemmFigures chosen, first;
  ElementErrors errors;
  std::uint64_t changes = 0, whole_mismatches = 0;
  std::int64_t checked = 0;
  std::size_t products = 0, algorithms = 0, refused = 0, sets = 0;
  Bytes operands;
  AlgorithmChoice choice;
  std::string algorithm_first;
  FaultCounts faults;
  std::optional<double> efficiency, energy_window_s;
  std::optional<nvml::GpuWatch> watch;
};

struct GemmPlan {
  const GemmType* type;
  GemmShape shape;
  Pattern pattern;
  bool fast_accumulation;
  std::uint64_t seed;  ///< of operands and samples
  std::size_t trials;  ///< algorithms that are tried under load, at most
  Seconds sample_length;
  SamplingPlan sampling;        ///< of throughput
  SamplingPlan sampling_first;  ///< of throughput_first: without the long load
  nvml::GpuWatch (*watch)(const std::string& pci_bus_id);
};

/// Measures `device`, which is current, as all GPUs of the run are; `place` is its place among them.
GemmOutcome measure_device(const Device& device, std::size_t place, Barrier& barrier, TrialBoard& board,
                           const GemmLibrary& library, const GemmPlan& plan);

}  // namespace assay::cuda
