// device_core: the core of the executor on a device: the products and kernels of each operation. Only the
// requests are here; probes send them to a GPU, tests to the host.
#pragma once

#include <concepts>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "workloads/train/engine/executor.h"
#include "workloads/train/engine/host_memory.h"
#include "workloads/train/engine/host_weights.h"
#include "workloads/train/graph/step_job.h"
#include "workloads/train_gpu/attention_choice.h"
#include "workloads/train_gpu/device_attention.h"
#include "workloads/train_gpu/device_casts.h"
#include "workloads/train_gpu/device_experts.h"
#include "workloads/train_gpu/device_shapes.h"

namespace assay::train_gpu {

/// Whether `job` keeps activations and weights of products as BF16. Exact steps keep fp32: BF16 has whole numbers to
/// 256 only.
inline bool keeps_bf16(const train::RankJob& job) {
  return job.factors != train::FactorType::tf32 && job.data != train::DataMode::ring;
}
/// Whether `job` does attention by fused kernels, which take BF16.
inline bool fuses(const train::RankJob& job) { return keeps_bf16(job) && asks_fused(job); }
/// This rank's heads and its part of each sequence.
inline train::HeadShape heads_of(const train::RankJob& job) {
  const train::ParallelPlan& plan = job.plan;
  return {.sequences = train::sized(plan.micro_batch),
          .seq = train::sized(plan.seq),
          .heads = train::sized(job.model.heads / plan.tp),
          .kv_heads = train::sized(job.model.kv_heads / plan.tp),
          .width = train::sized(job.model.head_dim),
          .cp = train::sized(plan.cp),
          .cp_rank = train::sized(train::position_of(plan, job.rank).cp),
          .exact = job.data == train::DataMode::ring};
}

/// A device keeps activations and the weights that products read as Number, float or train::Bf16; it is all of this:
/// take<T>(count) (memory of numbers that are 0), copy_in(to, numbers) (of tables), draw (first weights), print (which
/// waits), tokens (this step's, for the kernels that read them), product(shape, a, b, c), also of FP8 factors, which
/// cast(shape, from, plain, turned, scale) makes, clear, fold, add, norm,
/// norm_back, activate, activate_back, softmax, softmax_back, row_sums, loss_back, embed, embed_back, adam and
/// copy_rows, each as its namesake of step_math; attend and attend_back, DeviceAttention's passes by fused kernels,
/// where fuses(); gather_rows, sum_rows, gates and gates_back, which experts need; begin, mark, end and seconds of the
/// executor's core. Only print and end wait.
template <class Device>
class DeviceCore {
 public:
  using Number = typename Device::Number;

  /// Takes all memory of the device; a host keeps no number of a weight. `block`: queries that are done together.
  /// Precondition: check_engine() and check_device_engine() pass.
  DeviceCore(const train::RankJob& job, std::size_t block, Device& device)
      : job_(job),
        model_(train::with_layers(job.model, job.plan.layers)),
        at_(train::position_of(job.plan, job.rank)),
        exact_(job.data == train::DataMode::ring),
        device_(device),
        ops_(train::step_graph(job.model, job.plan, job.rank)),
        routes_(job.model, job.plan, job.rank, job.data == train::DataMode::replicated),
        weights_(job.model, job.plan, job.rank),
        memory_(model_, job.plan, at_, routes_, taker()),
        calls_(bound()),
        casts_(job_, ops_, memory_, device),
        experts_(model_, job_.plan, ops_, routes_, weights_, memory_, exact_, device),
        heads_(heads_of(job)),
        attention_(heads_, block, device) {
    scores_ = device.template take<Number>(fuses(job) ? 0 : DeviceAttention<Device>::scratch(heads_, block));
    room_ = device.template take<std::byte>(fuses(job) ? job.attention_room : 0);
    norm_ = {.rows = train::sized(job.plan.tokens()), .columns = train::sized(model_.hidden), .exact = exact_};
    gain_parts_ = device.template take<float>(train::gain_groups(norm_.rows) * norm_.columns);
    tokens_ = device.template take<std::int32_t>(train::tokens_of_step(job_, 0).size());
    begin_moments();
    for (const auto& block_of : weights_.blocks()) {
      if (block_of.gain) gains_.push_back(block_of);
    }
  }

