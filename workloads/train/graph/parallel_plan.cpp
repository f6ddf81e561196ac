// parallel_plan: checks a plan. A refusal names the given value, the number that it must divide, and the nearest value
// that does.
#include "workloads/train/graph/parallel_plan.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "probes/core/parameters.h"

namespace assay::train {
namespace {

constexpr std::int64_t kMostRanks = 1 << 20, kMostTokens = std::int64_t{1} << 24, kMostMicroBatches = 1 << 16;

void demand_range(const char* name, std::int64_t value, std::int64_t least, std::int64_t most) {
  if (value < least || value > most)
    throw BadParameter(fmt::format("{}: {} is not from {} to {}", name, value, least, most));
}

void demand_divides(const char* name, std::int64_t value, const char* what, std::int64_t whole, std::int64_t all) {
  if (whole % value == 0) return;
  throw BadParameter(fmt::format("{}: {} does not divide {} {}; the nearest that does: {}", name, value, whole, what,
                                 nearest_divisor(all, value)));
}

void check_tensor_parallel(const ModelShape& m, const ParallelPlan& plan) {
  std::int64_t all = std::gcd(m.heads, m.vocab);
  const auto need = [&](std::int64_t whole) { all = std::gcd(all, whole); };
  if (!m.mla) need(m.kv_heads);
  if (m.mixtures() < m.layers) need(m.ffn);
  if (m.mixtures() > 0) need(std::gcd(m.moe->ffn, m.moe->experts));
  if (m.mla) need(std::gcd(m.mla->q_lora, m.mla->kv_lora + m.mla->rope));
  demand_divides("tp", plan.tp, "heads", m.heads, all);
  if (!m.mla) demand_divides("tp", plan.tp, "kv_heads", m.kv_heads, all);
  if (m.mixtures() < m.layers) demand_divides("tp", plan.tp, "of ffn", m.ffn, all);
  if (m.mixtures() > 0) demand_divides("tp", plan.tp, "of an expert's ffn", m.moe->ffn, all);
  demand_divides("tp", plan.tp, "of vocab", m.vocab, all);
  if (m.mla)
    demand_divides("tp", plan.tp, "of the latent widths", std::gcd(m.mla->q_lora, m.mla->kv_lora + m.mla->rope), all);
  if (m.mixtures() > 0) demand_divides("tp", plan.tp, "experts, whose router it divides", m.moe->experts, all);
}

void check_pipeline(const ParallelPlan& plan) {
  const std::int64_t pieces = plan.pp * plan.virtual_stages;
  if (plan.layers % pieces != 0)
    throw BadParameter(fmt::format("pp: {} x {} pieces do not divide {} layers; the nearest that does: {}", plan.pp,
                                   plan.virtual_stages, plan.layers, nearest_divisor(plan.layers, pieces)));
  if (plan.virtual_stages > 1 && plan.micro_batches % plan.pp != 0)
    throw BadParameter(
        fmt::format("micro_batches: {} is no multiple of pp {}, which virtual stages need; the nearest that is: {}",
                    plan.micro_batches, plan.pp,
                    std::max<std::int64_t>(1, (plan.micro_batches + plan.pp / 2) / plan.pp) * plan.pp));
  if (plan.virtual_stages > 1 && plan.pp == 1)
    throw BadParameter("virtual: stages are interleaved between pipeline ranks, and pp is 1");
}

/// Numbers that one rank keeps of the activations of one micro-batch and layer.
std::int64_t kept_per_layer(const ModelShape& m, const ParallelPlan& plan, std::int64_t layer) {
  const std::int64_t t = plan.tokens(), copies = m.is_mixture(layer) ? m.moe->top_k : 1;
  const std::int64_t shared = m.is_mixture(layer) ? m.moe->shared : 0;
  const std::int64_t ffn = m.is_mixture(layer) ? m.moe->ffn : m.ffn;
  const std::int64_t attention = (2 * m.q() + 2 * m.kv()) / plan.tp + m.heads / plan.tp * plan.seq;
  return t * (4 * m.hidden + attention + (copies + shared) * 3 * ffn / plan.tp + (copies > 1 ? copies * m.hidden : 0));
}

/// Parameters of one rank of the fullest piece: matrices divided by tp, experts by ep, norms whole.
std::int64_t rank_parameters(const ModelShape& m, const ParallelPlan& plan, std::int64_t layers) {
  std::int64_t sum = 0;
  for (std::int64_t layer = plan.layers - layers; layer < plan.layers; ++layer) {
    std::int64_t experts = 0;
    if (m.is_mixture(layer)) experts = m.moe->experts * 3 * m.hidden * m.moe->ffn;
    sum += (attention_weights(m) + mlp_weights(m, layer) - experts) / plan.tp + experts / (plan.tp * plan.ep) +
           norm_weights(m, layer);
  }
  return sum + (plan.pp == 1 && !m.tied ? 2 : 1) * m.vocab * m.hidden / plan.tp + m.hidden;
}

}  // namespace

ParallelPlan on_ranks(ParallelPlan plan, std::int64_t ranks) {
  const std::int64_t one = plan.tp * plan.cp * plan.pp;
  if (ranks % one != 0 || ranks < one) {
    const std::int64_t below = ranks / one * one;
    throw BadParameter(fmt::format("{} ranks are no multiple of tp {} x cp {} x pp {}; the nearest that are: {}", ranks,
                                   plan.tp, plan.cp, plan.pp,
                                   below == 0 ? fmt::format("{}", one) : fmt::format("{} and {}", below, below + one)));
  }
  if (plan.dp != 0 && plan.dp != ranks / one)
    throw BadParameter(
        fmt::format("dp: {} with tp {}, cp {} and pp {} is a plan of {} ranks, there are {}; the nearest that fits: {}",
                    plan.dp, plan.tp, plan.cp, plan.pp, one * plan.dp, ranks, ranks / one));
  plan.dp = ranks / one;
  return plan;
}

void check_plan(const ModelShape& m, const ParallelPlan& plan) {
  demand_range("seq", plan.seq, 1, kMostTokens);
  demand_range("micro_batch", plan.micro_batch, 1, kMostTokens / plan.seq);
  demand_range("micro_batches", plan.micro_batches, 1, kMostMicroBatches);
  demand_range("layers_run", plan.layers, 1, m.layers);
  for (const auto& [name, value] : {std::pair{"tp", plan.tp},
                                    {"cp", plan.cp},
                                    {"ep", plan.ep},
                                    {"pp", plan.pp},
                                    {"dp", plan.dp},
                                    {"virtual", plan.virtual_stages}})
    demand_range(name, value, 1, kMostRanks);
  demand_range("zero", plan.zero, 0, 3);
  if (plan.tp > kMostRanks / plan.cp / plan.pp / plan.dp)
    throw BadParameter(fmt::format("tp x cp x pp x dp: more than {} ranks", kMostRanks));
  const ModelShape run = with_layers(m, plan.layers);
  constexpr double kMostNumbers = 0x1p60;  // of one layer's attention on one rank, so that no sum of 64 bits overflows
  if (static_cast<double>(plan.seq) * static_cast<double>(plan.micro_batch * plan.seq) * 24 *
          static_cast<double>(m.q()) * static_cast<double>(m.layers) >
      kMostNumbers)
    throw BadParameter(
        fmt::format("seq: attention of {} x {} tokens is more than can be counted", plan.micro_batch, plan.seq));
  if (run.tied && plan.pp > 1)
    throw BadParameter("pp: embedding and head are one matrix, which is not divided here; the nearest that does: 1");
  demand_divides("cp", plan.cp, "tokens of a sequence", plan.seq, plan.seq);
  check_tensor_parallel(run, plan);
  check_pipeline(plan);
  if (plan.ep > 1 && run.mixtures() == 0)
    throw BadParameter(fmt::format("ep: {} where no layer that is run has experts; the nearest that does: 1", plan.ep));
  if (plan.ep == 1) return;
  const std::int64_t all = std::gcd(run.moe->experts, plan.replicas());
  demand_divides("ep", plan.ep, "experts", run.moe->experts, all);
  demand_divides("ep", plan.ep, "ranks of cp x dp", plan.replicas(), all);
}

Bytes memory_needed(const ModelShape& model, const ParallelPlan& plan) {
  const ModelShape m = with_layers(model, plan.layers);
  const std::int64_t layers = plan.layers / plan.pp, parameters = rank_parameters(m, plan, layers);
  constexpr std::int64_t kSingle = 4;  // B of gradients and optimizer state
  const std::int64_t states = (plan.element == kSingle ? 2 : 3) * kSingle;
  const std::int64_t shards = plan.replicas();
  std::int64_t bytes = parameters * plan.element / (plan.zero >= 3 ? shards : 1) +
                       parameters * kSingle / (plan.zero >= 2 ? shards : 1) +
                       parameters * states / (plan.zero >= 1 ? shards : 1);
  // The first rank of a 1F1B pipeline holds as many micro-batches as the pipeline is long.
  const std::int64_t in_flight = std::min(plan.micro_batches, plan.pp);
  for (std::int64_t layer = plan.layers - layers; layer < plan.layers; ++layer)
    bytes += in_flight * kept_per_layer(m, plan, layer) * plan.element;
  bytes += plan.tokens() * 3 * m.vocab / plan.tp * plan.element;
  return {static_cast<std::uint64_t>(bytes)};
}

void check_memory(const ModelShape& model, const ParallelPlan& plan, Bytes available) {
  const Bytes needed = memory_needed(model, plan);
  if (needed.count <= available.count) return;
  const std::int64_t pieces = plan.pp * plan.virtual_stages;
  ParallelPlan smaller = plan;
  while (smaller.layers > pieces) {
    smaller.layers -= pieces;
    if (memory_needed(model, smaller).count <= available.count)
      throw BadParameter(
          fmt::format("layers_run: {} layers need {} B on a rank, {} B are available; the nearest that fits: {}",
                      plan.layers, needed.count, available.count, smaller.layers));
  }
  throw BadParameter(
      fmt::format("layers_run: even {} layers need {} B on a rank, {} B are available; a smaller micro_batch or seq, "
                  "or a larger tp, needs less",
                  smaller.layers, memory_needed(model, smaller).count, available.count));
}

}  // namespace assay::train
