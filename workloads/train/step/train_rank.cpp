// train_step_rank: one rank of train_step, linked to Gloo. The leader of the node starts it and asks; it answers.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <cblas.h>
#include <fmt/format.h>

#include "probes/core/statistics.h"
#include "probes/gloo/mesh.h"
#include "probes/gloo/rank_mesh.h"
#include "probes/host/pinned_threads.h"
#include "workloads/train/engine/edge_times.h"
#include "workloads/train/graph/step_groups.h"
#include "workloads/train/step/package_energy.h"
#include "workloads/train/step/rank_setup.h"
#include "workloads/train/step/step_evidence.h"
#include "workloads/train/step/step_timeline.h"

namespace assay::train {
namespace {

/// One rank's part.
class GroupTraffic {
 public:
  /// `mesh` outlives it.
  GroupTraffic(gloo::Mesh& mesh, const ModelShape& model, const ParallelPlan& plan, std::int64_t rank);
  ~GroupTraffic();

  /// `passes`, by place in kGroupKinds, round the groups of each kind at the same time, a thread for each; 0: none. By
  /// place the time of one, in s; 0 if there was none. All ranks of the mesh call it alike.
  std::vector<double> run(const std::vector<std::int64_t>& passes);

 private:
  class Ring;
  gloo::Mesh& mesh_;
  std::vector<std::unique_ptr<Ring>> rings_;  ///< by place; null if there is none
};

constexpr std::uint64_t kFirstTag = 11;  // one for each kind, after that of edge_times

class GroupTraffic::Ring {
 public:
  Ring(gloo::Mesh& mesh, const std::vector<std::int64_t>& members, std::int64_t rank, std::uint64_t tag,
       std::int64_t bytes)
      : rounds_(members.size() - 1),
        tag_(tag),
        sent_(sized(bytes)),
        received_(sized(bytes)),
        out_(mesh.window(sent_.data(), sent_.size())),
        in_(mesh.window(received_.data(), received_.size())) {
    const auto place = static_cast<std::size_t>(std::ranges::find(members, rank) - members.begin());
    next_ = static_cast<int>(members[(place + 1) % members.size()]);
    before_ = static_cast<int>(members[(place + members.size() - 1) % members.size()]);
  }
  /// The time of one, in s.
  double pass(std::int64_t count) {
    const auto begin = std::chrono::steady_clock::now();
    for (std::int64_t i = 0; i < count * static_cast<std::int64_t>(rounds_); ++i) {
      in_.receive(before_, tag_, 0, received_.size());
      out_.send(next_, tag_, 0, sent_.size());
      in_.wait_received();
      out_.wait_sent();
    }
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / static_cast<double>(count);
  }

