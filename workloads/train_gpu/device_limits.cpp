// device_limits: the plans that the engine on devices refuses, and the order of its products' algorithms.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "probes/core/parameters.h"
#include "workloads/train_gpu/device_line.h"

namespace assay::train_gpu {

void check_device_engine(const train::ModelShape& model, const train::ParallelPlan& plan) {
  // Products take matrices whose rows begin at whole groups of four numbers.
  constexpr std::int64_t kGroup = 4;
  const bool experts = train::with_layers(model, plan.layers).mixtures() > 0;
  const std::pair<const char*, std::int64_t> widths[] = {
      {"hidden", model.hidden},
      {"head_dim", model.head_dim},
      {"ffn / tp", model.ffn / plan.tp},
      {"vocab / tp", model.vocab / plan.tp},
      {"moe.ffn / tp", experts ? model.moe->ffn / plan.tp : 0},
      {"seq / (2 cp)", plan.cp == 1 ? plan.seq : plan.seq / (2 * plan.cp)}};
  for (const auto& [name, width] : widths) {
    if (width % kGroup != 0)
      throw BadParameter(
          fmt::format("{}: {} is no multiple of {}, which the engine on GPUs needs; the nearest that is: {}", name,
                      width, kGroup, std::max(kGroup, (width + kGroup / 2) / kGroup * kGroup)));
  }
  if (plan.zero == 0) return;
  for (std::int64_t place = 0; place < plan.pp; ++place) {
    for (const train::Bucket& bucket : train::buckets_of(model, plan, place)) {
      const std::int64_t sharers = plan.replicas() / (bucket.experts ? plan.ep : 1);
      if (bucket.elements % sharers == 0) continue;
      throw BadParameter(fmt::format(
          "zero: {} weights of one bucket do not divide among {} replicas; the nearest number that does: {}",
          bucket.elements, sharers, train::nearest_divisor(bucket.elements, sharers)));
    }
  }
}

}  // namespace assay::train_gpu
