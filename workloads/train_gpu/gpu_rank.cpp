// gpu_rank: one GPU's part of every request. A failure is an answer; only the leader decides about its meaning.
#include "workloads/train_gpu/gpu_rank.h"

#include <algorithm>
#include <chrono>
#include <iostream>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "probes/collective/limits.h"
#include "probes/collective/rank_loop.h"
#include "probes/core/json_io.h"
#include "probes/core/statistics.h"
#include "probes/cuda/device.h"
#include "probes/nvml/gpu_watch.h"
#include "workloads/train/engine/executor.h"
#include "workloads/train/engine/host_engine.h"
#include "workloads/train/step/rank_job.h"
#include "workloads/train/step/step_evidence.h"
#include "workloads/train_gpu/attention_trial.h"
#include "workloads/train_gpu/cuda_device.h"
#include "workloads/train_gpu/device_core.h"
#include "workloads/train_gpu/device_line.h"
#include "workloads/train_gpu/device_rehearsal.h"
#include "workloads/train_gpu/fused_attention.h"
#include "workloads/train_gpu/nccl_groups.h"
#include "workloads/train_gpu/step_in_hand.h"

namespace assay::train_gpu {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

// Left to libraries: kernels that they load at their first call, and a communicator's buffers. Inferred, not measured.
constexpr std::uint64_t kForKernels = std::uint64_t{2} << 30U, kForCommunicator = std::uint64_t{1} << 29U;

/// The GPU of this rank, made current before anything of it is allocated.
cuda::Device enter_gpu(const std::string& uuid) {
  cuda::Device device = cuda::choose_devices(cuda::all_devices(), uuid).front();
  cuda::use(device);
  return device;
}

/// Replicas vote by bits, for which sums must have one order.
SumOrder sum_order(const train::RankJob& job) {
  if (job.data == train::DataMode::replicated) return SumOrder::one;
  return job.attention == train::AttentionKind::fused_unordered ? SumOrder::any : SumOrder::one_if_offered;
}

/// The longest wait for a first walk of `ops`; between ranks at the rate of batch_limit().
Seconds untimed(const std::vector<train::Op>& ops, const train::ParallelPlan& plan) {
  double flop = 0, bytes = 0;
  std::uint64_t moved = 0;
  for (const train::Op& op : ops) {
    flop += static_cast<double>(op.flop);
    if (op.kind == train::OpKind::collective)
      moved += static_cast<std::uint64_t>(op.bytes);
    else
      bytes += static_cast<double>(op.bytes);
  }
  const double alone = collective::untimed_limit(flop, bytes).count;
  const double together = moved == 0 ? 0 : collective::batch_limit({moved}, static_cast<int>(plan.world())).count;
  return {std::min(collective::kBatchLimit.count, alone + together)};
}

json words(const WeightPrint& print) { return {print.shared, print.experts}; }

/// Steps of one mode of data.
class RankSteps {
 public:
  virtual ~RankSteps() = default;
  virtual train::StepTimes walk(train::Part part, std::uint64_t number) = 0;
  virtual WeightPrint print(bool gradients) = 0;
  [[nodiscard]] virtual std::span<const train::OpSpan> spans() const = 0;
  /// What the GPU is at in a walk of `part`; not of a graph, whose marks keep the state of the launch before.
  [[nodiscard]] virtual cuda::InHand in_hand(train::Part part) const = 0;
};

/// Device, core, line and executor of one mode of data.
template <class Number>
class RankSetup final : public RankSteps {
 public:
  RankSetup(const train::RankJob& job, RankGpu& gpu, NcclGroups& groups)
      : gpu_(gpu),
        graph_wanted_(job.graph),
        device_(gpu),
        core_(job, kQueriesTogether, device_),
        line_(job, core_, groups),
        executor_(core_.ops(), job.beside, core_, line_) {}

