// device_core: the core of the executor on a device: the products and kernels of each operation. Only the
// requests are here; probes send them to a GPU, tests to the host.
#pragma once

#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "workloads/train/engine/executor.h"
#include "workloads/train/engine/host_memory.h"
#include "workloads/train/engine/host_weights.h"
#include "workloads/train/graph/step_job.h"
#include "workloads/train_gpu/device_attention.h"
#include "workloads/train_gpu/device_experts.h"
#include "workloads/train_gpu/device_shapes.h"

namespace assay::train_gpu {

/// A device is all of this, in the order in which it is asked: take(count) (memory of numbers that are 0), copy_in(to,
/// values), copy_out(values, from) (which waits), tokens(values) (this step's tokens, for the kernels that read them),
/// product(shape, a, b, c), clear, fold, add, norm, norm_back, activate, activate_back, softmax, softmax_back,
/// row_sums, loss_back, embed, embed_back, adam and copy_rows, each as its namesake of step_math; table(numbers) (which
/// are kept with the memory), gather_rows, sum_rows, gates and gates_back, which experts need; begin, mark, end and
/// seconds of the executor's core. Only copy_out and end wait.
template <class Device>
class DeviceCore {
 public:
  /// Takes all memory of the device, and on the host the weights that it begins from. `block`: queries that are done
  /// together. Precondition: check_engine() and check_device_engine() pass.
  DeviceCore(const train::RankJob& job, std::size_t block, Device& device)
      : job_(job),
        model_(train::with_layers(job.model, job.plan.layers)),
        at_(train::position_of(job.plan, job.rank)),
        exact_(job.data == train::DataMode::ring),
        device_(device),
        ops_(train::step_graph(job.model, job.plan, job.rank)),
        routes_(job.model, job.plan, job.rank, job.data == train::DataMode::replicated),
        host_(job.model, job.plan, job.rank, kDeviceSeed, exact_),
        memory_(model_, job.plan, at_, routes_, [&](std::size_t count) { return device.take(count); }),
        calls_(train::bind_calls(ops_, model_, job.plan, routes_, host_, memory_)),
        experts_(
            model_, job_.plan, ops_, routes_, host_, [this](const train::Weight& one) { return weights(one); },
            [this](const train::Weight& one) { return gradients(one); }, memory_, exact_, device),
        heads_(heads_of()),
        attention_(heads_, block, device) {
    buckets_ = static_cast<std::int64_t>(train::buckets_of(job.model, job.plan, at_.pp).size());
    take_weights();
    scores_ = device.take(DeviceAttention<Device>::scratch(heads_, block));
    norm_ = {.rows = train::sized(job.plan.tokens()), .columns = train::sized(model_.hidden), .exact = exact_};
  }

  [[nodiscard]] const std::vector<train::Op>& ops() const { return ops_; }
  [[nodiscard]] const std::vector<train::Call>& calls() const { return calls_; }
  [[nodiscard]] const train::ExpertRoutes& routes() const { return routes_; }
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
    const auto each = train::sized(job_.plan.tokens());
    tokens_.clear();
    for (std::int64_t i = 0; i < job_.plan.micro_batches; ++i) {
      for (std::size_t token = 0; token < each; ++token) tokens_.push_back(token_of(number, i, token, 0));
      for (std::size_t token = 0; token < each; ++token) tokens_.push_back(token_of(number, i, token, 1));
    }
    device_.tokens(tokens_);
    for (const auto& gain : gains_) device_.clear(gain.data(), gain.size());
  }

  // The calls of the executor.
  void begin(std::size_t calls) { device_.begin(calls); }
  void mark(std::size_t call) { device_.mark(call); }
  void end() { device_.end(); }
  [[nodiscard]] double seconds(std::size_t call) const { return device_.seconds(call); }
  void compute(std::size_t place) {
    const train::Op& op = ops_[place];
    const train::Call& call = calls_[place];
    if (call.of_experts) return experts_.compute(op);
    switch (op.kind) {
      case train::OpKind::gemm:
        if (op.role == train::Role::router) experts_.before_router(op);
        device_.product(shape_of(call), call.a, call.b, call.c);
        if (exact_) device_.fold(call.out.data(), call.out.size());
        return;
      case train::OpKind::attention:
        return op.pass == train::Pass::forward ? attention_.forward(places(op)) : attention_.backward(places(op));
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
    const train::LayerMemory& kept = memory_.layer(op.layer, op.micro_batch);
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
      device_.fold(calls_[place].out.data(), calls_[place].out.size());
    }
  }

