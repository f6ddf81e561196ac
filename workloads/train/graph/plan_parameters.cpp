// plan_parameters: makes a plan from the parameters of the command line.
#include "workloads/train/graph/plan_parameters.h"

#include <fmt/format.h>

namespace assay::train {

std::int64_t count_in_range(const Parameters& given, const char* name, std::int64_t least, std::int64_t most) {
  const auto count = given.count(name);
  if (count < least || count > most)
    throw BadParameter(fmt::format("{}: {} is not from {} to {}", name, count, least, most));
  return count;
}

std::int64_t ranks_per_node(const Parameters& given) {
  constexpr std::int64_t kMost = 256;
  return count_in_range(given, "ranks_per_node", 1, kMost);
}

RankJob job_on(const Parameters& given, std::int64_t ranks) {
  constexpr std::int64_t kMostWays = 1 << 20;
  const ModelCard card = model_card(given.text("model"));
  const std::int64_t layers = given.count("layers_run");
  ParallelPlan plan{.layers = layers == 0 ? card.shape.layers : layers,
                    .seq = given.count("seq"),
                    .micro_batch = given.count("micro_batch"),
                    .micro_batches = given.count("micro_batches"),
                    .tp = count_in_range(given, "tp", 1, kMostWays),
                    .cp = count_in_range(given, "cp", 1, kMostWays),
                    .ep = given.count("ep"),
                    .pp = count_in_range(given, "pp", 1, kMostWays),
                    .dp = given.count("dp"),
                    .virtual_stages = given.count("virtual"),
                    .zero = static_cast<int>(count_in_range(given, "zero", 0, 3)),
                    .element = 4};
  plan = on_ranks(plan, ranks);
  check_plan(card.shape, plan);
  check_engine(card.shape, plan);
  return {.model = card.shape, .plan = plan};
}

}  // namespace assay::train
