// fault_resume: recovery of a training job when ranks are killed, hang, are cut off or slow down.
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "probes/collective/limits.h"
#include "probes/core/filesystem_facts.h"
#include "probes/core/host_facts.h"
#include "probes/core/join.h"
#include "probes/core/json_io.h"
#include "probes/core/library.h"
#include "probes/core/probe.h"
#include "probes/core/rank_names.h"
#include "probes/core/recorder.h"
#include "probes/core/rendezvous.h"
#include "probes/core/statistics.h"
#include "probes/gloo/outcome.h"
#include "probes/gloo/rank_program.h"
#include "probes/gloo/rank_start.h"
#include "workloads/train/faults/fault_run.h"
#include "workloads/train/graph/plan_parameters.h"
#include "workloads/train/step/plan_conditions.h"
#include "workloads/train/step/rank_job.h"

namespace assay::train {
namespace {

using nlohmann::json;

constexpr std::size_t kLongestMessage = 8 << 20;  // the addresses of all ranks for all others: 800 ranks
constexpr std::int64_t kMostSpares = 64, kMostRounds = 16, kMostSaveEvery = 1000, kMostMissed = 100;

constexpr Parameter kOwnParameters[] = {
    choice("data", "ring", "ring gaussian",
           "ring: exact arithmetic modulo 7, whose state is weights; gaussian: normal weights and Adam's moments, "
           "equal bits only where all processors compute alike"),
    kOverlapParameter,
    choice("faults", "all", kFaultWords, "which kinds are injected"),
    choice("phases", "all", kPhaseWords,
           "parts of a step in which each kind is injected; save: while the state is saved", "reduce"),
    parameter("rounds", "1", "1", "how often each of these is injected"),
    parameter("save_every", "1", "3", "steps between two saves of the state"),
    parameter("ranks_per_node", "1", "2", "processes on each node that train"),
    parameter("spares", "1", "1", "processes on each node that wait to take a place"),
    parameter("heartbeat", "s", "1s", "time between two signs of life", "200ms"),
    parameter("missed", "1", "3", "signs of life that do not come, after which a rank is lost"),
    parameter("local", "", ".", "directory on every node for saved states; empty: none are kept there"),
    parameter("shared", "", "", "directory that all nodes share, for saved states; empty: none are kept there"),
    choice("corrupt", "none", "none memory local",
           "copies in which a bit is turned before they are restored: none; memory: those of the next rank; "
           "local: those and files of the node"),
    parameter("job_mtbf", "s", "0s",
              "mean time between the interruptions of the job that ettr is computed for, from a contract or the "
              "bound of a soak; 0: none is computed"),
};
constexpr auto kParameters = join(kPlanParameters, kOwnParameters, kPlaceParameters);
constexpr Metric kMetrics[] = {
    lower("mttr", "s",
          "from the injection of a fault until the step it struck is done, recorded where a fault ended a rank; every "
          "fault is a sample",
          Recorded::if_occurred),
    lower("detect_time", "s",
          "of mttr: until the leader of rank 0 knows that the rank is lost, recorded where a fault ended a rank",
          Recorded::if_occurred),
    lower("abort_time", "s", "of mttr: until no rank waits for the lost one, recorded where a fault ended a rank",
          Recorded::if_occurred),
    lower("rebuild_time", "s",
          "of mttr: until a spare has its place and all ranks are connected, recorded where a fault ended a rank",
          Recorded::if_occurred),
    lower("restore_time", "s",
          "of mttr: until all ranks have the state of the last save, checked, recorded where a fault ended a rank",
          Recorded::if_occurred),
    lower("recompute_time", "s",
          "of mttr: until the step that was reached is done again, recorded where a fault ended a rank",
          Recorded::if_occurred),
    lower("lost_steps", "1", "steps that were done again, recorded where a fault ended a rank", Recorded::if_occurred),
    lower("step_time", "s", "wall time of one step of the run without faults, the longest of all ranks",
          Recorded::rank_0),
    lower("save_time", "s",
          "wall time of one save of the run without faults, in which no step runs, the longest of all ranks",
          Recorded::rank_0),
    share("ettr",
          "1 - d/t - (r + t/2)/m: share of wall time that ends up in the model, d being the median of save_time, "
          "r the median of mttr less recompute_time, m job_mtbf and t = sqrt(2 d m) the best time between saves; "
          "0 if that is negative; recorded where job_mtbf is given and a fault ended a rank",
          Recorded::if_asked),
    lower("refused_states", "1",
          "copies of a state that were not there or not what was saved when they were to be restored",
          Recorded::rank_0),
    fault("mismatches",
          "states of ranks after a case that differ in any bit from those of the run without faults, for each kind of "
          "fault",
          Recorded::rank_0),
    fault("false_losses",
          "ranks that were given up though no fault had ended them, slow ones among them, for each kind of fault; "
          "none: in the run without",
          Recorded::rank_0),
};
constexpr ConditionSpec kOwnConditions[] = {
    rank_0("cases", "faults that were injected, in order, recorded by rank 0"),
    rank_0("case_keys", "the same for programs: kind and phase of each, as kill:reduce, with commas"),
    rank_0("restored_from",
           "how many states of ranks were restored from where: own memory, memory of the next rank, local and shared "
           "files; recorded by rank 0"),
    {.name = "heartbeat_limit", .meaning = "silence after which a rank is lost, in s"},
};
constexpr auto kConditions = join(kPlanConditions, kOwnConditions, gloo::kFactConditions);
constexpr ProbeSpec kSpec{
    .name = "fault_resume",
    .revision = 3,
    .scope = Scope::group,
    .measures =
        "The time of each part of the recovery of a training job after a rank is killed, hangs or is cut off, that the "
        "restored state is right in every bit, and that a slow rank is not taken for a lost one.",
    .method =
        "The same steps run twice: undisturbed, then with a fault in each case. Every few steps all ranks save weights "
        "and moments: in their own memory, in that of the next rank, in a file of the node, and in a shared one if "
        "there is a directory; files are not forced onto the disk, which checkpoint measures. The rank that is chosen "
        "injects the fault into itself, before an operation in the middle of the phase: SIGKILL, SIGSTOP, a filter by "
        "which the kernel drops all that arrives at its sockets, or eightfold time for its computation. Each rank "
        "beats: in memory that its leader sees, and by datagrams to the ranks after it. A rank is lost when its "
        "process ends, when it does not beat, or when it hears no other although another beats. Then the others shut "
        "their connections and keep their processes and memory, the lost process is ended, a spare takes its place, "
        "all connect anew, every rank goes back to the last state that all had saved, whose hash the leader has kept, "
        "and the steps are done again. Afterwards the state of every rank is compared with that of the undisturbed "
        "run. Injection and detection are times of one clock, passed on as ages; the rest is on the clock of rank 0. A "
        "further loss while ranks are brought back, and the loss of a leader or a node, end the run.",
    .source =
        "Young 1974, A First Order Approximation to the Optimum Checkpoint Interval; Wang et al. 2023, Gemini: Fast "
        "Failure Recovery in Distributed Training with In-Memory Checkpoints.",
    .needs = "libgloo.so.0 (libgloo0); several nodes reach each other on the rendezvous port and on ephemeral ports",
    .typical = {120},
    .deadline = {3600},
    .parameters = kParameters,
    .metrics = kMetrics,
    .conditions = kConditions,
    .group_size = kPlanGroupSize,
};

FaultJob job_of(const Parameters& given, const Placement& placement) {
  const std::int64_t here = ranks_per_node(given), world = here * placement.world;
  if (world < 2)
    throw BadParameter("ranks_per_node: the loss of a single rank is noticed by no other; give at least 2 on one node");
  FaultJob job{.job = job_on(given, world),
               .faults = {},
               .heartbeat = {.period = given.seconds("heartbeat"), .missed = given.count("missed", 2, kMostMissed)},
               .ranks_per_node = sized(here),
               .shared = {}};
  if (!(job.heartbeat.period.count >= 0.01 && job.heartbeat.period.count <= 60))
    throw BadParameter("heartbeat: not from 10ms to 60s");
  job.job.data = data_mode_named(given.text("data"));
  job.job.beside = given.text("overlap") == "beside";
  job.faults = fault_plan(given.text("faults"), given.text("phases"), given.count("rounds", 1, kMostRounds),
                          given.count("save_every", 2, kMostSaveEvery), world);
  if (given.text("corrupt") != "none") job.corrupt = given.text("corrupt") == "memory" ? Tier::memory : Tier::local;
  return job;
}

Sampling fixed(std::vector<double> samples) {
  return {.samples = std::move(samples), .warmup = {}, .stopped = "fixed"};
}

void record_recoveries(const Parameters& given, const FaultOutcome& found, const Subject& subject, Recorder& record) {
  if (found.recoveries.empty()) return;
  const auto each = [&](const char* metric, const auto& value) {
    std::vector<double> samples;
    for (const Recovery& one : found.recoveries) samples.push_back(value(one));
    record.measurement(metric, fixed(samples), subject);
    return median(samples);
  };
  (void)each("mttr", [](const Recovery& one) { return one.repair_s(); });  // recorded
  (void)each("detect_time", [](const Recovery& one) { return one.detect_s; });
  (void)each("abort_time", [](const Recovery& one) { return one.abort_s; });
  (void)each("rebuild_time", [](const Recovery& one) { return one.rebuild_s; });
  (void)each("restore_time", [](const Recovery& one) { return one.restore_s; });
  (void)each("recompute_time", [](const Recovery& one) { return one.recompute_s; });
  record.measurement("lost_steps", fixed({found.lost_steps.begin(), found.lost_steps.end()}), subject);
  const double mtbf_s = given.seconds("job_mtbf").count;
  if (mtbf_s <= 0) return;
  std::vector<double> restarts;
  for (const Recovery& one : found.recoveries) restarts.push_back(one.restart_s());
  const double save_s = median(found.save_time);
  record.measurement("ettr", effective_share(save_s, best_interval_s(save_s, mtbf_s), median(restarts), mtbf_s),
                     subject);
}

void record_outcome(const Parameters& given, const FaultJob& job, const FaultOutcome& found,
                    const std::vector<std::string>& nodes, Recorder& record) {
  Subject subject;
  if (nodes.size() > 1) subject = {.kind = "group", .id = fmt::format("{}", fmt::join(nodes, ","))};
  record_recoveries(given, found, subject, record);
  record.measurement("step_time", fixed(found.step_time), subject);
  record.measurement("save_time", fixed(found.save_time), subject);
  record.measurement("refused_states", static_cast<double>(found.refused), subject);
  for (const auto& [kind, count] : found.mismatches)
    record.measurement("mismatches", static_cast<double>(count), subject, {{"fault", std::string(kind)}});
  for (const auto& [kind, count] : found.false_losses)
    record.measurement("false_losses", static_cast<double>(count), subject, {{"fault", std::string(kind)}});
  std::vector<std::string> cases, keys, tiers;
  for (const auto& one : job.faults.cases) {
    cases.push_back(text_of(one));
    keys.push_back(key_of(one));
  }
  for (const auto& [tier, count] : found.restored) tiers.push_back(fmt::format("{} {}", word_of(tier), count));
  record.condition("cases", fmt::format("{}", fmt::join(cases, "; ")));
  record.condition("case_keys", fmt::format("{}", fmt::join(keys, ",")));
  record.condition("restored_from", fmt::format("{}", fmt::join(tiers, ", ")));
  for (const auto& note : found.notes) record.note(note);
}

/// The directory of this run in `parent`; none if that is empty.
std::unique_ptr<ScratchDirectory> folder_in(const std::string& parent) {
  return parent.empty() ? nullptr : std::make_unique<ScratchDirectory>(parent);
}
std::string path_of(const std::unique_ptr<ScratchDirectory>& folder) { return folder ? folder->path() : ""; }

collective::WatchedRanks::Programs programs_of(const FaultJob& job, const collective::RankBoard& board,
                                               const gloo::RankFile& file, const std::string& address,
                                               const std::string& folder, const Library& library) {
  const auto environment = gloo::rank_environment(library);
  return [=, &board, &file](std::size_t slot) {
    RankStart start{.job = job.job, .address = address};
    start.board = BoardPlace{.descriptor = board.descriptor(),
                             .ranks = board.ranks(),
                             .own = slot,
                             .period_s = job.heartbeat.period.count,
                             .folder = folder};
    return collective::RankProgram{.path = file.path(),
                                   .arguments = rank_arguments("fault_resume_rank", start),
                                   .environment = environment,
                                   .title = fmt::format("process {} ({})", slot, address)};
  };
}

/// The part of this node.
void take_part(const Parameters& given, const Placement& placement, Recorder& record, Rendezvous* group) {
  FaultJob job = job_of(given, placement);
  const auto spares = given.count("spares", 0, kMostSpares);
  const Library library = Library::open("libgloo.so.0", "Gloo");
  const gloo::RankFile file("fault_resume_rank");
  const auto local = folder_in(given.text("local"));
  const auto shared = folder_in(placement.rank == 0 ? given.text("shared") : "");
  job.shared = path_of(shared);
  const std::string name = std::get<std::string>(host_facts().at("name"));
  const auto nodes = group != nullptr ? rank_names(*group) : std::vector{name};
  collective::RankBoard board(job.ranks_per_node + sized(spares));
  collective::WatchedRanks ranks(
      board,
      programs_of(job, board, file, gloo::own_address(given.text("interface"), placement), path_of(local), library));
  collective::WatchedFleet fleet(ranks, board.ranks(), group, job.heartbeat);
  record_plan(given, job.job, nodes, record);
  record.condition("heartbeat_limit", job.heartbeat.silence_s());
  std::string facts;
  if (placement.rank == 0) {
    const auto found = conduct_faults(fleet, job, [&](const std::vector<json>& entered) {
      if (placement.world > 1)
        gloo::demand_path(given.text("path"), entered, static_cast<std::int64_t>(job.ranks_per_node));
    });
    record_outcome(given, job, found, nodes, record);
    fleet.release();
    facts = json(found.facts).dump();
  } else {
    fleet.follow();
  }
  if (group != nullptr) facts = group->broadcast(facts);
  const auto all = parse_json_or_throw(facts, "facts of the ranks").get<std::vector<json>>();
  const auto mine = all.begin() + static_cast<std::ptrdiff_t>(sized(placement.rank) * job.ranks_per_node);
  gloo::record_facts(record, {mine, mine + static_cast<std::ptrdiff_t>(job.ranks_per_node)});
}

void measure(const Parameters& given, const Placement& placement, Recorder& record) {
  if (placement.world == 1) return take_part(given, placement, record, nullptr);
  work_together(placement, {.exchange = collective::kExchangeLimit, .message = kLongestMessage},
                [&](Rendezvous& group) { take_part(given, placement, record, &group); });
}

}  // namespace
}  // namespace assay::train

int main(int argc, char** argv) { return assay::probe_main(argc, argv, assay::train::kSpec, assay::train::measure); }
