// plan_parameters: makes a plan from the parameters of the command line.
#include "workloads/train/graph/plan_parameters.h"

#include <fmt/format.h>

namespace assay::train {

std::int64_t ranks_per_node(const Parameters& given) {
  constexpr std::int64_t kMost = 256;
  return given.count("ranks_per_node", 1, kMost);
}

RankJob job_on(const Parameters& given, std::int64_t ranks) {
  constexpr std::int64_t kMostWays = 1 << 20;
  const ModelCard card = model_card(given.text("model"));
  const std::int64_t layers = given.count("layers_run");
  ParallelPlan plan{.layers = layers == 0 ? card.shape.layers : layers,
                    .seq = given.count("seq"),
                    .micro_batch = given.count("micro_batch"),
                    .micro_batches = given.count("micro_batches"),
                    .tp = given.count("tp", 1, kMostWays),
                    .cp = given.count("cp", 1, kMostWays),
                    .ep = given.count("ep"),
                    .pp = given.count("pp", 1, kMostWays),
                    .dp = given.count("dp"),
                    .virtual_stages = given.count("virtual"),
                    .zero = static_cast<int>(given.count("zero", 0, 3)),
                    .element = 4};
  plan = on_ranks(plan, ranks);
  check_plan(card.shape, plan);
  check_engine(card.shape, plan);
  return {.model = card.shape, .plan = plan};
}

void check_engine(const ModelShape& model, const ParallelPlan& plan) {
  const auto refuse = [](const char* what, const char* instead) {
    throw BadParameter(fmt::format("{} not run by this engine; {}", what, instead));
  };
  const ModelShape run = with_layers(model, plan.layers);
  if (run.mla) refuse("model: latent attention is", "give a model with attention gqa");
  if (run.mixtures() > 0 && run.moe->router_bias)
    refuse("model: the bias of a router is", "give a model with router_bias false");
  if (run.tied) refuse("model: one matrix for embedding and head is", "give a model with tied false");
  if (plan.cp > 1 && plan.seq % (2 * plan.cp) != 0)
    throw BadParameter(fmt::format("cp: {} x 2 pieces do not divide {} tokens of a sequence; the nearest that does: {}",
                                   plan.cp, plan.seq, nearest_divisor(plan.seq / 2, plan.cp)));
  if (plan.ep > 1 && plan.cp % plan.ep != 0 && plan.ep % plan.cp != 0)
    refuse("ep: a group that has a part of some sequences is", "give an ep that divides cp or that cp divides");
  if (plan.zero > 1) refuse("zero: sharded gradients and weights are", "give zero 0 or 1");
  if (plan.element != 4) refuse("type: other types than fp32 are", "give type fp32");
}

}  // namespace assay::train
