// host_engine: one loop over the operations; every branch in it calls a library or a loop of step_math.
#include "workloads/train/host_engine.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include <cblas.h>
#include "workloads/train/host_memory.h"
#include "workloads/train/lane.h"
#include "workloads/train/step_math.h"

namespace assay::train {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kSeed = 20240417;  // of weights and tokens; any would do
constexpr float kExactTarget = 3;          // of the true token's logit in exact arithmetic

}  // namespace

class HostEngine::State {
 public:
  explicit State(const RankJob& job)
      : job_(job),
        model_(with_layers(job.model, job.plan.layers)),
        at_(position_of(job.plan, job.rank)),
        exact_(job.data == DataMode::ring),
        ops_(step_graph(job.model, job.plan, job.rank)),
        weights_(job.model, job.plan, job.rank, kSeed, exact_),
        memory_(model_, job.plan, at_.pp),
        calls_(bind_calls(ops_, model_, job.plan, weights_, memory_)),
        spans_(ops_.size()),
        waits_(buckets_of(job.model, job.plan, at_.pp).size()) {
    openblas_set_num_threads(1);  // more threads add up in another order from run to run
    const std::size_t t = memory_.tokens.size();
    if (job.plan.world() > 1) weights_.prepare_aside();
    head_ = {.sequences = sized(job.plan.micro_batch),
             .seq = sized(job.plan.seq),
             .heads = sized(model_.heads / job.plan.tp),
             .kv_heads = sized(model_.kv_heads / job.plan.tp),
             .width = sized(model_.head_dim),
             .exact = exact_};
    norm_ = {.rows = t, .columns = sized(model_.hidden), .exact = exact_};
  }

  void connect(Carry carry) {
    carry_ = std::move(carry);
    if (job_.beside && job_.plan.replicas() > 1) lane_.emplace(carry_, waits_.size());
  }

  void disconnect() {
    lane_.reset();
    carry_ = nullptr;
  }

  /// Operations from `first` on that `wanted` picks, at step `number`.
  template <class Wanted, class After>
  StepTimes run(std::uint64_t number, Wanted&& wanted, After&& after, Variant variant = Variant::full) {
    number_ = number;
    serial_ = variant == Variant::comm_only;
    aside_ = variant == Variant::compute_only && job_.plan.world() > 1;
    if (lane_) lane_->restart();
    std::ranges::fill(waits_, std::size_t{0});
    StepTimes times;
    const auto start = Clock::now();
    double now_s = 0;
    for (std::size_t i = 0; i < ops_.size(); ++i) {
      spans_[i] = {};
      if (!wanted(ops_[i])) continue;
      const double begin_s = now_s;
      if (watch_) watch_(i);
      carry_out(i);
      now_s = std::chrono::duration<double>(Clock::now() - start).count();
      spans_[i] = {.begin_s = begin_s, .end_s = now_s};
      if (ops_[i].kind == OpKind::collective) times.collective_s += now_s - begin_s;
      if (ops_[i].kind == OpKind::optimizer) times.optimizer_s += now_s - begin_s - waited_s_;
      times.collective_s += waited_s_;
      waited_s_ = 0;
      after(i);
    }
    wait_beside(pending_);
    times.collective_s += waited_s_;
    waited_s_ = 0;
    pending_ = 0;
    times.wall_s = std::chrono::duration<double>(Clock::now() - start).count();
    return times;
  }

  RankJob job_;
  ModelShape model_;
  RankPosition at_;
  bool exact_;
  std::vector<Op> ops_;
  HostWeights weights_;
  HostMemory memory_;
  std::vector<Call> calls_;
  std::vector<Span> spans_;
  std::vector<std::size_t> waits_;  ///< by bucket: how many collectives beside must be done before its update
  Carry carry_;
  Watch watch_;

 private:
  void carry_out(std::size_t index) {
    const Op& op = ops_[index];
    const Call& call = calls_[index];
    switch (op.kind) {
      case OpKind::gemm:
        multiply(call);
        if (exact_) fold(call.out);
        return;
      case OpKind::attention:
        if (op.pass == Pass::forward) return attend(head_, memory_.layer(op.layer, op.micro_batch));
        return attend_back(head_, memory_.layer(op.layer, op.micro_batch), memory_.attended_gradient,
                           memory_.qkv_gradient, memory_.scores_gradient);
      case OpKind::collective:
        return move(index);
      case OpKind::optimizer:
        wait_beside(waits_[sized(op.bucket)]);
        return weights_.update(op.bucket, aside_);
      case OpKind::elementwise:
        return op.layer >= 0 ? each_of_layer(op) : each_of_end(op);
    }
  }

