// forecast: remaining time of a plan, by the typical times of its steps.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "orchestrator/plan/passes.h"
#include "orchestrator/plan/plan.h"

namespace assay::plan {

/// Follows the attempts of a plan's steps, which must outlive it, and plays forward those that are open: each node
/// takes its turns in the order of the passes, and a step of several nodes begins when the last of them is free. Extra
/// tests of searches come on top.
class Forecast {
 public:
  /// Of the first stage.
  explicit Forecast(const Plan& plan);

  /// These steps are measured in the second stage, too.
  void add_second_stage(const std::vector<const Step*>& steps);
  /// An attempt of a step begins at `now`, in seconds on any clock that only goes forward; an extra test is one, too.
  void begin(const Step& step, double now);
  /// It ended.
  void end(const std::string& step);
  /// An attempt of `step` that went well took so long: the mean of these takes the place of the usual time of every
  /// step with the same probe and parameters on as many nodes.
  void took(const Step& step, double seconds);
  /// Sets the number of attempts of the step still to begin; 0: none.
  void set_left(const std::string& step, int attempts);
  /// As many extra tests may still follow, at most.
  void tests_left(std::size_t tests, double typical_s) { tests_s_ = static_cast<double>(tests) * typical_s; }
  /// Seconds that `step` usually takes: as it took before, else by its probe; less with quick parameters.
  [[nodiscard]] double typical_s(const Step& step) const;
  /// Seconds left: the longest row of steps, and no less than the power cap lets through.
  [[nodiscard]] double remaining_s(double now) const;

 private:
  /// Steps with the same probe and parameters on as many nodes.
  struct Kind {
    const files::Shared<Values>* parameters;
    double typical_s;
    int seen = 0;  ///< attempts whose mean that is; 0: it is the probe's
  };
  struct Task {
    std::vector<std::size_t> nodes;
    std::size_t kind = 0;
    double power_w = 0;
    int open = 0;        ///< attempts that have not begun
    bool alone = false;  ///< nothing else runs meanwhile
  };
  struct Running {
    double ends = 0;  ///< typically
    std::vector<std::size_t> nodes;
  };
  void add_turns(Stage stage);
  [[nodiscard]] double stated_s(const Step& step) const;
  [[nodiscard]] std::optional<std::size_t> kind_of(const Step& step) const;

  const Plan& plan_;
  Passes passes_;
  /// By probe: its parameters with a quick value, and which share of the usual value that is.
  std::map<std::string, std::vector<std::pair<std::string, double>>> quick_;
  std::unordered_map<std::string_view, std::size_t> nodes_;
  std::unordered_map<std::string_view, std::size_t> index_;
  std::map<std::pair<std::string_view, std::size_t>, std::vector<std::size_t>> kinds_of_;  ///< by probe and nodes
  std::vector<Kind> kinds_;
  std::vector<Task> tasks_;
  std::vector<std::size_t> turns_;  ///< tasks, in the order of the passes; the last ones of a task are those left
  std::unordered_map<std::string, Running> running_;
  double tests_s_ = 0;
};

/// Seconds that a plan takes typically, from the first agent started to the last one ended.
struct Durations {
  double first_s = 0;  ///< without a second stage
  double most_s = 0;   ///< when the second stage measures every step again; searches are not in it
};

/// Those of `plan`.
Durations durations_of(const Plan& plan);

}  // namespace assay::plan
