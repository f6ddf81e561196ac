// plan_conditions: records the plan as words and sums.
#include "workloads/train/step/plan_conditions.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace assay::train {

void record_plan(const Parameters& given, const RankJob& job, const std::vector<std::string>& nodes, Recorder& record) {
  const ParallelPlan& plan = job.plan;
  const ModelShape run = with_layers(job.model, plan.layers);
  record.condition("path", nodes.size() > 1 ? given.text("path") : std::string("loopback"));
  record.condition("ranks", plan.world());
  record.condition("nodes", static_cast<std::int64_t>(nodes.size()));
  record.condition("ranks_per_node", given.count("ranks_per_node"));
  record.condition("node_names", fmt::format("{}", fmt::join(nodes, ",")));
  record.condition("plan", fmt::format("tp={} cp={} ep={} pp={} dp={} virtual={} zero={}", plan.tp, plan.cp, plan.ep,
                                       plan.pp, plan.dp, plan.virtual_stages, plan.zero));
  record.condition("flop_count", std::string(kFlopCount));
  record.condition("flop_per_token", flop_per_token(run, plan.seq));
  record.condition("tokens_per_step", plan.tokens_per_step());
  record.condition("layers_run", plan.layers);
  record.condition("parameters_run", total_parameters(run));
  record.condition("attention", std::string("products over blocks of 64 queries, probabilities kept"));
  if (run.mixtures() > 0) record.condition("routing", std::string("by_place"));
  record.condition("data_mode", given.text("data"));
  record.condition("launch", std::string("eager"));
}

}  // namespace assay::train
