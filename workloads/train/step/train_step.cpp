// train_step: the steps of training a transformer on the processors of one or several nodes, divided as in production.
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "probes/collective/fleet.h"
#include "probes/collective/limits.h"
#include "probes/collective/local_ranks.h"
#include "probes/core/host_facts.h"
#include "probes/core/join.h"
#include "probes/core/library.h"
#include "probes/core/parameters.h"
#include "probes/core/probe.h"
#include "probes/core/rank_names.h"
#include "probes/core/recorder.h"
#include "probes/core/rendezvous.h"
#include "probes/core/small_samples.h"
#include "probes/gloo/outcome.h"
#include "probes/gloo/rank_program.h"
#include "probes/gloo/rank_start.h"
#include "probes/host/tcp_path.h"
#include "workloads/train/engine/host_engine.h"
#include "workloads/train/graph/plan_parameters.h"
#include "workloads/train/step/plan_conditions.h"
#include "workloads/train/step/rank_job.h"
#include "workloads/train/step/step_evidence.h"
#include "workloads/train/step/step_figures.h"
#include "workloads/train/step/step_timeline.h"
#include "workloads/train/step/training.h"

namespace assay::train {
namespace {

using nlohmann::json;
using Answers = std::vector<json>;

constexpr std::int64_t kMostSteps = 1'000'000, kMostWarmup = 1000, kMostBlock = 1000, kMostProjected = 1 << 20;

constexpr std::size_t kMostTimelines = 24;  // ranks of a figure

/// One run.
class TimedTraining {
 public:
  TimedTraining(collective::Fleet& fleet, const Parameters& given, const RankJob& job,
                const std::vector<std::string>& names, Recorder& record)
      : fleet_(fleet),
        training_(fleet, given, job),
        given_(given),
        job_(job),
        plan_(job.plan),
        record_(record),
        subjects_(names, fleet.ranks_per_node()),
        figures_(job),
        edges_(edges_of(job.plan, static_cast<std::int64_t>(fleet.ranks_per_node()))),
        edge_time_(edges_.size()),
        edge_share_(edges_.size()) {}

  Answers run(const std::function<void(const Answers&)>& entered) {
    training_.meet(entered);
    training_.check_exact("before");
    training_.prepare();
    time();
    if (plan_.world() > 1) timeline_ = training_.timeline();
    training_.settle();
    training_.check_exact("after");
    return conclude();
  }

 private:
  void time() {
    const std::int64_t block = given_.count("block"), rounds = given_.count("steps") / block;
    figures_.take_warmup(training_.steps(Variant::full, given_.count("warmup_steps")));
    for (std::int64_t round = 0; round < rounds; ++round) {
      if (job_.data == DataMode::replicated) training_.vote();
      time_edges();
      share_groups();
      const std::int64_t part = std::max<std::int64_t>(3, block / 2);
      const auto compute = training_.steps(Variant::compute_only, part);
      const auto comm = plan_.world() > 1 ? training_.steps(Variant::comm_only, part) : std::vector<RankSteps>(1);
      figures_.take_round(compute, comm, energetic_block(block));
    }
  }

  /// The ways between nodes, while nothing else uses them.
  void time_edges() {
    if (edges_.empty()) return;
    const auto times = training_.edge_times(edges_);
    const auto shares = edge_shares(times);
    for (std::size_t i = 0; i < times.size(); ++i) {
      edge_time_[i].push_back(times[i]);
      if (shares) edge_share_[i].push_back((*shares)[i]);
    }
  }

  void share_groups() {
    if (group_kinds(plan_).size() < 2) return;
    const auto shares = training_.group_shares();
    for (const std::size_t kind : group_kinds(plan_)) group_share_[kind].push_back(shares[kind]);
  }

  /// Full steps, and the energy of all nodes' packages meanwhile.
  std::vector<RankSteps> energetic_block(std::int64_t count) {
    const std::string root = given_.text("root");
    const auto before = training_.energies(root);
    const auto begin = std::chrono::steady_clock::now();
    auto steps = training_.steps(Variant::full, count);
    const auto after = training_.energies(root);
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
    for (std::size_t node = 0; node < before.size(); ++node) {
      const auto taken_j =
          before[node] && after[node] ? energy_between_j(*before[node], *after[node], time.count()) : std::nullopt;
      energy_j_ = energy_j_ && taken_j ? std::optional(*energy_j_ + *taken_j) : std::nullopt;
    }
    return steps;
  }

