// sweep_slurm: keeps as many worker jobs in Slurm as the due list wants, until every due node has an outcome.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iostream>
#include <set>
#include <thread>

#include <fmt/format.h>

#include "orchestrator/cli/sweep_parts.h"
#include "orchestrator/files/atomic_file.h"
#include "orchestrator/files/child.h"
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

/// The jobs of one sweep.
class Jobs {
 public:
  Jobs(const SweepPlan& plan, std::string out, Seconds patience)
      : plan_(plan), out_(std::move(out)), patience_(patience) {}

  std::optional<InputError> go() {
    if (auto problem = prepare()) return problem;
    progress_ = Clock::now();
    while (!stop_.requested()) {
      if (auto problem = look()) return problem;
      if (open_.empty() && alive_.empty()) return std::nullopt;
      if (auto why = over(); !why.empty()) {
        std::cerr << harmless(why) << '\n';
        break;
      }
      if (auto problem = submit()) return problem;
      std::this_thread::sleep_for(kPoll);
    }
    return end();
  }

 private:
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
    if (begun != begun_) progress_ = Clock::now();
    begun_ = begun;
    const auto printed = files::run_child(squeue_, sweep::squeue_arguments(), kAnswer);
    if (!printed || printed->exit_code != 0) return std::nullopt;  // slurmctld restarts: what was alive still is
    const auto jobs = sweep::jobs_in(printed->output);
    std::erase_if(alive_, [&](const std::string& id) { return !jobs.contains(id); });
    for (const auto& [id, state] : jobs) {
      if (state != "PENDING" && alive_.contains(id)) progress_ = Clock::now();
    }
    std::erase_if(targets_, [&](const auto& one) { return !alive_.contains(one.second); });
    return std::nullopt;
  }

  /// Why nothing more is waited for; empty while something is.
  [[nodiscard]] std::string over() const {
    if (plan_.until && *plan_.until <= std::chrono::system_clock::now()) return "the time of the sweep is over";
    if (Clock::now() - progress_ > std::chrono::duration<double>(patience_.count))
      return fmt::format("no node was begun for {:g} s: {} stay unvisited", patience_.count, open_.size());
    return "";
  }

  std::optional<InputError> submit() {
    for (const auto* entry : open_) {
      if (!entry->targeted || targets_.contains(entry->node) || targets_.size() >= sweep::kMostJobs) continue;
      if (auto problem = submit_one(entry->node)) return problem;
    }
    const std::size_t most = std::min(sweep::jobs_for(plan_.file.due.size()), open_.size());
    while (alive_.size() - std::min(alive_.size(), targets_.size()) < most) {
      const std::size_t before = alive_.size();
      if (auto problem = submit_one("")) return problem;
      if (alive_.size() == before) break;  // refused; the next look tries again
    }
    return std::nullopt;
  }

  std::optional<InputError> submit_one(const std::string& target) {
    std::set<std::string> wanted;
    for (const auto* entry : open_) wanted.insert(entry->node);
    sweep::WorkerJob job{.script = out_ + "/workers/worker.sh",
                         .log = out_ + "/workers/%j.log",
                         .exclude = {},
                         .target = target,
                         .budget_s = plan_.file.budget_s + plan_.file.stagger_s,
                         .until = plan_.until};
    for (const auto& node : plan_.site.nodes) {
      if (!wanted.contains(node.name)) job.exclude.push_back(node.name);
    }
    const auto words = sweep::sbatch_arguments(job, plan_.site.slurm);
    if (!words) return InputError{"sbatch", words.error(), "mend the site file or the folder's name"};
    const auto printed = files::run_child(sbatch_, *words, kAnswer);
    const auto id = printed && printed->exit_code == 0 ? sweep::job_id_in(printed->output) : std::nullopt;
    if (!id) {
      if (++refusals_ < kMostRefusals) return std::nullopt;
      return InputError{"sbatch", "refused the job again and again", "its own message is above"};
    }
    refusals_ = 0;
    alive_.insert(*id);
    if (!target.empty()) targets_[target] = *id;
    return std::nullopt;
  }

  /// Our jobs are cancelled; workers that run get the time to write down that they were stopped.
  std::optional<InputError> end() {
    if (alive_.empty()) return std::nullopt;
    // NOLINTNEXTLINE(bugprone-unused-return-value): what is left ends by its time limit
    (void)files::run_child(scancel_, Words(alive_.begin(), alive_.end()), kAnswer);
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
  std::map<std::string, std::string> targets_;  ///< by node: the job that is for it alone
  std::size_t begun_ = 0;
  int refusals_ = 0;
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