  train::StepTimes walk(train::Part part, std::uint64_t number) override {
    core_.start(number, part);
    const auto walk = [&] {
      return executor_.walk(
          part, [](std::size_t) {}, [](std::size_t) {});
    };
    // Libraries load their kernels at the first call, which no graph may record.
    if (part != train::Part::full || !graph_wanted_ || !std::exchange(walked_, true)) return walk();
    if (!graph_) graph_ = device_.recorded([&] { (void)walk(); });  // has no times yet
    cuda::launch(graph_, gpu_.stream());
    cuda::wait(gpu_.stream());
    return executor_.times(part);
  }
  WeightPrint print(bool gradients) override { return core_.print(gradients); }
  [[nodiscard]] std::span<const train::OpSpan> spans() const override { return executor_.spans(); }
  [[nodiscard]] cuda::InHand in_hand(train::Part part) const override {
    if (graph_ && part == train::Part::full) return {};
    return step_in_hand(core_.ops(), executor_.calls(part), [&](std::size_t call) { return device_.has_passed(call); });
  }

 private:
  RankGpu& gpu_;
  bool graph_wanted_, walked_ = false;
  CudaDevice<Number> device_;
  DeviceCore<CudaDevice<Number>> core_;
  DeviceLine<NcclGroups, Number> line_;
  train::Executor<DeviceCore<CudaDevice<Number>>, DeviceLine<NcclGroups, Number>> executor_;
  cuda::Graph graph_;  ///< of a full step
};

/// The state of one rank between requests.
class GpuSession {
 public:
  explicit GpuSession(const train::RankStart& start)
      : job_(start.job),
        gpu_(enter_gpu(start.address)),
        watch_(gpu_.pci_bus_id),
        ops_(train::step_graph(job_.model, job_.plan, job_.rank)),
        untimed_(untimed(ops_, job_.plan)),
        products_(job_.factors) {
    if (job_.plan.world() > 1) nccl_.emplace();
  }

  json answer(const json& request) {
    const std::string what = request.at("do");
    if (what == "attention") return attention();
    if (what == "hello") return hello(static_cast<train::AttentionKind>(request.at("attention").get<int>()));
    if (what == "introduce")
      return {{"word", nccl_ ? NcclGroups::ids(*nccl_, job_.plan, job_.rank) : std::vector<std::string>{}}};
    if (what == "enter") return enter(request.at("words"));
    if (what == "agree") return agree(request.at("algorithms"));
    if (what == "compare") return compare();
    if (what == "exact") return exact(request.at("steps").get<std::uint64_t>());
    if (what == "reference") return reference(request.at("steps").get<std::uint64_t>());
    if (what == "prepare") return prepare(job_.data);
    if (what == "steps") return steps(request);
    if (what == "votes") return votes(request.at("number").get<std::uint64_t>());
    if (what == "settle") return settle();
    if (what == "watch") return {{"conditions", to_json(watch_.conditions())}};
    if (what == "facts")
      return {{"cublaslt", products_.version()},
              {"nccl", nccl_ ? nccl_->version() : ""},
              {"gpu", gpu_.name},
              {"uuid", gpu_.uuid}};
    throw std::runtime_error(fmt::format("'{}' is no request", what));
  }

 private:
  RankSteps& rig() {
    if (!rig_) throw std::logic_error("the leader has not asked this rank to prepare");
    return *rig_;
  }

  /// Memory that steps may take, in B.
  [[nodiscard]] std::uint64_t for_steps() const {
    const std::uint64_t free = cuda::free_memory().count,
                        left = kForKernels + NcclGroups::needs(job_.plan, job_.rank).size() * kForCommunicator;
    return free - std::min(free, left);
  }

  /// Plans of fused attention, or the reason why there are none.
  json attention() {
    AttentionOffer offer;
    try {
      fused_ = std::make_unique<FusedAttention>(heads_of(job_), sum_order(job_));
      offer = {.reason = "", .words = fused_->words(), .room = fused_->room(), .ordered = fused_->ordered()};
    } catch (const std::exception& error) {  // the leader decides whether it ends the run
      offer.reason = error.what();
    }
    job_.attention_room = offer.room;
    return {{"reason", offer.reason}, {"words", offer.words}, {"room", offer.room}, {"ordered", offer.ordered}};
  }