  Answers conclude() {
    Answers facts = training_.facts();
    for (const auto& finding : training_.findings()) record_.note(finding);
    figures_.record(subjects_, record_);
    record_.measurement("mismatches", static_cast<double>(training_.mismatches()), subjects_.all());
    record_projection();
    record_energy();
    if (plan_.world() > 1) record_ways();
    record_conditions(facts);
    return facts;
  }

  /// The tail of a job of more ranks, where each stalls as often as here.
  void record_projection() {
    const std::int64_t ranks = given_.count("project_ranks");
    if (ranks == 0) return;
    const double more = static_cast<double>(ranks) / static_cast<double>(plan_.world());
    const double share = tail_share(figures_.steps());
    constexpr double kConfidence = 0.95;
    const auto beyond = static_cast<std::size_t>(std::llround(share * static_cast<double>(figures_.steps().size())));
    record_.measurement("tail_share_projected", projected_share(share, more), subjects_.all());
    record_.measurement("tail_share_projected_bound",
                        projected_share(share_at_most(figures_.steps().size(), beyond, kConfidence), more),
                        subjects_.all());
  }

  void record_energy() {
    if (job_.data == DataMode::ring || !energy_j_) return;
    const auto tokens = static_cast<double>(plan_.tokens_per_step()) * static_cast<double>(figures_.steps().size());
    record_.measurement("energy_per_token", *energy_j_ / tokens, subjects_.all());
  }

  /// Of several ranks: the paths between them, and the timeline of each.
  void record_ways() {
    record_edges();
    record_timeline();
    for (const std::size_t kind : group_kinds(plan_)) {
      if (group_share_[kind].empty()) continue;
      record_.measurement("group_share", fixed(group_share_[kind]), subjects_.all(),
                          {{"group", std::string(kGroupWords.at(kind))}});
    }
  }

  void record_timeline() {
    for (std::size_t rank = 0; rank < std::min(timeline_.size(), kMostTimelines); ++rank) {
      for (std::size_t activity = 0; activity < kActivities.size(); ++activity) {
        if (timeline_[rank].at(activity).empty()) continue;
        record_.measurement("timeline", fixed(timeline_[rank][activity]), subjects_.of(rank),
                            {{"activity", std::string(kActivities.at(activity))}});
      }
    }
  }

  void record_edges() {
    for (std::size_t i = 0; i < edges_.size(); ++i) {
      const Subject subject = {
          .kind = "group",
          .id = subjects_.name_of(sized(edges_[i].one)) + "+" + subjects_.name_of(sized(edges_[i].other))};
      record_.measurement("edge_time", fixed(edge_time_[i]), subject);
      if (!edge_share_[i].empty()) record_.measurement("edge_share", fixed(edge_share_[i]), subject);
    }
  }

  void record_conditions(const Answers& facts) {
    record_.condition("off_cpu_share", training_.off_cpu());
    record_.condition("blas_library", facts.front().at("blas").get<std::string>());
    record_.condition("blas_core", facts.front().at("core").get<std::string>());
  }

