// sweep_slurm: keeps as many worker jobs in Slurm as the due list wants, until every due node has an outcome, and every
// pair of measured nodes one.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <set>
#include <thread>

#include <fmt/format.h>

#include "orchestrator/files/atomic_file.h"
#include "orchestrator/files/child.h"
#include "orchestrator/fleet/sweep_shared.h"
#include "orchestrator/plan/programs.h"
#include "orchestrator/sweep/worker_jobs.h"
#include "probes/core/text.h"

namespace assay::cli {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using Words = std::vector<std::string>;

constexpr Seconds kAnswer{60};  // of slurmctld
constexpr std::chrono::milliseconds kPoll{1000}, kPollAtEnd{100};
constexpr std::chrono::seconds kEndOfWorkers{20};  // they stop within 5 s, and write their outcome
constexpr int kMostRefusals = 5;                   // of sbatch in a row
constexpr int kMostJobsOfPair = 3;                 // that end without having begun
constexpr std::size_t kMostFruitless = 10;         // jobs: so many are hardly preempted within a second each

/// The last line of a file; empty if there is none yet.
std::string last_line_of(const std::string& path) {
  constexpr std::size_t kMost = 300;
  const auto text = read_file(path);
  if (!text) return "";
  std::string_view line = *text;
  while (line.ends_with('\n')) line.remove_suffix(1);
  if (const auto at = line.rfind('\n'); at != std::string_view::npos) line.remove_prefix(at + 1);
  return std::string(line.substr(0, kMost));
}

/// The jobs of one sweep.
class Jobs {
 public:
  Jobs(const SweepPlan& plan, std::string out, Seconds patience)
      : plan_(plan), out_(std::move(out)), patience_(patience) {
    for (const auto& pair : plan.file.pairs) pairs_.push_back({.pair = pair});
  }

  std::optional<InputError> go() {
    if (auto problem = prepare()) return problem;
    progress_ = Clock::now();
    while (!stop_.requested()) {
      if (auto problem = look()) return problem;
      if (auto problem = look_at_pairs()) return problem;
      if (open_.empty() && alive_.empty() && std::ranges::none_of(pairs_, &Pair::ready)) return std::nullopt;
      if (over()) break;
      // Once a node was visited, a job may find that another has visited its node before it.
      if (begun_ == 0 && ended_jobs_.size() >= kMostFruitless) {
        (void)end();  // this is the problem that is reported
        return InputError{out_ + "/workers",
                          fmt::format("{} jobs ended and none visited a node; the last wrote: {}", ended_jobs_.size(),
                                      what_they_wrote()),
                          "this installation and --out must lie on a file system that all nodes share; `assay sweep "
                          "--collect` enters what was measured"};
      }
      if (auto problem = submit()) return problem;
      std::this_thread::sleep_for(kPoll);
    }
    return end();
  }

 private:
  /// A pair that is to be measured.
  struct Pair {
    sweep::NightPair pair;
    std::string job = {};  ///< the last one for it
    int jobs = 0;          ///< so many were submitted
    bool ready = false;    ///< both nodes were measured, it has not begun, and it may have a job
  };

  std::optional<InputError> prepare() {
    for (const auto& [program, path] :
         {std::pair<const char*, std::string*>{"sbatch", &sbatch_}, {"squeue", &squeue_}, {"scancel", &scancel_}}) {
      *path = files::find_in_path(program);
      if (path->empty()) return InputError{program, "is not in PATH", "install the commands of Slurm on this machine"};
    }
    const auto script = sweep::worker_script(plan::installation().binaries + "/assay", out_);
    if (!script) return InputError{out_, script.error(), "choose another folder on a file system that all nodes share"};
    std::error_code problem;
    fs::create_directories(out_ + "/workers", problem);
    return files::create_file(out_ + "/workers/worker.sh", *script, 0755);
  }

  /// Which nodes are still open, and which of our jobs are alive.
  std::optional<InputError> look() {
    std::error_code unknown;
    std::size_t begun = 0;
    open_.clear();
    for (const auto& entry : plan_.file.due) {
      if (fs::exists(out_ + "/nodes/" + entry.node, unknown)) {
        ++begun;
      } else {
        open_.push_back(&entry);
      }
    }
    if (given_up_) open_.clear();
    for (const auto& one : pairs_) begun += fs::exists(folder_of(out_, one.pair), unknown) ? 1 : 0;
    if (begun != begun_) progress_ = Clock::now();
    const auto printed = files::run_child(squeue_, sweep::squeue_arguments(), kAnswer);
    if (!printed || printed->exit_code != 0) return std::nullopt;  // slurmctld restarts: live jobs are still alive
    const auto jobs = sweep::jobs_in(printed->output);
    begun_ = begun;
    for (const auto& id : alive_) {
      if (!jobs.contains(id)) ended_jobs_.push_back(id);
    }
    std::erase_if(alive_, [&](const std::string& id) { return !jobs.contains(id); });
    std::erase_if(pair_jobs_, [&](const std::string& id) { return !alive_.contains(id); });
    for (const auto& [id, state] : jobs) {
      if (state != "PENDING" && alive_.contains(id)) progress_ = Clock::now();
    }
    std::erase_if(targets_, [&](const auto& one) { return !alive_.contains(one.second); });
    return std::nullopt;
  }

