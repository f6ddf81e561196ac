// step_job: one rank's part of a step, the variant that is run, and its times. Engines on hosts and on GPUs share it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "workloads/train/graph/step_graph.h"

namespace assay::train {

/// Kind of weights and tokens. gaussian: normal weights, other tokens on each replica. replicated: the same tokens on
/// all replicas, so that their gradients must be equal. ring: whole numbers modulo 7, exact for every division of the
/// step.
enum class DataMode { gaussian, replicated, ring };

/// Element type of the factors of products, of the engine on GPUs: rounded in the tensor cores, or to BF16 before; fp8:
/// those of linear layers to FP8, all others to BF16.
enum class FactorType : std::uint8_t { tf32, bf16, fp8 };

/// How an engine on GPUs does attention, or is asked to. fused: kernels of a library, whose backward pass adds up in
/// one order; fused_unordered: in any order; automatic: fused where it can be, else products.
enum class AttentionKind : std::uint8_t { automatic, fused, fused_unordered, products };

/// One rank's part.
struct RankJob {
  ModelShape model;
  ParallelPlan plan;
  std::int64_t rank = 0;
  DataMode data = DataMode::gaussian;
  bool beside = true;  ///< gradients are reduced during the backward pass
  FactorType factors = FactorType::tf32;
  bool graph = false;  ///< a full step is one CUDA graph, of one rank
  AttentionKind attention = AttentionKind::products;
  std::uint64_t attention_room = 0;  ///< B that fused attention needs for its own
};

/// Throws BadParameter for plans that the graph covers and the engines do not run.
void check_engine(const ModelShape& model, const ParallelPlan& plan);

/// Variant of a step. compute_only of several ranks updates numbers of no use in place of the weights, since its
/// gradients were not reduced.
enum class Variant { full, compute_only, comm_only };

/// Times of one step of this rank, in s.
struct StepTimes {
  double wall_s = 0;
  double collective_s = 0;  ///< in collectives, waits for others included; of overlapped ones only the exposed wait
  double optimizer_s = 0;
};

/// When an operation begins and ends, in s from the begin of its step; 0 and 0 if it did not run.
struct OpSpan {
  double begin_s = 0, end_s = 0;
};

/// A bit that is turned once, to show that it is found: of the output of operation `op`, after it has run.
struct Flip {
  std::size_t op = 0, element = 0;
  int bit = 0;
};

/// A sum over all numbers of one rank's weights or gradients that does not depend on how they are divided: of its
/// routed experts, and of everything else.
struct RankPrint {
  std::uint64_t shared = 0, experts = 0;
  friend bool operator==(const RankPrint&, const RankPrint&) = default;
};

}  // namespace assay::train