  /// The sums of the device's weights or gradients, computed by the host; waits.
  train::RankPrint print(bool gradients) {
    for (std::int64_t bucket = 0; bucket < buckets_; ++bucket) {
      const auto to = gradients ? host_.bucket_gradients(bucket) : host_.bucket_weights(bucket);
      device_.copy_out(to, on_device(to.data()));
    }
    return {.shared = host_.print(gradients, false), .experts = host_.print(gradients, true)};
  }

  /// How many numbers of weights and gradients are not finite; waits.
  std::uint64_t not_finite() {
    std::uint64_t wrong = 0;
    for (const bool gradients : {false, true}) {
      (void)print(gradients);  // brings them to the host
      for (std::int64_t bucket = 0; bucket < buckets_; ++bucket) {
        for (const float one : gradients ? host_.bucket_gradients(bucket) : host_.bucket_weights(bucket))
          wrong += std::isfinite(one) ? 0 : 1;
      }
    }
    return wrong;
  }

 private:
  [[nodiscard]] train::HeadShape heads_of() const {
    return {.sequences = train::sized(job_.plan.micro_batch),
            .seq = train::sized(job_.plan.seq),
            .heads = train::sized(model_.heads / job_.plan.tp),
            .kv_heads = train::sized(model_.kv_heads / job_.plan.tp),
            .width = train::sized(model_.head_dim),
            .cp = train::sized(job_.plan.cp),
            .cp_rank = train::sized(at_.cp),
            .exact = exact_};
  }

  /// Weights, gradients and moments of the device, and every Call on them in place of the host's.
  void take_weights() {
    const std::vector<std::span<float>> kept = host_.kept();
    weights_host_ = kept[0];
    gradients_host_ = {host_.bucket_gradients(0).data(), weights_host_.size()};
    weights_ = device_.take(weights_host_.size());
    gradients_ = device_.take(weights_host_.size());
    device_.copy_in(weights_.data(), weights_host_);
    first_ = device_.take(kept[1].size());
    second_ = device_.take(kept[2].size());
    if (job_.plan.world() > 1) {
      aside_weights_ = device_.take(weights_host_.size());
      device_.copy_in(aside_weights_.data(), weights_host_);
      aside_first_ = device_.take(kept[1].size());
      aside_second_ = device_.take(kept[2].size());
    }
    for (train::Call& call : calls_) {
      call.a = on_device(call.a);
      call.b = on_device(call.b);
      call.c = on_device(call.c);
      call.out = {on_device(call.out.data()), call.out.size()};
    }
    for (const train::Op& op : ops_) {
      const bool norm = op.role == train::Role::attention_norm || op.role == train::Role::mlp_norm ||
                        op.role == train::Role::final_norm;
      if (!norm || op.pass != train::Pass::forward || op.micro_batch != 0) continue;
      const train::Weight& gain = host_.at(op.role, op.layer);
      gains_.emplace_back(on_device(host_.gradients(gain)), gain.size());
    }
  }

  template <class Number>
  [[nodiscard]] Number* on_device(Number* host) const {
    const auto within = [&](std::span<float> all) { return host >= all.data() && host < all.data() + all.size(); };
    if (host == nullptr) return host;
    if (within(weights_host_)) return weights_.data() + (host - weights_host_.data());
    if (within(gradients_host_)) return gradients_.data() + (host - gradients_host_.data());
    return host;  // of the device already
  }
  float* weights(const train::Weight& one) { return on_device(host_.weights(one)); }
  float* gradients(const train::Weight& one) { return on_device(host_.gradients(one)); }