  /// Which pairs may begin. After look(): a job that is gone has left its outcome.
  std::optional<InputError> look_at_pairs() {
    if (auto problem = pair_the_rest()) return problem;
    std::error_code unknown;
    for (auto& one : pairs_) {
      one.ready = !fs::exists(folder_of(out_, one.pair), unknown) && is_measured(one.pair.first) &&
                  is_measured(one.pair.second) && (one.jobs < kMostJobsOfPair || alive_.contains(one.job));
    }
    return std::nullopt;
  }

  /// Whether the worker of `node` has measured it. A node that has an outcome is looked at no more.
  bool is_measured(const std::string& node) {
    if (const auto found = ended_.find(node); found != ended_.end()) return found->second;
    const std::string path = out_ + "/nodes/" + node + "/visit.json";
    std::error_code unknown;
    if (!fs::exists(path, unknown)) return false;
    const auto text = read_file(path);
    const auto visit = text ? sweep::read_visit(*text, path) : std::unexpected(text.error());
    return ended_[node] = visit && visit->state == drift::VisitState::measured;  // visits_in() reports damaged ones
  }

  /// Once no node is waited for: nodes whose partner was not measured get one among themselves.
  std::optional<InputError> pair_the_rest() {
    const bool nodes_wanted =
        !open_.empty() || std::ranges::any_of(alive_, [&](const std::string& id) { return !pair_jobs_.contains(id); });
    if (rest_paired_ || nodes_wanted || plan_.file.pairs.empty()) return std::nullopt;
    rest_paired_ = true;
    std::vector<std::string> measured;
    for (const auto& entry : plan_.file.due) {
      if (is_measured(entry.node)) measured.push_back(entry.node);
    }
    const auto more = pairs_among(plan_, sweep::without_partner(measured, plan_.file.pairs));
    if (!more) return more.error();
    for (const auto& pair : *more) pairs_.push_back({.pair = pair});
    return std::nullopt;
  }

  /// Whether nothing more is to begin: the time is over, or nothing was begun for so long. Where nodes stay open and
  /// there are pairs, the nodes are given up first, and those that were measured are paired.
  bool over() {
    if (plan_.until && *plan_.until <= std::chrono::system_clock::now()) {
      std::cerr << "the time of the sweep is over\n";
      return true;
    }
    if (Clock::now() - progress_ <= std::chrono::duration<double>(patience_.count)) return false;
    const auto pairs = std::ranges::count_if(pairs_, &Pair::ready);
    std::cerr << harmless(fmt::format("nothing was begun for {:g} s: {} nodes and {} pairs stay unvisited",
                                      patience_.count, open_.size(), pairs))
              << '\n';
    if (given_up_ || plan_.file.pairs.empty()) return true;
    given_up_ = true;
    Words waiting;
    std::ranges::set_difference(alive_, pair_jobs_, std::back_inserter(waiting));
    if (!waiting.empty()) (void)files::run_child(scancel_, waiting, kAnswer);  // the rest ends by its time limit
    progress_ = Clock::now();
    return false;
  }

  std::optional<InputError> submit() {
    for (const auto* entry : open_) {
      if (!entry->targeted || targets_.contains(entry->node) || targets_.size() >= sweep::kMostJobs) continue;
      if (auto problem = submit_node(entry->node)) return problem;
    }
    const std::size_t most = sweep::jobs_for(plan_.file.due.size());
    const auto jobs = [this] { return alive_.size() - std::min(alive_.size(), targets_.size()); };
    for (auto& one : pairs_) {  // first: both nodes were idle a moment ago
      if (jobs() >= most) return std::nullopt;
      if (!one.ready || alive_.contains(one.job)) continue;
      if (auto problem = submit_pair(one)) return problem;
    }
    const auto of_nodes = [&] { return jobs() - std::min(jobs(), pair_jobs_.size()); };
    while (jobs() < most && of_nodes() < open_.size()) {
      const std::size_t before = alive_.size();
      if (auto problem = submit_node("")) return problem;
      if (alive_.size() == before) break;  // refused; the next look tries again
    }
    return std::nullopt;
  }