  /// Waits for the first `count` collectives beside: time in collectives, wherever the step meets it.
  void wait_beside(std::size_t count) {
    if (!lane_ || count == 0) return;
    const auto begin = Clock::now();
    lane_->wait(count);
    waited_s_ += std::chrono::duration<double>(Clock::now() - begin).count();
  }

  void move(std::size_t index) {
    const Op& op = ops_[index];
    if (op.beside && lane_ && !serial_) {
      waits_[sized(op.bucket)] = pending_ = lane_->post(index);
      return;
    }
    carry_(index);
    if (exact_ && op.motion == Motion::all_reduce && op.role != Role::gradients) fold(calls_[index].out);
  }

  void each_of_layer(const Op& op) {
    LayerMemory& kept = memory_.layer(op.layer, op.micro_batch);
    const bool forward = op.pass == Pass::forward;
    if (op.role == Role::activate) {
      const std::size_t rows = norm_.rows, width = kept.active.size() / rows;
      if (forward) return activate(rows, width, kept.both.data(), kept.active.data(), exact_);
      return activate_back(rows, width, kept.both.data(), memory_.active_gradient.data(), memory_.both_gradient.data(),
                           exact_);
    }
    const std::size_t all = kept.x.size();
    if (op.role == Role::residual)
      return add(all, kept.middle.data(), memory_.sum.data(), memory_.after(op.layer, op.micro_batch).data(), exact_);
    const Weight& weight = weights_.at(op.role, op.layer);
    const bool first = op.role == Role::attention_norm;
    if (forward && !first) add(all, kept.x.data(), memory_.sum.data(), kept.middle.data(), exact_);
    const float* const x = first ? kept.x.data() : kept.middle.data();
    float* const inverse = first ? kept.inverse.data() : kept.mlp_inverse.data();
    if (forward)
      return norm(norm_, x, weights_.weights(weight), first ? kept.normed.data() : kept.mlp_normed.data(), inverse);
    norm_back(norm_, x, weights_.weights(weight), inverse, memory_.normed_gradient.data(), memory_.gradient.data(),
              weights_.gradients(weight));
  }

  void each_of_end(const Op& op) {
    const bool forward = op.pass == Pass::forward;
    if (op.role == Role::embed) return forward ? embed(op) : embed_back(op);
    if (op.role == Role::loss)
      return forward ? row_sums(norm_.rows, sized(op.n), memory_.logits.data(), memory_.row_sums.data(), exact_)
                     : loss_back(op);
    const Weight& weight = weights_.at(Role::final_norm, -1);
    const float* const x = memory_.slots[memory_.slot(op.micro_batch)].back().x.data();
    if (forward)
      return norm(norm_, x, weights_.weights(weight), memory_.final_normed.data(), memory_.final_inverse.data());
    std::ranges::fill(memory_.gradient, 0.0F);  // nothing came from above it
    norm_back(norm_, x, weights_.weights(weight), memory_.final_inverse.data(), memory_.normed_gradient.data(),
              memory_.gradient.data(), weights_.gradients(weight));
  }

  /// Token number `i` of a micro-batch of this replica, or what follows it; the same wherever the step is divided.
  [[nodiscard]] std::int64_t token(const Op& op, std::size_t i, std::uint64_t what) const {
    const std::int64_t replica = job_.data == DataMode::replicated ? 0 : at_.dp;
    const std::int64_t global = (replica * job_.plan.micro_batches + op.micro_batch) * job_.plan.tokens();
    const std::uint64_t bits = mixed(mixed(kSeed, number_), static_cast<std::uint64_t>(global) + i + what);
    return static_cast<std::int64_t>(bits % static_cast<std::uint64_t>(model_.vocab));
  }

  void embed(const Op& op) {
    const Weight& table = weights_.at(Role::embed, -1);
    float* to = memory_.layer(memory_.first_layer, op.micro_batch).x.data();
    for (std::size_t i = 0; i < norm_.rows; ++i, to += table.columns) {
      const std::size_t row = sized(token(op, i, 0)) - table.first_row;  // of another rank: far beyond the rows
      if (row < table.rows)
        std::copy_n(weights_.weights(table) + row * table.columns, table.columns, to);
      else
        std::fill_n(to, table.columns, 0.0F);
    }
  }

  void embed_back(const Op& op) {
    const Weight& table = weights_.at(Role::embed, -1);
    float* const gradients = weights_.gradients(table);
    if (op.micro_batch == 0) std::fill_n(gradients, table.size(), 0.0F);
    const float* from = memory_.gradient.data();
    for (std::size_t i = 0; i < norm_.rows; ++i, from += table.columns) {
      const std::size_t row = sized(token(op, i, 0)) - table.first_row;
      if (row < table.rows)
        add(table.columns, gradients + row * table.columns, from, gradients + row * table.columns, exact_);
    }
  }