 private:
  std::size_t rounds_;
  std::uint64_t tag_;
  std::vector<std::byte> sent_, received_;
  gloo::Window out_, in_;
  int next_ = 0, before_ = 0;
};

GroupTraffic::GroupTraffic(gloo::Mesh& mesh, const ModelShape& model, const ParallelPlan& plan, std::int64_t rank)
    : mesh_(mesh), rings_(kGroupKinds.size()) {
  const auto messages = group_messages(model, plan);
  for (const std::size_t kind : group_kinds(plan))
    rings_[kind] =
        std::make_unique<Ring>(mesh, members_of(plan, kGroupKinds[kind], rank), rank, kFirstTag + kind, messages[kind]);
}

GroupTraffic::~GroupTraffic() = default;

std::vector<double> GroupTraffic::run(const std::vector<std::int64_t>& passes) {
  std::vector<double> times(rings_.size(), 0);
  std::vector<std::exception_ptr> failures(rings_.size());
  mesh_.barrier();
  {
    std::vector<std::jthread> running;
    for (std::size_t kind = 0; kind < rings_.size(); ++kind) {
      if (!rings_[kind] || passes.at(kind) == 0) continue;
      running.emplace_back([&, kind] {
        try {
          times[kind] = rings_[kind]->pass(passes[kind]);
        } catch (...) {  // thrown on below, in the thread that asked
          failures[kind] = std::current_exception();
        }
      });
    }
  }
  for (const auto& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
  return times;
}

using nlohmann::json;

/// The state of one rank between requests.
class Session {
 public:
  explicit Session(const RankStart& start)
      : job_(start.job),
        mesh_(start.address, static_cast<int>(start.job.rank), static_cast<int>(start.job.plan.world())) {}

  json answer(const json& request) {
    const std::string what = request.at("do");
    if (what == "hello") return {{"free", gloo::available_memory()}};
    if (what == "introduce") return mesh_.introduce();
    if (what == "enter") return mesh_.enter(request.at("words"));
    if (what == "exact") return exact(request.at("steps").get<std::uint64_t>());
    if (what == "reference") return reference(request.at("steps").get<std::uint64_t>());
    if (what == "prepare") return prepare();
    if (what == "steps") return steps(request);
    if (what == "votes")
      return {{"print", words(rig().own_gradients(request.at("number").get<std::uint64_t>(), std::nullopt))}};
    if (what == "timeline") return timeline(request.at("number").get<std::uint64_t>());
    if (what == "edges") return edges(request);
    if (what == "groups") return groups(request);
    if (what == "energy") return energy(request);
    if (what == "settle") return settle();
    if (what == "facts") return facts();
    throw std::runtime_error(fmt::format("'{}' is no request", what));
  }

 private:
  HostEngine& rig() {
    if (!rig_) throw std::logic_error("the leader has not asked this rank to prepare");
    return rig_->engine();
  }

  static json words(const RankPrint& print) { return {print.shared, print.experts}; }

  void make_rig(std::optional<RankSetup>& rig, const RankJob& job) {
    rig.emplace(job);
    if (job.plan.world() > 1) rig->connect(mesh_.mesh());
  }

  json prepare() {
    make_rig(rig_, job_);
    return json::object();
  }

  /// Every step twice from the same weights, in exact arithmetic, then the update.
  json exact(std::uint64_t count) {
    RankJob job = job_;
    job.data = DataMode::ring;
    std::optional<RankSetup> rig;
    make_rig(rig, job);
    HostEngine& engine = rig->engine();
    json firsts = json::array(), prints = json::array();
    for (std::uint64_t step = 0; step < count; ++step) {
      const auto once = engine.traced(step, std::nullopt), again = engine.traced(step, std::nullopt);
      const auto first = std::ranges::mismatch(once, again).in1;
      firsts.push_back(first == once.end() ? std::int64_t{-1} : static_cast<std::int64_t>(first - once.begin()));
      engine.update();
      prints.push_back(words(engine.print(false)));
    }
    return {{"firsts", firsts}, {"prints", prints}};
  }

  /// Rank 0: the prints of one rank that does all of it.
  json reference(std::uint64_t count) {
    if (job_.rank != 0) return json::object();
    RankJob job = job_;
    job.data = DataMode::ring;
    job.plan = undivided(job.plan);
    HostEngine engine(job);
    json prints = json::array();
    for (std::uint64_t step = 0; step < count; ++step) {
      (void)engine.step(Variant::full, step);  // nothing is timed
      prints.push_back(words(engine.print(false)));
    }
    return {{"prints", prints}};
  }

  json steps(const json& request) {
    const auto variant = static_cast<Variant>(request.at("variant").get<int>());
    const auto first = request.at("first").get<std::uint64_t>(), count = request.at("count").get<std::uint64_t>();
    if (job_.plan.world() > 1) mesh_.mesh().barrier();
    RankSteps taken;
    std::map<std::pair<Role, Pass>, Moments> alone;
    const double cpu_s = host::thread_cpu_time().count;
    double wall_s = 0;
    for (std::uint64_t step = first; step < first + count; ++step) {
      const StepTimes times = rig().step(variant, step);
      taken.wall.push_back(times.wall_s);
      taken.collective.push_back(times.collective_s);
      taken.optimizer.push_back(times.optimizer_s);
      wall_s += times.wall_s;
      if (variant != Variant::full) keep_spans(alone);
    }
    json times = json::array();
    for (const auto& [key, all] : alone)
      times.push_back({static_cast<int>(key.first), static_cast<int>(key.second), all.mean});
    json answer = {
        {"wall", taken.wall}, {"collective", taken.collective}, {"optimizer", taken.optimizer}, {"alone", times}};
    if (variant == Variant::compute_only)  // nothing is waited for: wall time beyond CPU time went to other processes
      answer["off_cpu"] = std::max(0.0, 1 - (host::thread_cpu_time().count - cpu_s) / wall_s);
    return answer;
  }

  void keep_spans(std::map<std::pair<Role, Pass>, Moments>& alone) {
    const auto spans = rig().spans();
    for (std::size_t i = 0; i < spans.size(); ++i) {
      const Op& op = rig().ops()[i];
      if (spans[i].end_s > 0) alone[{op.role, op.pass}].add(spans[i].end_s - spans[i].begin_s);
    }
  }

  json timeline(std::uint64_t number) {
    if (job_.plan.world() > 1) mesh_.mesh().barrier();
    (void)rig().step(Variant::full, number);  // its spans are asked for
    return {{"stretches", stretches_of(rig().ops(), rig().spans(), job_.beside)}};
  }

  json edges(const json& request) {
    std::vector<Edge> all;
    for (const auto& pair : request.at("edges")) all.push_back({.one = pair.at(0), .other = pair.at(1)});
    const auto stages = request.at("stages").get<std::vector<std::vector<std::size_t>>>();
    return {{"times", edge_times(mesh_.mesh(), job_.rank, all, stages, request.at("trips"))}};
  }

  json groups(const json& request) {
    GroupTraffic traffic(mesh_.mesh(), job_.model, job_.plan, job_.rank);
    return {{"times", traffic.run(request.at("passes"))}};
  }

  static json energy(const json& request) {
    const auto found = package_energies(request.at("root"));
    if (!found) return json::object();
    json packages = json::object();
    for (const auto& [name, counter] : *found) packages[name] = {counter.energy_uj, counter.range_uj};
    return {{"packages", packages}};
  }

  /// The end of the timed steps: the final weights.
  json settle() {
    json answer = {{"print", words(rig().print(false))}, {"not_finite", rig().not_finite()}};
    rig_.reset();
    return answer;
  }

  [[nodiscard]] json facts() const {
    json answer = job_.plan.world() > 1 ? gloo::RankMesh::facts("own_ring") : json::object();
    answer["blas"] = openblas_get_config();
    answer["core"] = openblas_get_corename();
    return answer;
  }

  RankJob job_;
  gloo::RankMesh mesh_;  // before the rig, which has windows on it
  std::optional<RankSetup> rig_;
};

}  // namespace
}  // namespace assay::train

int main(int argc, char** argv) {
  return assay::train::rank_main<assay::train::Session>(argc, argv, "train_step_rank", "train_step");
}
