// soak_run: trains in segments; a lost rank ends its segment, and the next one begins with new processes.
#include "workloads/train/step/soak_run.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <stdexcept>

#include <fmt/format.h>

#include "probes/collective/fleet.h"
#include "probes/collective/limits.h"
#include "probes/collective/local_ranks.h"
#include "probes/core/probe.h"
#include "probes/core/statistics.h"
#include "workloads/train/step/training.h"

namespace assay::train {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kMostSteps = 10'000;  // of one window: a rank answers with all of their times

constexpr double kSlowest = 4;  // a step over the one before, before silence is counted

double since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

class Soak {
 public:
  Soak(const std::vector<collective::RankProgram>& programs, const Parameters& given, const RankJob& job,
       const SoakTimes& times, const std::string& node, const std::function<void(double)>& begun)
      : programs_(programs),
        given_(given),
        job_(job),
        times_(times),
        node_(node),
        begun_(begun),
        titles_(programs.size(), node) {}

  SoakOutcome run() {
    while (since(begin_) < times_.duration.count && !outcome_.gave_up) {
      ++outcome_.segments;
      try {
        segment();
      } catch (const BadParameter&) {
        throw;
      } catch (const collective::RankLost& lost) {
        const auto how = lost.how == collective::RankLoss::ended    ? Interruption::ended
                         : lost.how == collective::RankLoss::silent ? Interruption::silent
                                                                    : Interruption::error;
        interrupted(how, lost);
      } catch (const std::runtime_error& failed) {
        interrupted(Interruption::error, failed);
      }
    }
    return std::move(outcome_);
  }

 private:
  void interrupted(Interruption how, const std::runtime_error& why) {
    if (stop_requested() || outcome_.step_s.empty()) throw;  // of the handler that called this
    auto& all = outcome_.interrupted_s;
    all.at(static_cast<std::size_t>(how)).push_back(outcome_.load_s);
    outcome_.broken_at_s.at(static_cast<std::size_t>(how)).push_back(since(begin_));
    outcome_.notes.push_back(
        fmt::format("segment {}, after {:.0f} s under load: {}", outcome_.segments, outcome_.load_s, why.what()));
    const auto count = std::accumulate(all.begin(), all.end(), std::size_t{0},
                                       [](std::size_t sum, const auto& one) { return sum + one.size(); });
    outcome_.gave_up = count >= kMostInterruptions;
  }

  void segment() {
    collective::LocalRanks ranks(programs_, {.stopped = times_.silence, .idle = times_.silence});
    collective::Fleet fleet([&](std::string_view request, Seconds limit) { return ranks.ask(request, limit); }, titles_,
                            node_, nullptr);
    Training training(fleet, given_, job_, times_.silence);
    try {
      whole(training);
    } catch (...) {
      keep(training);
      throw;
    }
    keep(training);
    ranks.finish(collective::kLeaveLimit);
  }

  void whole(Training& training) {
    training.meet([](const auto&) {});
    training.check_exact("before");
    training.prepare();
    windows(training);
    training.settle();
    training.check_exact("after");
    if (outcome_.facts.is_null()) outcome_.facts = training.facts().front();
  }

  /// Findings count, even if the segment is interrupted.
  void keep(const Training& training) {
    outcome_.mismatches += training.mismatches();
    for (const auto& finding : training.findings())
      outcome_.notes.push_back(fmt::format("segment {}: {}", outcome_.segments, finding));
  }

  /// Windows of steps until the segment, or the soak, is over.
  void windows(Training& training) {
    const auto first = longest(training.steps(Variant::full, given_.count("warmup_steps")), &RankSteps::wall);
    double step_s = median(first);
    const auto begin = Clock::now();
    while (since(begin) < times_.segment.count && since(begin_) < times_.duration.count) {
      const auto count =
          std::clamp(static_cast<std::int64_t>(times_.window.count / step_s), std::int64_t{1}, kMostSteps);
      const double from_s = since(begin_);
      // The slowest of several steps may be far over their median; a single one may be longer than a window.
      const Seconds limit = {std::max(times_.window.count, kSlowest * step_s)};
      const auto wall = longest(training.steps(Variant::full, count, limit), &RankSteps::wall);
      const double to_s = since(begin_);
      step_s = median(wall);
      outcome_.at_s.push_back((from_s + to_s) / 2);
      outcome_.step_s.push_back(step_s);
      outcome_.load_s += to_s - from_s;
      if (outcome_.step_s.size() == 1) begun_(to_s);
      if (job_.data == DataMode::replicated) training.vote(limit);
    }
  }

  const std::vector<collective::RankProgram>& programs_;
  const Parameters& given_;
  const RankJob& job_;
  const SoakTimes& times_;
  const std::string& node_;
  const std::function<void(double)>& begun_;
  std::vector<std::string> titles_;
  Clock::time_point begin_ = Clock::now();
  SoakOutcome outcome_;
};

}  // namespace

SoakOutcome soak(const std::vector<collective::RankProgram>& programs, const Parameters& given, const RankJob& job,
                 const SoakTimes& times, const std::string& node, const std::function<void(double)>& begun) {
  return Soak(programs, given, job, times, node, begun).run();
}

}  // namespace assay::train