  /// The logits become their gradient: softmax less the token that follows, over all tokens of the step.
  void loss_back(const Op& op) {
    const std::size_t columns = sized(op.n), first = sized(at_.tp) * columns;
    const float share = 1 / static_cast<float>(job_.plan.tokens_per_step());
    float* row = memory_.logits.data();
    for (std::size_t i = 0; i < norm_.rows; ++i, row += columns) {
      const std::size_t target = sized(token(op, i, 1)) - first;
      if (!exact_) {
        const float whole = share / memory_.row_sums[i];
        for (std::size_t column = 0; column < columns; ++column) row[column] = std::exp(row[column]) * whole;
      }
      if (target < columns) row[target] -= exact_ ? kExactTarget : share;
    }
    if (exact_) fold(memory_.logits);
  }

  HeadShape head_;
  NormShape norm_;
  std::uint64_t number_ = 0;
  bool aside_ = false;       ///< gradients of this step are not reduced: weights stay as they are
  bool serial_ = false;      ///< nothing runs beside: each collective by itself
  double waited_s_ = 0;      ///< for collectives beside, since it was last taken
  std::size_t pending_ = 0;  ///< collectives beside, posted in this step
  std::optional<Lane> lane_;
};

namespace {

void turn(std::span<float> values, std::size_t element, int bit) {
  float& value = values[element % values.size()];
  value = std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) ^ (std::uint32_t{1} << bit));
}

}  // namespace

HostEngine::HostEngine(const RankJob& job) {
  check_engine(job.model, job.plan);
  state_ = std::make_unique<State>(job);
}
HostEngine::~HostEngine() = default;

const std::vector<Op>& HostEngine::ops() const { return state_->ops_; }
std::span<const HostEngine::Span> HostEngine::spans() const { return state_->spans_; }
void HostEngine::connect(Carry carry) { state_->connect(std::move(carry)); }
void HostEngine::disconnect() { state_->disconnect(); }
void HostEngine::watch(Watch watch) { state_->watch_ = std::move(watch); }
std::vector<std::span<float>> HostEngine::kept() { return state_->weights_.kept(); }
std::uint64_t HostEngine::print(bool gradients) const { return state_->weights_.print(gradients); }
std::size_t HostEngine::output_size(std::size_t op) const { return state_->calls_[op].out.size(); }

std::vector<Transfer> HostEngine::transfers() {
  std::vector<Transfer> all;
  for (std::size_t i = 0; i < state_->ops_.size(); ++i) {
    if (state_->ops_[i].kind == OpKind::collective) all.push_back({.op = i, .data = state_->calls_[i].out});
  }
  return all;
}

StepTimes HostEngine::step(Variant variant, std::uint64_t number) {
  if (variant != Variant::comm_only) state_->weights_.clear_gains();
  const auto wanted = [variant](const Op& op) {
    if (variant == Variant::full) return true;
    return (op.kind == OpKind::collective) == (variant == Variant::comm_only);
  };
  return state_->run(
      number, wanted, [](std::size_t) {}, variant);
}

std::vector<std::uint64_t> HostEngine::traced(std::uint64_t number, const std::optional<Flip>& flip) {
  std::vector<std::uint64_t> prints(state_->ops_.size(), 0);
  state_->weights_.clear_gains();
  const auto wanted = [](const Op& op) { return op.pass != Pass::update && op.role != Role::gradients; };
  (void)state_->run(number, wanted, [&](std::size_t i) {  // its times are not a step's
    if (flip && flip->op == i) turn(state_->calls_[i].out, flip->element, flip->bit);
    prints[i] = print_of(state_->calls_[i].out);
  });
  return prints;
}

void HostEngine::update() {
  const auto wanted = [](const Op& op) { return op.pass == Pass::update || op.role == Role::gradients; };
  (void)state_->run(0, wanted, [](std::size_t) {});  // its times are not a step's
}

std::uint64_t HostEngine::own_gradients(std::uint64_t number, const std::optional<Flip>& flip) {
  (void)traced(number, flip);  // the gradients stay
  return print(true);
}

std::uint64_t HostEngine::not_finite() {
  std::uint64_t wrong = 0;
  const auto buckets = static_cast<std::int64_t>(state_->waits_.size());
  for (std::int64_t bucket = 0; bucket < buckets; ++bucket) {
    for (const auto values : {state_->weights_.bucket_weights(bucket), state_->weights_.bucket_gradients(bucket)})
      wrong += static_cast<std::uint64_t>(std::ranges::count_if(values, [](float one) { return !std::isfinite(one); }));
  }
  return wrong;
}

void HostEngine::flip_weight(std::size_t element, int bit) { turn(state_->weights_.bucket_weights(0), element, bit); }

}  // namespace assay::train
