// fault_run: the steps of all cases twice, undisturbed and then with a fault in each case, and the times of each
// recovery. One case is 2 x save_every steps with a save in the middle and one at the end.
//
// Example: a kill of rank 2 in step 4, save_every = 3:
//   run 0-3, save 3        every rank answers; the prints of the state are kept (prints_)
//   run 3-6                rank 2 dies in step 4. The answers of the others are no longer waited for
//   detect                 from the fault until the leader of rank 0 has the loss (since_s)
//   abort                  the group is over: sockets are shut, no rank waits, the lost process is ended (Crew::abort)
//   rebuild                a spare is rank 2, all are connected anew (Crew::rebuild)
//   restore                all have the state after step 3, checked by its print (Crew::restore)
//   recompute              run 3-5: until the step of the fault is done again (close())
//   run 5-6, save 6        the prints must be those of the undisturbed run (compare())
//   restock                a new process in the place of the lost one, as a spare
// A rank that is given up although no fault had ended it goes the same way, and counts as a false loss.
#include "workloads/train/faults/fault_run.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <stdexcept>

#include <fmt/format.h>

#include "workloads/train/faults/fault_crew.h"

namespace assay::train {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

double since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

/// One run.
class FaultRun {
 public:
  FaultRun(collective::WatchedFleet& fleet, const FaultJob& job) : job_(job), crew_(fleet, job, outcome_) {}

  FaultOutcome conduct(const std::function<void(const std::vector<json>&)>& entered) {
    for (const FaultCase& one : job_.faults.cases)
      outcome_.mismatches[word_of(one.kind)] = outcome_.false_losses[word_of(one.kind)] = 0;
    outcome_.false_losses[kUndisturbed] = 0;
    crew_.greet();
    entered(crew_.begin());
    save(nullptr);
    for (std::size_t i = 0; i < job_.faults.cases.size(); ++i) half_cases(nullptr, static_cast<std::int64_t>(i));
    const auto undisturbed = std::exchange(prints_, {});
    undisturbed_ = false;
    outcome_.facts = crew_.demand(json{{"do", "facts"}});
    (void)crew_.begin();  // the paths were looked at before
    done_ = saved_ = 0;
    save(nullptr);
    for (std::size_t i = 0; i < job_.faults.cases.size(); ++i) {
      const std::size_t before = outcome_.repaired.size(), told = outcome_.notes.size();
      case_ = &job_.faults.cases[i];
      half_cases(case_, static_cast<std::int64_t>(i));
      if (case_->kind != FaultKind::slow && outcome_.repaired.size() == before)
        throw std::runtime_error(did_not_stop(told));
      compare(undisturbed);
      crew_.restock();
    }
    return std::move(outcome_);
  }

 private:
  /// That the case did not end its rank, and the other events since there were so many notes: a rank that is cut off
  /// has its connections anew when another one is lost at the same time.
  [[nodiscard]] std::string did_not_stop(std::size_t notes) const {
    std::string text = text_of(*case_) + " did not stop it";
    for (std::size_t i = notes; i < outcome_.notes.size(); ++i) text += "; " + outcome_.notes[i];
    return text;
  }

  /// The steps of case `number`: to its first save, and to its second.
  void half_cases(const FaultCase* fault, std::int64_t number) {
    const std::int64_t begin = number * job_.faults.steps_per_case();
    const bool saving = fault != nullptr && fault->phase == StepPhase::save;
    advance(begin + job_.faults.save_every, nullptr);
    save(nullptr);
    advance(begin + job_.faults.steps_per_case(), saving ? nullptr : fault);
    save(saving ? fault : nullptr);
  }

  [[nodiscard]] std::vector<json> requests(const json& all, const FaultCase* fault) const {
    std::vector<json> by_rank(sized(job_.job.plan.world()), all);
    if (fault != nullptr)
      by_rank.at(sized(fault->rank))["fault"] = {static_cast<int>(fault->kind), static_cast<int>(fault->phase),
                                                 fault->step};
    return by_rank;
  }

  /// Steps until `to` are done, with recoveries on the way.
  void advance(std::int64_t to, const FaultCase* fault) {
    while (done_ < to) {
      const std::int64_t next = open_ ? std::min(to, open_->reached) : to;
      const auto found = crew_.ask(requests(json{{"do", "run"}, {"from", done_}, {"to", next}}, fault));
      if (!found.lost.empty()) {
        recover(found.lost, fault != nullptr ? fault->step + 1 : next);
        fault = nullptr;
        continue;
      }
      if (fault != nullptr && !found.answers.at(sized(fault->rank)).at("struck").get<bool>())
        throw std::logic_error("a fault was not injected: " + text_of(*fault));
      fault = nullptr;
      if (undisturbed_) append_longest(found.answers);
      done_ = next;
      close();
    }
  }

