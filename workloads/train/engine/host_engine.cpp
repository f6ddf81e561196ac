// host_engine: assembles the executor with the core and the line of this host.
#include "workloads/train/engine/host_engine.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>
#include <utility>

#include "workloads/train/engine/collective_queue.h"
#include "workloads/train/engine/executor.h"
#include "workloads/train/engine/host_core.h"

namespace assay::train {
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
