// host_engine: assembles the executor with the core and the line of this host.
#include "workloads/train/engine/host_engine.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <stdexcept>
#include <utility>

#include <cblas.h>

#include "workloads/train/engine/executor.h"

namespace assay::train {

HostCore::HostCore(const RankJob& job)
    : job_(job),
      model_(with_layers(job.model, job.plan.layers)),
      at_(position_of(job.plan, job.rank)),
      exact_(job.data == DataMode::ring),
      ops_(step_graph(job.model, job.plan, job.rank)),
      routes_(job.model, job.plan, job.rank, job.data == DataMode::replicated),
      weights_(job.model, job.plan, job.rank, kStepSeed, exact_),
      memory_(model_, job.plan, at_, routes_, room_.taker()),
      experts_(model_, job_.plan, routes_, weights_, memory_, exact_),
      calls_(bind_calls<float>(ops_, model_, job.plan, routes_, weights_, memory_)),
      marks_(2 * ops_.size() + 1) {
  openblas_set_num_threads(1);  // more threads add up in another order from run to run
  const std::size_t t = sized(job.plan.tokens());
  if (job.plan.world() > 1) weights_.prepare_aside();
  head_ = {.sequences = sized(job.plan.micro_batch),
           .seq = sized(job.plan.seq),
           .heads = sized(model_.heads / job.plan.tp),
           .kv_heads = sized(model_.kv_heads / job.plan.tp),
           .width = sized(model_.head_dim),
           .cp = sized(job.plan.cp),
           .cp_rank = sized(at_.cp),
           .exact = exact_};
  norm_ = {.rows = t, .columns = sized(model_.hidden), .exact = exact_};
}

void HostCore::start(std::uint64_t number, bool aside) {
  tokens_ = tokens_of_step(job_, number);
  aside_ = aside && job_.plan.world() > 1;
}

void HostCore::compute(std::size_t place) {
  const Op& op = ops_[place];
  const Call& call = calls_[place];
  if (call.of_experts) return experts_.compute(op);
  switch (op.kind) {
    case OpKind::gemm:
      if (op.role == Role::router) experts_.before_router(op);
      multiply(call);
      if (exact_) fold(call.result());
      return;
    case OpKind::attention:
      if (op.pass == Pass::forward) return attend(head_, memory_.layer(op.layer, op.micro_batch), memory_.keys);
      return attend_back(head_, memory_.layer(op.layer, op.micro_batch), memory_.keys,
                         {.above = memory_.attended_gradient,
                          .qkv = memory_.qkv_gradient,
                          .keys = memory_.keys_gradient,
                          .scores = memory_.scores_gradient});
    case OpKind::optimizer:
      return weights_.update(op.bucket, aside_);
    case OpKind::elementwise:
      return op.layer >= 0 ? each_of_layer(op) : each_of_end(op);
    case OpKind::collective:
      break;
  }
  throw std::logic_error("a collective is not for the core");
}

void HostCore::lend(std::size_t place) {
  const Op& op = ops_[place];
  if (op.motion == Motion::exchange) return lend_keys(head_, memory_.layer(op.layer, op.micro_batch).qkv, memory_.keys);
  if (is_of_experts(model_, op)) experts_.lend(op);
}

void HostCore::take(std::size_t place) {
  const Op& op = ops_[place];
  if (op.motion == Motion::exchange_sums) return take_keys(head_, memory_.keys_gradient, memory_.qkv_gradient);
  if (is_of_experts(model_, op)) return experts_.take(op);
  if (exact_ && op.motion == Motion::all_reduce && op.role != Role::gradients) fold(calls_[place].result());
}

void HostCore::each_of_layer(const Op& op) {
  LayerMemory& kept = memory_.layer(op.layer, op.micro_batch);
  const bool forward = op.pass == Pass::forward;
  if (op.role == Role::activate) {
    const std::size_t rows = norm_.rows, width = kept.active.size() / rows;
    if (forward) return activate(rows, width, kept.both.data(), kept.active.data(), exact_);
    return activate_back(rows, width, kept.both.data(), memory_.active_gradient.data(), memory_.both_gradient.data(),
                         exact_);
  }
  if (op.role == Role::shared_activate) {
    const std::size_t width = kept.experts.shared_active.size() / norm_.rows;
    if (forward)
      return activate(norm_.rows, width, kept.experts.shared_both.data(), kept.experts.shared_active.data(), exact_);
    return activate_back(norm_.rows, width, kept.experts.shared_both.data(),
                         memory_.scratch.shared_active_gradient.data(), memory_.scratch.shared_both_gradient.data(),
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

void HostCore::each_of_end(const Op& op) {
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

/// Token number `i` of a micro-batch of this rank, or the next one; the same for every division of the step.
std::int64_t HostCore::token(const Op& op, std::size_t i, std::size_t what) const {
  return tokens_.token((2 * sized(op.micro_batch) + what) * norm_.rows + i);
}

void HostCore::embed(const Op& op) {
  const Weight& table = weights_.at(Role::embed, -1);
  float* to = memory_.layer(0, op.micro_batch).x.data();
  for (std::size_t i = 0; i < norm_.rows; ++i, to += table.columns) {
    const std::size_t row = sized(token(op, i, 0)) - table.first_row;  // of another rank: far beyond the rows
    if (row < table.rows)
      std::copy_n(weights_.weights(table) + row * table.columns, table.columns, to);
    else
      std::fill_n(to, table.columns, 0.0F);
  }
}

void HostCore::embed_back(const Op& op) {
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
void HostCore::loss_back(const Op& op) {
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

/// Calls a Carry. Without one a step of several ranks cannot be walked.
class HostLine {
 public:
  /// `posted` is the largest number of collectives that are posted in a step; 0: none is, and no thread is made.
  void connect(Carry carry, std::size_t posted) {
    carry_ = std::move(carry);
    if (posted > 0) lane_.emplace(carry_, posted);
  }
  /// Ends the thread; the collective that is under way is waited for.
  void disconnect() {
    lane_.reset();
    carry_ = nullptr;
  }

  void restart() {
    if (lane_) lane_->restart();
  }
  void carry(std::size_t op) { carry_(op); }
  void post(std::size_t op) { (void)lane_.value().post(op); }  // the executor has counted it
  void wait(std::size_t posted) { lane_.value().wait(posted); }

 private:
  Carry carry_;
  std::optional<CollectiveQueue> lane_;
};

namespace {

void turn(std::span<float> values, std::size_t element, int bit) {
  float& value = values[element % values.size()];
  value = std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) ^ (std::uint32_t{1} << bit));
}

Part part_of(Variant variant) {
  switch (variant) {
    case Variant::compute_only:
      return Part::computation;
    case Variant::comm_only:
      return Part::communication;
    default:
      return Part::full;
  }
}

}  // namespace

class HostEngine::State {
 public:
  explicit State(const RankJob& job)
      : buckets(buckets_of(job.model, job.plan, position_of(job.plan, job.rank).pp).size()),
        posted(job.beside && job.plan.replicas() > 1 ? buckets : 0),
        core(job),
        executor(core.ops(), job.beside, core, line) {}

  template <class After>
  StepTimes walk(Part part, std::uint64_t number, const After& after) {
    core.start(number, part == Part::computation);
    const auto before = [this](std::size_t op) {
      if (watch) watch(op);
    };
    return executor.walk(part, before, after);
  }

  std::size_t buckets, posted;  ///< all, and how many can be reduced concurrently
  HostCore core;
  HostLine line;
  Executor<HostCore, HostLine> executor;
  Watch watch;
};

HostEngine::HostEngine(const RankJob& job) {
  check_engine(job.model, job.plan);
  state_ = std::make_unique<State>(job);
}
HostEngine::~HostEngine() = default;

const std::vector<Op>& HostEngine::ops() const { return state_->core.ops(); }
std::span<const OpSpan> HostEngine::spans() const { return state_->executor.spans(); }
void HostEngine::connect(Carry carry) { state_->line.connect(std::move(carry), state_->posted); }
void HostEngine::disconnect() { state_->line.disconnect(); }
void HostEngine::watch(Watch watch) { state_->watch = std::move(watch); }
std::vector<std::span<float>> HostEngine::kept() { return state_->core.weights().states(); }
RankPrint HostEngine::print(bool gradients) const {
  const HostWeights& weights = state_->core.weights();
  return {.shared = weights.print(gradients, false), .experts = weights.print(gradients, true)};
}

std::vector<Transfer> HostEngine::transfers() {
  std::vector<Transfer> all;
  for (std::size_t i = 0; i < ops().size(); ++i) {
    const Op& op = ops()[i];
    if (op.kind != OpKind::collective) continue;
    const Call& call = state_->core.calls()[i];
    Transfer& one = all.emplace_back(Transfer{.op = i, .data = call.result()});
    if (op.motion != Motion::all_to_all) continue;
    one.sent = call.sent;
    ExchangeCounts counts =
        exchange_counts(op, state_->core.routes().at(op.layer, op.micro_batch), state_->core.width());
    one.to = std::move(counts.to);
    one.from = std::move(counts.from);
  }
  return all;
}

StepTimes HostEngine::step(Variant variant, std::uint64_t number) {
  if (variant != Variant::comm_only) state_->core.weights().clear_gains();
  return state_->walk(part_of(variant), number, [](std::size_t) {});
}

std::vector<std::uint64_t> HostEngine::traced(std::uint64_t number, const std::optional<Flip>& flip) {
  const std::vector<Call>& calls = state_->core.calls();
  std::vector<std::uint64_t> prints(ops().size(), 0);
  state_->core.weights().clear_gains();
  (void)state_->walk(Part::gradients, number, [&](std::size_t i) {  // its times are not a step's
    if (flip && flip->op == i) turn(calls[i].result(), flip->element, flip->bit);
    prints[i] = print_of(calls[i].result());
  });
  return prints;
}

void HostEngine::update() {
  (void)state_->walk(Part::update, 0, [](std::size_t) {});  // its times are not a step's
}

RankPrint HostEngine::own_gradients(std::uint64_t number, const std::optional<Flip>& flip) {
  (void)traced(number, flip);  // the gradients stay
  return print(true);
}

std::uint64_t HostEngine::not_finite() {
  std::uint64_t wrong = 0;
  HostWeights& weights = state_->core.weights();
  for (std::int64_t bucket = 0; bucket < static_cast<std::int64_t>(state_->buckets); ++bucket) {
    for (const auto values : {weights.bucket_weights(bucket), weights.bucket_gradients(bucket)})
      wrong += static_cast<std::uint64_t>(std::ranges::count_if(values, [](float one) { return !std::isfinite(one); }));
  }
  return wrong;
}

double HostEngine::gradient_square() {
  double sum = 0;
  for (std::int64_t bucket = 0; bucket < static_cast<std::int64_t>(state_->buckets); ++bucket) {
    for (const float one : state_->core.weights().bucket_gradients(bucket)) sum += double{one} * double{one};
  }
  return sum;
}

void HostEngine::flip_weight(std::size_t element, int bit, std::int64_t bucket) {
  turn(state_->core.weights().bucket_weights(bucket), element, bit);
}

}  // namespace assay::train