  /// From here on it is settled how attention is done.
  json hello(train::AttentionKind attention) {
    job_.attention = attention;
    if (!fuses(job_)) fused_.reset();
    need_ = rehearsed_both(job_);
    return {{"free", for_steps()}, {"need", need_.bytes()}};
  }

  /// Fused attention and products of numbers drawn for them.
  json compare() {
    drop();
    CudaDevice<train::Bf16> device(*device_);
    const auto found = AttentionTrial(job_, kQueriesTogether, device).compare();
    return {
        {"apart", found.beside_products.count}, {"largest", found.beside_products.largest}, {"unequal", found.unequal}};
  }

  /// Communicators of all groups, and the algorithms that this rank's library would choose.
  json enter(const std::vector<std::vector<std::string>>& ids) {
    const std::size_t marks = 2 * ops_.size() + 1;  // a wait before every operation and one at the end, at most
    device_ = std::make_unique<RankGpu>(products_, fused_.get(), marks, need_);
    const auto largest = train::sized(job_.plan.tokens() * job_.model.hidden);
    const auto posted = train::buckets_of(job_.model, job_.plan, train::position_of(job_.plan, job_.rank).pp).size();
    groups_ = std::make_unique<NcclGroups>(nccl_ ? &*nccl_ : nullptr, job_.plan, job_.rank, ids, largest, posted,
                                           *device_, collective::kEnterLimit);
    for (const ProductShape& shape : need_.shapes) products_.settle(shape);
    return {{"algorithms", products_.choices()}};
  }

  json agree(const AlgorithmTable& table) {
    products_.adopt(table);
    return json::object();
  }

  json prepare(train::DataMode data) {
    drop();
    done_before_.clear();  // other data have other kernels
    train::RankJob job = job_;
    job.data = data;
    if (keeps_bf16(job))
      rig_ = std::make_unique<RankSetup<train::Bf16>>(job, *device_, *groups_);
    else
      rig_ = std::make_unique<RankSetup<float>>(job, *device_, *groups_);
    return json::object();
  }
  void drop() { rig_.reset(); }

  /// Gradients of every step twice from the same weights, in exact arithmetic, then the update.
  json exact(std::uint64_t count) {
    (void)prepare(train::DataMode::ring);  // an empty object
    json differ = json::array(), prints = json::array();
    for (std::uint64_t step = 0; step < count; ++step) {
      const json once = words(gradients(step)), again = words(gradients(step));
      differ.push_back(once != again);
      (void)walk(train::Part::update, step);  // its times are not a step's
      prints.push_back(words(print(false)));
    }
    drop();
    return {{"differ", differ}, {"prints", prints}};
  }

  /// Rank 0: the prints of one rank of the engine on hosts that does all of it.
  json reference(std::uint64_t count) {
    if (job_.rank != 0) return json::object();
    train::ParallelPlan plan = train::undivided(job_.plan);
    plan.element = sizeof(float);
    train::HostEngine engine({.model = job_.model, .plan = plan, .data = train::DataMode::ring});
    json prints = json::array();
    for (std::uint64_t step = 0; step < count; ++step) {
      (void)engine.step(train::Variant::full, step);  // nothing is timed
      const train::RankPrint print = engine.print(false);
      prints.push_back({print.shared, print.experts});
    }
    return {{"prints", prints}};
  }

  /// A walk that must end in time; see Pace.
  train::StepTimes walk(train::Part part, std::uint64_t number) {
    const bool anew = done_before_.insert(part).second;
    const auto due = deadline_.set(fmt::format("step {}", number), pace_.limit(untimed_, 1, anew),
                                   [this, part] { return rig_->in_hand(part); });
    const auto begin = Clock::now();
    const train::StepTimes times = rig().walk(part, number);
    if (!anew) pace_.took({std::chrono::duration<double>(Clock::now() - begin).count()});
    return times;
  }