  [[nodiscard]] const std::vector<train::Op>& ops() const { return ops_; }
  [[nodiscard]] const std::vector<train::CallOf<Number>>& calls() const { return calls_; }
  [[nodiscard]] const train::ExpertRoutes& routes() const { return routes_; }
  /// Of the device: gradients of all weights, and the fp32 numbers that are updated.
  [[nodiscard]] std::span<const float> gradients() const { return gradients_; }
  [[nodiscard]] std::span<const float> master() const { return master_; }
  /// Calls everything that multiplies once, so that every shape has been asked for before the first step.
  void rehearse() {
    for (std::size_t i = 0; i < ops_.size(); ++i) {
      if (ops_[i].kind == train::OpKind::gemm || ops_[i].kind == train::OpKind::attention) compute(i);
    }
  }

  /// Before `part` of step `number`, whose tokens go to the device. Where nothing is reduced, weights stay; sums of
  /// gains' gradients begin anew where gradients are made.
  void start(std::uint64_t number, train::Part part) {
    aside_ = part == train::Part::computation && job_.plan.world() > 1;
    if (part == train::Part::update || part == train::Part::communication) return;
    device_.tokens(train::tokens_of_step(job_, number), tokens_.data());
    for (const auto& gain : gains_) device_.clear(gradients_.data() + gain.offset, gain.size());
  }

  // The calls of the executor.
  void begin(std::size_t calls) { device_.begin(calls); }
  void mark(std::size_t call) { device_.mark(call); }
  void end() { device_.end(); }
  [[nodiscard]] double seconds(std::size_t call) const { return device_.seconds(call); }
  void compute(std::size_t place) {
    const train::Op& op = ops_[place];
    const train::CallOf<Number>& call = calls_[place];
    if (call.of_experts) return experts_.compute(op);
    switch (op.kind) {
      case train::OpKind::gemm:
        if (op.role == train::Role::router) experts_.before_router(op);
        if (call.gradient != nullptr) return multiply(op, call, call.sums);
        return multiply(op, call, call.out);
      case train::OpKind::attention:
        return attend(op);
      case train::OpKind::optimizer:
        return update(op.bucket);
      case train::OpKind::elementwise:
        return op.layer >= 0 ? each_of_layer(op) : each_of_end(op);
      case train::OpKind::collective:
        break;
    }
    throw std::logic_error("a collective is not for the core");
  }
  void lend(std::size_t place) {
    const train::Op& op = ops_[place];
    if (train::is_of_experts(model_, op)) return experts_.lend(op);
    if (op.motion != train::Motion::exchange) return;
    const Layer& kept = memory_.layer(op.layer, op.micro_batch);
    device_.copy_rows(key_rows(), key_width(), kept.qkv.data() + keys_begin(), train::row_of_all(heads_),
                      own_keys(memory_.keys), key_width());
  }
  void take(std::size_t place) {
    const train::Op& op = ops_[place];
    if (train::is_of_experts(model_, op)) return experts_.take(op);
    if (op.motion == train::Motion::exchange_sums) {
      device_.copy_rows(key_rows(), key_width(), own_keys(memory_.keys_gradient), key_width(),
                        memory_.qkv_gradient.data() + keys_begin(), train::row_of_all(heads_));
      if (exact_) device_.fold(memory_.qkv_gradient.data(), memory_.qkv_gradient.size());
    } else if (exact_ && op.motion == train::Motion::all_reduce && op.role != train::Role::gradients) {
      fold(calls_[place].out);
      fold(calls_[place].sums);
    }
  }

  /// The sums of the device's weights, as products read them, or gradients; waits.
  WeightPrint print(bool gradients) {
    const auto blocks = weights_.blocks();
    return gradients ? device_.print(blocks, gradients_.data()) : device_.print(blocks, numbers_.data());
  }

 private:
  using Layer = train::LayerMemoryOf<Number>;
  static constexpr bool kNarrow = !std::same_as<Number, float>;  ///< fp32 weights are kept besides those of products

  train::TakeFrom<Number> taker() {
    return {.numbers = [this](std::size_t count) { return device_.template take<Number>(count); },
            .sums = [this](std::size_t count) { return device_.template take<float>(count); },
            .fused = fuses(job_)};
  }

  /// Weights, from their places, and gradients; and every Call on them.
  std::vector<train::CallOf<Number>> bound() {
    numbers_ = device_.template take<Number>(weights_.size());
    gradients_ = device_.template take<float>(weights_.size());
    weights_.keep_in(numbers_, gradients_);
    master_ = drawn(numbers_);
    return train::bind_calls<Number>(ops_, model_, job_.plan, routes_, weights_, memory_);
  }
  /// The fp32 numbers of weights that `numbers` are a copy of.
  std::span<float> drawn(std::span<Number> numbers) {
    std::span<float> master;
    if constexpr (kNarrow)
      master = device_.template take<float>(numbers.size());
    else
      master = numbers;
    device_.draw(weights_.blocks(), exact_, master.data(), kNarrow ? numbers.data() : nullptr);
    return master;
  }

