// forecast: how long what is left of a plan will take, by the typical times of its steps.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "orchestrator/plan/plan.h"

namespace assay::plan {

/// Follows the steps of a plan, which must outlive it, and plays forward those that are open: each node takes its steps
/// in the plan's order, and a step of several nodes begins when the last of them is free. Extra tests of searches come
/// on top.
class Forecast {
 public:
  explicit Forecast(const Plan& plan);

  /// A step begins at `now`, in seconds on any clock that only goes forward; an extra test is one, too.
  void begin(const Step& step, double now);
  /// It ended, or it will never begin.
  void end(const std::string& step);
  /// As many extra tests may still follow, at most.
  void tests_left(std::size_t tests, double typical_s) { tests_s_ = static_cast<double>(tests) * typical_s; }
  /// Seconds left: the longest row of steps, and no less than the power cap lets through.
  [[nodiscard]] double remaining_s(double now) const;

 private:
  struct Task {
    std::vector<std::size_t> nodes;
    double typical_s = 0, power_w = 0;
    bool open = true;    ///< not begun
    bool alone = false;  ///< nothing else runs meanwhile
  };
  struct Running {
    double ends = 0;  ///< typically
    std::vector<std::size_t> nodes;
  };
  const Plan& plan_;
  std::unordered_map<std::string_view, std::size_t> nodes_;
  std::unordered_map<std::string_view, std::size_t> index_;
  std::vector<Task> tasks_;
  std::unordered_map<std::string, Running> running_;
  double tests_s_ = 0;
};

}  // namespace assay::plan