  static ProductShape shape_of(const train::Call& call) {
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

  AttentionPlaces places(const train::Op& op) {
    train::LayerMemory& kept = memory_.layer(op.layer, op.micro_batch);
    return {.qkv = kept.qkv.data(),
            .keys = memory_.keys.data(),
            .probabilities = kept.probabilities.data(),
            .attended = kept.attended.data(),
            .above = memory_.attended_gradient.data(),
            .qkv_gradient = memory_.qkv_gradient.data(),
            .keys_gradient = memory_.keys_gradient.data(),
            .scores_gradient = scores_.data(),
            .attended_count = kept.attended.size(),
            .qkv_count = memory_.qkv_gradient.size(),
            .keys_count = memory_.keys_gradient.size()};
  }
  // This rank's keys and values: rows of all of a token's numbers, and their place among those of all ranks.
  [[nodiscard]] std::size_t keys_begin() const { return heads_.heads * heads_.width; }
  [[nodiscard]] std::size_t key_width() const { return 2 * heads_.kv_heads * heads_.width; }
  [[nodiscard]] std::size_t key_rows() const { return heads_.sequences * heads_.own(); }
  [[nodiscard]] float* own_keys(std::span<float> all) const {
    return all.data() + heads_.cp_rank * key_rows() * key_width();
  }

  void update(std::int64_t bucket) {
    const train::HostWeights::Share mine = host_.share(bucket);
    std::size_t kept = 0;
    for (std::int64_t before = 0; before < bucket; ++before) kept += host_.share(before).count;
    const auto begin =
        static_cast<std::size_t>(host_.bucket_weights(bucket).data() - weights_host_.data()) + mine.begin;
    device_.adam(mine.count,
                 {.weights = (aside_ ? aside_weights_ : weights_).data() + begin,
                  .gradients = gradients_.data() + begin,
                  .first = exact_ ? nullptr : (aside_ ? aside_first_ : first_).data() + kept,
                  .second = exact_ ? nullptr : (aside_ ? aside_second_ : second_).data() + kept},
                 exact_);
  }

  void each_of_layer(const train::Op& op) {
    train::LayerMemory& kept = memory_.layer(op.layer, op.micro_batch);
    const bool forward = op.pass == train::Pass::forward;
    const std::size_t all = kept.x.size();
    if (op.role == train::Role::activate) {
      const std::size_t width = kept.active.size() / norm_.rows;
      if (forward) return device_.activate(norm_.rows, width, kept.both.data(), kept.active.data(), exact_);
      return device_.activate_back(norm_.rows, width, kept.both.data(), memory_.active_gradient.data(),
                                   memory_.both_gradient.data(), exact_);
    }
    if (op.role == train::Role::shared_activate) {
      const train::ExpertMemory& own = kept.experts;
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

  void norm_of(const train::Op& op, std::span<float> x, std::span<float> normed, std::span<float> inverse) {
    const train::Weight& weight = host_.at(op.role, op.layer);
    if (op.pass == train::Pass::forward)
      return device_.norm(norm_, x.data(), weights(weight), normed.data(), inverse.data());
    device_.norm_back(norm_, x.data(), weights(weight), inverse.data(), memory_.normed_gradient.data(),
                      memory_.gradient.data(), gradients(weight));
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
                               memory_.row_sums.data(), place_of_tokens(op.micro_batch) + norm_.rows,
                               memory_.logits.data());
    }
    if (!forward) device_.clear(memory_.gradient.data(),
                                memory_.gradient.size());  // nothing came from above it
    norm_of(op, memory_.slots[memory_.slot(op.micro_batch)].back().x, memory_.final_normed, memory_.final_inverse);
  }

  void embed(const train::Op& op) {
    const train::Weight& table = host_.at(train::Role::embed, -1);
    const auto first = static_cast<std::int64_t>(table.first_row);
    const std::size_t tokens = place_of_tokens(op.micro_batch);
    if (op.pass == train::Pass::forward)
      return device_.embed(norm_.rows, table.columns, first, table.rows, tokens, weights(table),
                           memory_.layer(0, op.micro_batch).x.data());
    if (op.micro_batch == 0) device_.clear(gradients(table), table.size());
    device_.embed_back(norm_.rows, table.columns, first, table.rows, tokens, memory_.gradient.data(), gradients(table));
    if (exact_) device_.fold(gradients(table), table.size());
  }

  /// Where the tokens of a micro-batch begin among those of the step; those that follow them come after.
  [[nodiscard]] std::size_t place_of_tokens(std::int64_t micro_batch) const {
    return 2 * norm_.rows * train::sized(micro_batch);
  }
  [[nodiscard]] std::int32_t token_of(std::uint64_t number, std::int64_t micro_batch, std::size_t own,
                                      std::uint64_t what) const {
    train::RankPosition at = at_;
    if (job_.data == train::DataMode::replicated) at.dp = 0;
    const std::uint64_t place = train::place_in_step(job_.plan, at, micro_batch, own);
    return static_cast<std::int32_t>(train::mixed(train::mixed(kDeviceSeed, number), place + what) %
                                     static_cast<std::uint64_t>(model_.vocab));
  }

  train::RankJob job_;
  train::ModelShape model_;
  train::RankPosition at_;
  bool exact_;
  Device& device_;
  std::vector<train::Op> ops_;
  train::ExpertRoutes routes_;
  train::HostWeights host_;  ///< layout, first values, and room for copies read back
  train::StepMemory memory_;
  std::vector<train::Call> calls_;
  DeviceExperts<Device> experts_;
  train::HeadShape heads_;
  DeviceAttention<Device> attention_;
  train::NormShape norm_;
  std::int64_t buckets_ = 0;
  std::span<float> weights_host_, gradients_host_;
  std::span<float> weights_, gradients_, first_, second_, aside_weights_, aside_first_, aside_second_, scores_;
  std::vector<std::span<float>> gains_;
  std::vector<std::int32_t> tokens_;
  bool aside_ = false;
};

}  // namespace assay::train_gpu