  /// Moments; with several ranks weights and moments once more, for updates that count for nothing.
  void begin_moments() {
    const std::size_t kept = exact_ ? 0 : weights_.kept_size();
    for (Moments* one : {&moments_, &aside_moments_}) {
      if (one == &aside_moments_ && job_.plan.world() == 1) return;
      one->first = device_.template take<float>(kept);
      one->second = device_.template take<float>(kept);
    }
    aside_numbers_ = device_.template take<Number>(weights_.size());
    aside_master_ = drawn(aside_numbers_);
  }

  template <class Result>
  void multiply(const train::Op& op, const train::CallOf<Number>& call, std::span<Result> to) {
    if (casts_.takes(op))
      casts_.multiply(op, call, to.data());
    else
      device_.product(shape_of(call), call.a, call.b, to.data());
    if (exact_) fold(to);
  }
  template <class Result>
  void fold(std::span<Result> values) {
    if (!values.empty()) device_.fold(values.data(), values.size());
  }

  static ProductShape shape_of(const train::CallOf<Number>& call) {
    return {.m = call.m,
            .n = call.n,
            .k = call.k,
            .lda = call.lda,
            .ldb = call.ldb,
            .ldc = call.ldc,
            .a_turned = call.a_turned,
            .b_turned = call.b_turned,
            .kept = call.kept};
  }

  void attend(const train::Op& op) {
    const bool forward = op.pass == train::Pass::forward;
    if (fuses(job_)) return forward ? device_.attend(heads_, places(op)) : device_.attend_back(heads_, places(op));
    return forward ? attention_.forward(places(op)) : attention_.backward(places(op));
  }
  AttentionPlaces<Number> places(const train::Op& op) {
    Layer& kept = memory_.layer(op.layer, op.micro_batch);
    return {.qkv = kept.qkv.data(),
            .keys = memory_.keys.data(),
            .probabilities = kept.probabilities.data(),
            .attended = kept.attended.data(),
            .above = memory_.attended_gradient.data(),
            .qkv_gradient = memory_.qkv_gradient.data(),
            .keys_gradient = memory_.keys_gradient.data(),
            .scores_gradient = scores_.data(),
            .statistics = kept.statistics.data(),
            .room = room_.data(),
            .attended_count = kept.attended.size(),
            .qkv_count = memory_.qkv_gradient.size(),
            .keys_count = memory_.keys_gradient.size()};
  }
  // This rank's keys and values: rows of all of a token's numbers, and their place among those of all ranks.
  [[nodiscard]] std::size_t keys_begin() const { return heads_.heads * heads_.width; }
  [[nodiscard]] std::size_t key_width() const { return 2 * heads_.kv_heads * heads_.width; }
  [[nodiscard]] std::size_t key_rows() const { return heads_.sequences * heads_.own(); }
  [[nodiscard]] Number* own_keys(std::span<Number> all) const {
    return all.data() + heads_.cp_rank * key_rows() * key_width();
  }

  void update(std::int64_t bucket) {
    const train::WeightLayout::Kept mine = weights_.kept(bucket);
    const Moments& moments = aside_ ? aside_moments_ : moments_;
    device_.adam(mine.count,
                 {.weights = (aside_ ? aside_master_ : master_).data() + mine.begin,
                  .gradients = gradients_.data() + mine.begin,
                  .first = exact_ ? nullptr : moments.first.data() + mine.place,
                  .second = exact_ ? nullptr : moments.second.data() + mine.place},
                 kNarrow ? (aside_ ? aside_numbers_ : numbers_).data() + mine.begin : nullptr, exact_);
  }

