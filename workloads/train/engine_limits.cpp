// engine_limits: what the graph covers and the engine on hosts does not run.
#include <fmt/format.h>

#include "probes/core/parameters.h"
#include "workloads/train/host_engine.h"

namespace assay::train {

void check_engine(const ModelShape& model, const ParallelPlan& plan) {
  const auto refuse = [](const char* what, const char* instead) {
    throw BadParameter(fmt::format("{} not run by this engine; {}", what, instead));
  };
  if (model.mla) refuse("model: latent attention is", "give a model with attention gqa");
  if (with_layers(model, plan.layers).mixtures() > 0) refuse("model: experts are", "give a dense model");
  if (model.tied) refuse("model: one matrix for embedding and head is", "give a model with tied false");
  if (plan.ep != 1) refuse("ep: experts are", "give ep 1");
  if (plan.cp != 1) refuse("cp: a divided sequence is", "give cp 1");
  if (plan.virtual_stages != 1) refuse("virtual: interleaved stages are", "give virtual 1");
  if (plan.zero > 1) refuse("zero: sharded gradients and weights are", "give zero 0 or 1");
  if (plan.element != 4) refuse("type: other types than fp32 are", "give type fp32");
}

}  // namespace assay::train