  collective::Fleet& fleet_;
  Training training_;
  const Parameters& given_;
  const RankJob& job_;
  const ParallelPlan& plan_;
  Recorder& record_;
  RankSubjects subjects_;
  StepFigures figures_;
  std::optional<double> energy_j_ = 0;  ///< of all full steps; nothing once a node has none
  std::array<std::vector<double>, kGroupKinds.size()> group_share_;  ///< of every round
  std::vector<std::vector<std::vector<double>>> timeline_;           ///< by rank and activity
  std::vector<Edge> edges_;                                          ///< between nodes
  std::vector<std::vector<double>> edge_time_, edge_share_;          ///< by edge, of every round
};

/// The plan of `given` on `ranks` ranks, checked against its model. Throws BadParameter if a value is out of range,
/// does not divide, or is not run by this engine.
RankJob job_of(const Parameters& given, std::int64_t ranks) {
  RankJob job = job_on(given, ranks);
  (void)given.count("warmup_steps", 1, kMostWarmup);
  const auto block = given.count("block", 2, kMostBlock);
  (void)given.count("steps", block, kMostSteps);
  if (given.count("project_ranks") != 0) (void)given.count("project_ranks", job.plan.world(), kMostProjected);
  job.data = data_mode_named(given.text("data"));
  job.beside = given.text("overlap") == "beside";
  return job;
}

/// Checks exactness, times the steps of `job` and records; figures of several nodes belong to their group, those of a
/// rank to the node that `names` has for it. `entered` is called with the answers of all ranks to "enter", if there are
/// several. Returns the answers to "facts", by rank. Throws std::runtime_error when a rank fails, and BadParameter when
/// the plan does not fit the memory of the ranks.
std::vector<json> conduct_training(collective::Fleet& fleet, const Parameters& given, const RankJob& job,
                                   const std::vector<std::string>& names,
                                   const std::function<void(const std::vector<json>&)>& entered, Recorder& record) {
  return TimedTraining(fleet, given, job, names, record).run(entered);
}

using nlohmann::json;

constexpr std::size_t kLongestMessage = 8 << 20;  // the addresses of all ranks for all others: 800 ranks

constexpr Parameter kOwnParameters[] = {
    choice("data", "gaussian", "gaussian replicated ring",
           "gaussian: normal weights, other tokens on each replica; replicated: the same tokens on all, whose "
           "gradients must be equal; ring: exact arithmetic modulo 7, which yields no rate"),
    kOverlapParameter,
    kReferenceParameter,
    parameter("steps", "1", "200", "full steps that are timed; only whole blocks", "30"),
    parameter("block", "1", "20", "full steps in a row, between compute-only and communication-only ones", "5"),
    parameter("warmup_steps", "1", "5", "full steps before those", "3"),
    parameter("project_ranks", "1", "0",
              "ranks of a job whose tail follows from this one's, at least those that run; 0: none is projected"),
    parameter("root", "", "/", "directory that holds sys, for counters saved from another machine"),
    parameter("ranks_per_node", "1", "1", "processes on each node"),
};
constexpr auto kParameters = join(kPlanParameters, kOwnParameters, kPlaceParameters);
constexpr Metric kOwnMetrics[] = {
    lower("step_time", "s", "wall time of one full step, the longest of all ranks; every step is a sample",
          Recorded::rank_0),
    lower("tail_share_projected", "1",
          "1 - (1 - tail_share)^(project_ranks / ranks): the share of delayed steps if each rank stalls as often and "
          "independently, recorded where project_ranks is given",
          Recorded::if_asked),
    lower("tail_share_projected_bound", "1",
          "the same of the tail share that is not exceeded with 95 % confidence (Clopper and Pearson), recorded where "
          "project_ranks is given",
          Recorded::if_asked),
    lower("energy_per_token", "J",
          "energy of the processors' packages of all nodes over full steps, by RAPL, for each token; recorded where "
          "data is not ring and every package of every node has a counter that moves as one does",
          Recorded::if_asked),
    lower("group_share", "1",
          "of a round, the time of messages round the groups of one kind while all kinds have theirs, over that one "
          "kind at a time, the longest of all ranks; recorded if there are groups of two kinds",
          Recorded::if_asked),
    higher("timeline", "s",
           "of one full step after the timed ones, for the first 24 ranks: begin and end of each stretch of one "
           "activity in turn, forward, backward, collective, optimizer or beside; recorded if there are several ranks",
           Recorded::if_asked),
    lower("edge_time", "s",
          "a message of 256 KiB from one rank to another on another node and one back, for each two that exchange "
          "messages in the step, the shortest of five in a round, while no other is on their nodes' ports; recorded if "
          "there are several nodes",
          Recorded::if_asked),
    lower("edge_share", "1",
          "of a round, edge_time over the median of all other edges: a slow path between two nodes, recorded if there "
          "are several edges",
          Recorded::if_asked),
    fault("mismatches",
          "findings of all checks: exact steps that differ from themselves, from one rank or between replicas, "
          "gradients that are outvoted, weights that differ between replicas or are not finite",
          Recorded::rank_0),
};
constexpr auto kMetrics = join(kOwnMetrics, kFigureMetrics);
constexpr ConditionSpec kOwnConditions[] = {
    rank_0("off_cpu_share",
           "largest share, over the ranks and rounds, of compute-only steps in which a rank did not run: CPU quota, "
           "hypervisor, other processes or other ranks, recorded by rank 0"),
    rank_0("blas_library", "version and build options of the BLAS in use, recorded by rank 0"),
    rank_0("blas_core", "processor core that it chose its kernels for, recorded by rank 0"),
};
/// Those of record_facts().
constexpr ConditionSpec kWireConditions[] = {
    if_asked("transport", "carrier of messages: tcp; recorded if there are several ranks"),
    if_asked("algorithm", "own_ring: rings of Gloo's messages; recorded if there are several ranks"),
    if_asked("gloo_library", "file that Gloo was loaded from, recorded if there are several ranks"),
    if_asked("address", "addresses of this node's ranks on their connections, recorded if there are such"),
    if_asked("interface", "network ports that have these addresses, recorded if there are such"),
    if_asked("mtu", "largest packet of those ports, in B; the smallest of them, if there are such"),
    if_reported("link_speed", "rate of those ports in B/s, the smallest, where their drivers report it"),
    if_asked("mss", "largest segment of these connections, in B; the smallest, if there are such"),
    if_asked("congestion_control", "algorithms of this node's connections, recorded if there are such"),
    if_asked("segments_retransmitted", "segments sent again by this node's ranks, if there are several"),
};
constexpr auto kConditions = join(kPlanConditions, kOwnConditions, kWireConditions);
constexpr ProbeSpec kSpec{
    .name = "train_step",
    .scope = Scope::group,
    .measures =
        "Steps of training a transformer on the processors of one or several nodes, divided by tensor, pipeline and "
        "data parallelism: their time, the part added by communication, the prediction from their parts, and the ranks "
        "that delay others.",
    .method =
        "One thread and process for each rank walks the graph of the step: forward and backward of every layer by "
        "1F1B, all products by OpenBLAS in fp32, causal attention in blocks of 64 queries, sums over tp, keys and "
        "values round a ring of cp, each rank having a piece from the front of a sequence and one from its back, "
        "copies of tokens to routed experts and back, messages between pipeline ranks, gradients reduced layer by "
        "layer, during the backward pass or after it, Adam. All memory is there before the first step; Gloo keeps its "
        "own lists. Collectives are rings of Gloo's messages over TCP. A round is compute-only steps, "
        "communication-only steps, then a block of full ones, in the same processes; the prediction of composition "
        "walks the graph with the means of each operation in the former two. A rank's time in collectives includes "
        "waiting for others, so the rank that delays has the least of it; a slow path between two nodes delays all and "
        "shows at its edge. Before and after, two steps run in exact arithmetic modulo 7, each twice from the same "
        "weights: the first operation whose results differ names the rank that computed it, or, if it is a collective, "
        "a message; their weights are compared with those of one rank that does all of it. No maximum is subtracted in "
        "the loss: its logits are small by construction.",
    .source =
        "Narayanan et al. 2021 (1F1B), Shoeybi et al. 2019 (tensor parallelism), Rajbhandari et al. 2020 (ZeRO), "
        "Kingma & Ba 2015 (Adam).",
    .needs = "libgloo.so.0 (libgloo0); several nodes reach each other on the rendezvous port and on ephemeral ports",
    .typical = {60},
    .deadline = {3600},
    .parameters = kParameters,
    .metrics = kMetrics,
    .conditions = kConditions,
    .group_size = kPlanGroupSize,
};

void record_wire(const std::vector<json>& facts, Recorder& record) {
  if (facts.empty() || !facts.front().contains("paths")) return;  // one rank has no connections
  gloo::record_facts(record, facts);
}

/// The part of this node.
void take_part(const Parameters& given, const Placement& placement, Recorder& record, Rendezvous* group) {
  const std::int64_t here = given.count("ranks_per_node");
  const RankJob job = job_of(given, here * placement.world);
  const Library library = Library::open("libgloo.so.0", "Gloo");
  const gloo::RankFile file("train_step_rank");
  const std::string address = gloo::own_address(given.text("interface"), placement);
  const auto programs =
      rank_programs(file.path(), job, placement.rank * here, here, address, gloo::rank_environment(library));
  collective::LocalRanks ranks(programs);
  collective::Fleet fleet(
      [&](std::string_view request, Seconds limit) {
        return ranks.ask(request, limit, [&] {  // a library may never report to its rank that a peer is gone
          if (group != nullptr) group->check();
        });
      },
      std::vector<std::string>(programs.size(), "on " + address), std::get<std::string>(host_facts().at("name")),
      group);
  const auto names = group != nullptr ? rank_names(*group) : fleet.nodes();
  record_plan(given, job, fleet.nodes(), record);
  const auto entered = [&](const std::vector<json>& all) {
    if (placement.world > 1) gloo::demand_path(given.text("path"), all, here);
  };
  if (placement.rank == 0) {
    const auto facts = conduct_training(fleet, given, job, names, entered, record);
    record_wire({facts.begin(), facts.begin() + here}, record);
    fleet.release();
  } else {
    const auto answers = fleet.follow();
    if (const auto facts = answers.find("facts"); facts != answers.end()) record_wire(facts->second, record);
  }
  ranks.finish(collective::kLeaveLimit);
}

void measure(const Parameters& given, const Placement& placement, Recorder& record) {
  (void)ranks_per_node(given);
  if (placement.world == 1) return take_part(given, placement, record, nullptr);
  work_together(placement, {.exchange = collective::kExchangeLimit, .message = kLongestMessage},
                [&](Rendezvous& group) { take_part(given, placement, record, &group); });
}

}  // namespace
}  // namespace assay::train

int main(int argc, char** argv) { return assay::probe_main(argc, argv, assay::train::kSpec, assay::train::measure); }