  void each_of_layer(const train::Op& op) {
    Layer& kept = memory_.layer(op.layer, op.micro_batch);
    const bool forward = op.pass == train::Pass::forward;
    const std::size_t all = kept.x.size();
    if (op.role == train::Role::activate) {
      const std::size_t width = kept.active.size() / norm_.rows;
      if (forward) return device_.activate(norm_.rows, width, kept.both.data(), kept.active.data(), exact_);
      return device_.activate_back(norm_.rows, width, kept.both.data(), memory_.active_gradient.data(),
                                   memory_.both_gradient.data(), exact_);
    }
    if (op.role == train::Role::shared_activate) {
      const auto& own = kept.experts;
      const std::size_t width = own.shared_active.size() / norm_.rows;
      if (forward) return device_.activate(norm_.rows, width, own.shared_both.data(), own.shared_active.data(), exact_);
      return device_.activate_back(norm_.rows, width, own.shared_both.data(),
                                   memory_.scratch.shared_active_gradient.data(),
                                   memory_.scratch.shared_both_gradient.data(), exact_);
    }
    if (op.role == train::Role::residual)
      return device_.add(all, kept.middle.data(), memory_.sum.data(), memory_.after(op.layer, op.micro_batch).data(),
                         exact_);
    const bool first = op.role == train::Role::attention_norm;
    if (forward && !first) device_.add(all, kept.x.data(), memory_.sum.data(), kept.middle.data(), exact_);
    norm_of(op, first ? kept.x : kept.middle, first ? kept.normed : kept.mlp_normed,
            first ? kept.inverse : kept.mlp_inverse);
  }

  void norm_of(const train::Op& op, std::span<Number> x, std::span<Number> normed, std::span<float> inverse) {
    const train::Weight& weight = weights_.at(op.role, op.layer);
    if (op.pass == train::Pass::forward)
      return device_.norm(norm_, x.data(), weights_.weights(weight), normed.data(), inverse.data());
    device_.norm_back(norm_, x.data(), weights_.weights(weight), inverse.data(), memory_.normed_gradient.data(),
                      memory_.gradient.data(), weights_.gradients(weight), gain_parts_.data());
  }

  void each_of_end(const train::Op& op) {
    const bool forward = op.pass == train::Pass::forward;
    if (op.role == train::Role::embed) return embed(op);
    if (op.role == train::Role::loss) {
      if (forward)
        return device_.row_sums(norm_.rows, train::sized(op.n), memory_.logits.data(), memory_.row_sums.data(), exact_);
      return device_.loss_back({.rows = norm_.rows,
                                .columns = train::sized(op.n),
                                .first = at_.tp * op.n,
                                .share = 1 / static_cast<float>(job_.plan.tokens_per_step()),
                                .exact = exact_},
                               memory_.row_sums.data(), tokens_of(op.micro_batch) + norm_.rows, memory_.logits.data());
    }
    if (!forward) device_.clear(memory_.gradient.data(),
                                memory_.gradient.size());  // nothing came from above it
    norm_of(op, memory_.slots[memory_.slot(op.micro_batch)].back().x, memory_.final_normed, memory_.final_inverse);
  }

  void embed(const train::Op& op) {
    const train::Weight& table = weights_.at(train::Role::embed, -1);
    const auto first = static_cast<std::int64_t>(table.first_row);
    const std::int32_t* const tokens = tokens_of(op.micro_batch);
    if (op.pass == train::Pass::forward)
      return device_.embed(norm_.rows, table.columns, first, table.rows, tokens, weights_.weights(table),
                           memory_.layer(0, op.micro_batch).x.data());
    if (op.micro_batch == 0) device_.clear(weights_.gradients(table), table.size());
    device_.embed_back(norm_.rows, table.columns, first, table.rows, tokens, memory_.gradient.data(),
                       weights_.gradients(table));
    if (exact_) device_.fold(weights_.gradients(table), table.size());
  }

  /// The tokens of a micro-batch; those that follow them come after.
  [[nodiscard]] const std::int32_t* tokens_of(std::int64_t micro_batch) const {
    return tokens_.data() + 2 * norm_.rows * train::sized(micro_batch);
  }

  /// Adam's, of the weights that this rank updates.
  struct Moments {
    std::span<float> first, second;
  };

  train::RankJob job_;
  train::ModelShape model_;
  train::RankPosition at_;
  bool exact_;
  Device& device_;
  std::vector<train::Op> ops_;
  train::ExpertRoutes routes_;
  std::span<Number> numbers_, aside_numbers_;  ///< weights as products read them
  std::span<float> gradients_, master_, aside_master_, gain_parts_;
  train::RankWeights<Number> weights_;
  train::StepMemoryOf<Number> memory_;
  std::vector<train::CallOf<Number>> calls_;
  DeviceCasts<Device> casts_;
  DeviceExperts<Device> experts_;
  train::HeadShape heads_;
  DeviceAttention<Device> attention_;
  train::NormShape norm_;
  Moments moments_, aside_moments_;
  std::span<Number> scores_;
  std::span<std::byte> room_;
  std::span<std::int32_t> tokens_;
  std::vector<train::WeightBlock> gains_;
  bool aside_ = false;
};

}  // namespace assay::train_gpu
