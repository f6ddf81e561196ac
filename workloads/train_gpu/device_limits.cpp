// device_limits: the plans that the engine on devices refuses, for their widths and for the memory they need.
#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "probes/core/parameters.h"
#include "probes/core/probe.h"
#include "workloads/train_gpu/attention_trial.h"
#include "workloads/train_gpu/device_line.h"
#include "workloads/train_gpu/device_rehearsal.h"

namespace assay::train_gpu {
namespace {

template <class Number>
DeviceNeed rehearsed_as(const train::RankJob& job, std::size_t block) {
  RehearsalDevice<Number> device(job.factors);
  DeviceCore core(job, block, device);
  core.rehearse();
  return device.need();
}

DeviceNeed rehearsed_trial(const train::RankJob& job) {
  RehearsalDevice<train::Bf16> device(job.factors);
  AttentionTrial trial(job, kQueriesTogether, device);
  trial.rehearse();
  return device.need();
}

/// The job with another number of layers or another tp, if that is a plan of the engine that fits.
bool fits(train::RankJob job, const train::ParallelPlan& plan, Bytes available) {
  job.plan = plan;
  try {
    train::check_plan(job.model, plan);
    check_device_engine(job.model, plan, job.factors);
  } catch (const BadParameter&) {
    return false;
  }
  return rehearsed_both(job).bytes() <= available.count;
}

/// Most layers that fit, if one piece of the pipeline does. Need grows with every layer.
std::optional<std::int64_t> layers_that_fit(const train::RankJob& job, Bytes available) {
  const std::int64_t each = job.plan.pp * job.plan.virtual_stages;
  std::int64_t few = 0, many = job.plan.layers / each;  // pieces of layers: the first fits, the second does not
  while (many - few > 1) {
    train::ParallelPlan plan = job.plan;
    plan.layers = (few + many) / 2 * each;
    (fits(job, plan, available) ? few : many) = (few + many) / 2;
  }
  return few == 0 ? std::nullopt : std::optional(few * each);
}

/// The next larger tp that fits, on as many more GPUs.
std::optional<std::int64_t> tp_that_fits(const train::RankJob& job, Bytes available) {
  constexpr std::int64_t kMost = 64;
  for (train::ParallelPlan plan = job.plan; plan.tp < kMost;) {
    ++plan.tp;
    train::RankJob larger = job;
    larger.rank = train::rank_at(plan, {.pp = train::position_of(job.plan, job.rank).pp});
    if (fits(larger, plan, available)) return plan.tp;
  }
  return std::nullopt;
}

}  // namespace

DeviceNeed rehearsed(const train::RankJob& job, std::size_t block) {
  return keeps_bf16(job) ? rehearsed_as<train::Bf16>(job, block) : rehearsed_as<float>(job, block);
}

DeviceNeed rehearsed_both(const train::RankJob& job) {
  train::RankJob ring = job;
  ring.data = train::DataMode::ring;
  DeviceNeed exact = rehearsed(ring), all = rehearsed(job);
  if (fuses(job)) {
    DeviceNeed trial = rehearsed_trial(job);
    all.memory = std::max(all.memory, trial.memory);
    all.shapes.merge(trial.shapes);
  }
  constexpr std::int64_t kChannels = 2;
  all.messages =
      train::sized(kChannels * message_rooms(job.plan) * job.plan.tokens() * job.model.hidden) * sizeof(float);
  all.memory = std::max(all.memory, exact.memory);
  all.packed_a = std::max(all.packed_a, exact.packed_a);
  all.packed_b = std::max(all.packed_b, exact.packed_b);
  all.shapes.merge(exact.shapes);
  return all;
}

void check_device_memory(const train::RankJob& job, Bytes available) {
  const std::uint64_t needed = rehearsed_both(job).bytes();
  if (needed <= available.count) return;
  const auto layers = layers_that_fit(job, available), tp = tp_that_fits(job, available);
  std::string nearest = layers ? fmt::format("; the nearest that fits: {}", *layers)
                               : std::string("; no number of layers fits: a smaller micro_batch or seq needs less");
  if (tp) nearest += fmt::format(", or all of them with tp {}", *tp);
  throw BadParameter(fmt::format("layers_run: {} layers need {} B of the GPU of rank {}, {} B are available{}",
                                 job.plan.layers, needed, job.rank, available.count, nearest));
}

void demand_fp8(int major, int minor, std::string_view title) {
  if (10 * major + minor >= 89) return;  // cuBLAS manual, cublasLtMatmul: "To use FP8 kernels"
  throw Skip(fmt::format("type fp8 needs compute capability 8.9; {} has {}.{}", title, major, minor));
}

void check_device_engine(const train::ModelShape& model, const train::ParallelPlan& plan, train::FactorType factors) {
  // Matrices begin their rows at whole groups of 16 B: of four fp32, eight BF16 or sixteen FP8 numbers.
  const bool fp8 = factors == train::FactorType::fp8, experts = train::with_layers(model, plan.layers).mixtures() > 0;
  const std::int64_t group = fp8 ? 16 : factors == train::FactorType::bf16 ? 8 : 4;
  if (fp8 && experts)
    throw BadParameter(
        "type: fp8 is for models without experts, since rows of an expert are no multiple of 16; the "
        "nearest that runs: bf16");
  const std::pair<const char*, std::int64_t> widths[] = {
      {"hidden", model.hidden},
      {"head_dim", model.head_dim},
      {"ffn / tp", model.ffn / plan.tp},
      {"vocab / tp", model.vocab / plan.tp},
      {"moe.ffn / tp", experts ? model.moe->ffn / plan.tp : 0},
      {"seq / (2 cp)", plan.cp == 1 ? plan.seq : plan.seq / (2 * plan.cp)}};
  for (const auto& [name, width] : widths) {
    if (width % group != 0)
      throw BadParameter(
          fmt::format("{}: {} is no multiple of {}, which the engine on GPUs needs; the nearest that is: {}", name,
                      width, group, std::max(group, (width + group / 2) / group * group)));
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