  std::optional<InputError> submit_node(const std::string& target) {
    std::set<std::string> wanted;
    for (const auto* entry : open_) wanted.insert(entry->node);
    sweep::WorkerJob job = job_of_sweep();
    job.target = target;
    for (const auto& node : plan_.site.nodes) {
      if (!wanted.contains(node.name)) job.exclude.push_back(node.name);
    }
    std::string id;
    if (auto problem = submit_job(job, id)) return problem;
    if (!id.empty() && !target.empty()) targets_[target] = id;
    return std::nullopt;
  }

  std::optional<InputError> submit_pair(Pair& one) {
    sweep::WorkerJob job = job_of_sweep();
    job.pair = one.pair;
    std::string id;
    if (auto problem = submit_job(job, id)) return problem;
    if (id.empty()) return std::nullopt;
    one.job = id;
    ++one.jobs;
    pair_jobs_.insert(id);
    return std::nullopt;
  }

  [[nodiscard]] sweep::WorkerJob job_of_sweep() const {
    return {.script = out_ + "/workers/worker.sh",
            .log = out_ + "/workers/%j.log",
            .budget_s = plan_.file.budget_s + plan_.file.stagger_s,
            .until = plan_.until};
  }

  /// Sets `id` to the number of the job; empty if sbatch refused it this time.
  std::optional<InputError> submit_job(const sweep::WorkerJob& job, std::string& id) {
    const auto words = sweep::sbatch_arguments(job, plan_.site.slurm);
    if (!words) return InputError{"sbatch", words.error(), "mend the site file or the folder's name"};
    const auto printed = files::run_child(sbatch_, *words, kAnswer);
    const auto found = printed && printed->exit_code == 0 ? sweep::job_id_in(printed->output) : std::nullopt;
    if (!found) {
      if (++refusals_ < kMostRefusals) return std::nullopt;
      return InputError{"sbatch", "refused the job again and again", "its own message is above"};
    }
    refusals_ = 0;
    id = *found;
    alive_.insert(id);
    return std::nullopt;
  }

  /// The last line in the newest log of ended_jobs_ that has one: that of the last job may not be there yet.
  [[nodiscard]] std::string what_they_wrote() const {
    for (auto id = ended_jobs_.rbegin(); id != ended_jobs_.rend(); ++id) {
      std::string line = last_line_of(fmt::format("{}/workers/{}.log", out_, *id));
      if (!line.empty()) return line;
    }
    return "nothing";
  }

  /// Our jobs are cancelled; workers that run get the time to write down that they were stopped.
  std::optional<InputError> end() {
    if (alive_.empty()) return std::nullopt;
    (void)files::run_child(scancel_, Words(alive_.begin(), alive_.end()), kAnswer);  // the rest ends by its time limit
    const auto last = Clock::now() + kEndOfWorkers;
    while (!alive_.empty() && Clock::now() < last) {
      std::this_thread::sleep_for(kPollAtEnd);
      if (auto problem = look()) return problem;
    }
    return std::nullopt;
  }

  const SweepPlan& plan_;
  std::string out_;
  Seconds patience_;
  SweepStop stop_;
  std::string sbatch_, squeue_, scancel_;
  std::vector<const sweep::DueEntry*> open_;    ///< due nodes that no worker has claimed
  std::set<std::string> alive_;                 ///< our jobs that wait or run
  std::map<std::string, std::string> targets_;  ///< by node: the job only for it
  std::vector<Pair> pairs_;
  std::set<std::string> pair_jobs_;    ///< those of alive_ that are of pairs
  std::map<std::string, bool> ended_;  ///< by node that has an outcome: whether it was measured
  bool rest_paired_ = false, given_up_ = false;
  std::size_t begun_ = 0;
  int refusals_ = 0;
  Words ended_jobs_;  ///< jobs that are gone, the last one last
  Clock::time_point progress_;
};

}  // namespace

std::expected<std::vector<sweep::NodeVisit>, InputError> sweep_by_slurm(const SweepPlan& plan, const std::string& out,
                                                                        const SweepArguments& given) {
  const auto patience = seconds_of("--patience", given.patience);
  if (!patience) return std::unexpected(patience.error());
  Jobs jobs(plan, out, *patience);
  if (auto problem = jobs.go()) return std::unexpected(*problem);
  return visits_in(plan, out);
}

}  // namespace assay::cli