  void append_longest(const std::vector<json>& answers) {
    std::vector<double> longest;
    for (const auto& answer : answers) {
      const auto wall = answer.at("wall").get<std::vector<double>>();
      longest.resize(wall.size(), 0);
      for (std::size_t i = 0; i < wall.size(); ++i) longest[i] = std::max(longest[i], wall[i]);
    }
    outcome_.step_time.insert(outcome_.step_time.end(), longest.begin(), longest.end());
  }

  /// The state after the steps that are done; they are done again as often as a rank is lost meanwhile.
  void save(const FaultCase* fault) {
    while (true) {
      const auto found = crew_.ask(requests(json{{"do", "save"}, {"step", done_}, {"before", saved_}}, fault));
      fault = nullptr;
      if (found.lost.empty()) return commit(found.answers);
      const std::int64_t reached = done_;
      recover(found.lost, reached);
      if (reached == saved_) close();
      advance(reached, nullptr);
    }
  }

  void commit(const std::vector<json>& answers) {
    Prints prints;
    double took_s = 0;
    for (const auto& answer : answers) {
      prints.push_back(answer.at("print"));
      took_s = std::max(took_s, answer.at("took").get<double>());
    }
    prints_[done_] = std::move(prints);
    saved_ = done_;
    if (undisturbed_) outcome_.save_time.push_back(took_s);
  }

  /// A recovery whose steps are not done again yet.
  struct Open {
    Recovery times;
    std::int64_t reached = 0;
    Clock::time_point restored;
    bool injected = false;
  };

  void recover(const std::vector<LostRank>& lost, std::int64_t reached) {
    const auto noticed = Clock::now();
    Open open{.times = {}, .reached = reached, .restored = {}, .injected = false};
    for (const auto& one : lost) {
      const bool ours = case_ != nullptr && case_->kind != FaultKind::slow && one.since_s && one.rank == case_->rank;
      outcome_.notes.push_back(fmt::format("rank {} {}", one.rank, one.how));
      if (!ours) {
        ++outcome_.false_losses[case_ != nullptr ? word_of(case_->kind) : kUndisturbed];
        continue;
      }
      open.injected = true;
      open.times.detect_s = *one.since_s;
    }
    const auto prints = prints_.find(saved_);
    if (prints == prints_.end())
      throw std::runtime_error(
          fmt::format("rank {} {} and was lost before a state was saved", lost.front().rank, lost.front().how));
    crew_.abort(lost);
    const auto aborted = Clock::now();
    crew_.rebuild(lost);
    const auto rebuilt = Clock::now();
    crew_.restore(lost, saved_, prints->second);
    open.restored = Clock::now();
    open.times.abort_s = std::chrono::duration<double>(aborted - noticed).count();
    open.times.rebuild_s = std::chrono::duration<double>(rebuilt - aborted).count();
    open.times.restore_s = std::chrono::duration<double>(open.restored - rebuilt).count();
    done_ = saved_;
    open_ = open;
  }

  /// The steps that a loss cost are done again.
  void close() {
    if (!open_ || done_ < open_->reached) return;
    open_->times.recompute_s = since(open_->restored);
    if (open_->injected) {
      const Recovery& t = open_->times;
      outcome_.repaired.push_back(*case_);
      outcome_.recoveries.push_back(t);
      outcome_.lost_steps.push_back(open_->reached - saved_);
      outcome_.notes.push_back(
          fmt::format("{}: detect {:.3f} s, abort {:.3f} s, rebuild {:.3f} s, restore {:.3f} s, recompute {:.3f} s",
                      text_of(*case_), t.detect_s, t.abort_s, t.rebuild_s, t.restore_s, t.recompute_s));
    }
    open_.reset();
  }

  void compare(const std::map<std::int64_t, Prints>& undisturbed) {
    const Prints& now = prints_.at(saved_);
    for (std::size_t rank = 0; rank < now.size(); ++rank) {
      if (now[rank] == undisturbed.at(saved_)[rank]) continue;
      ++outcome_.mismatches[word_of(case_->kind)];
      outcome_.notes.push_back(
          fmt::format("after {} the state of rank {} after {} steps is not that of the run without faults",
                      text_of(*case_), rank, saved_));
    }
  }

  const FaultJob& job_;
  FaultOutcome outcome_;
  Crew crew_;
  bool undisturbed_ = true;
  std::int64_t done_ = 0, saved_ = 0;
  std::map<std::int64_t, Prints> prints_;  ///< by the step of a save
  const FaultCase* case_ = nullptr;
  std::optional<Open> open_;
};

}  // namespace

FaultOutcome conduct_faults(collective::WatchedFleet& fleet, const FaultJob& job,
                            const std::function<void(const std::vector<json>&)>& entered) {
  return FaultRun(fleet, job).conduct(entered);
}

}  // namespace assay::train