  /// The same of a print, which reads all weights.
  WeightPrint print(bool gradients) {
    const auto due =
        deadline_.set("a print of weights", collective::untimed_limit(0, static_cast<double>(need_.bytes())));
    const WeightPrint print = rig().print(gradients);
    return print;
  }

  WeightPrint gradients(std::uint64_t number) {
    (void)walk(train::Part::gradients, number);  // its times are not a step's
    return print(true);
  }

  json steps(const json& request) {
    const auto variant = static_cast<train::Variant>(request.at("variant").get<int>());
    const auto first = request.at("first").get<std::uint64_t>(), count = request.at("count").get<std::uint64_t>();
    const train::Part part = variant == train::Variant::full           ? train::Part::full
                             : variant == train::Variant::compute_only ? train::Part::computation
                                                                       : train::Part::communication;
    train::RankSteps taken;
    std::map<std::pair<train::Role, train::Pass>, Moments> alone;
    auto begin = Clock::now();
    for (std::uint64_t step = first; step < first + count; ++step) {
      const train::StepTimes times = walk(part, step);
      const auto end = Clock::now();  // from the end of a step to the end of the
                                      // next: nothing is left out
      taken.wall.push_back(std::chrono::duration<double>(end - begin).count());
      begin = end;
      taken.collective.push_back(times.collective_s);
      taken.optimizer.push_back(times.optimizer_s);
      if (variant == train::Variant::full) continue;
      const auto spans = rig().spans();
      for (std::size_t i = 0; i < spans.size(); ++i) {
        if (spans[i].end_s > 0) alone[{ops_[i].role, ops_[i].pass}].add(spans[i].end_s - spans[i].begin_s);
      }
    }
    groups_->check_alive();
    if (!watches_) watch_.start();
    watches_ = true;
    json times = json::array();
    for (const auto& [key, all] : alone)
      times.push_back({static_cast<int>(key.first), static_cast<int>(key.second), all.mean});
    return {{"wall", taken.wall}, {"collective", taken.collective}, {"optimizer", taken.optimizer}, {"alone", times}};
  }

  json votes(std::uint64_t number) { return {{"print", words(gradients(number))}}; }

  json settle() {
    watch_.stop();
    const WeightPrint weights = print(false);
    json answer = {{"print", words(weights)}, {"not_finite", weights.not_finite + print(true).not_finite}};
    drop();
    return answer;
  }

  train::RankJob job_;
  cuda::Device gpu_;
  nvml::GpuWatch watch_;  ///< from the end of the first steps, which warm up, to settle()
  bool watches_ = false;
  std::vector<train::Op> ops_;
  Seconds untimed_;                    ///< of the first walk
  collective::Pace pace_;              ///< of walks
  std::set<train::Part> done_before_;  ///< since the last change of data
  cuda::Deadline deadline_;
  DeviceNeed need_;
  std::optional<nccl::Nccl> nccl_;  ///< where there are several ranks
  Products products_;
  std::unique_ptr<FusedAttention> fused_;  ///< null: attention is products
  std::unique_ptr<RankGpu> device_;
  std::unique_ptr<NcclGroups> groups_;
  std::unique_ptr<RankSteps> rig_;
};

}  // namespace

std::optional<int> gpu_rank_main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv, argv + argc);
  const auto start = train::rank_start(arguments);
  if (!start) return std::nullopt;
  if (!collective::tie_to_leader(arguments.at(1))) return 1;
  try {
    std::optional<GpuSession> session;  // made by the first request, so that
                                        // what fails in it is an answer
    collective::answer_leader([&](const json& request) {
      if (!session) session.emplace(*start);
      return session->answer(request);
    });
    return 0;
  } catch (const std::exception& error) {
    std::cerr << fmt::format("cuda_train_step rank {}: {}\n", start->job.rank, error.what());
    return 1;
  }
}

}  // namespace assay::train_gpu
