// forecast: the schedule, played forward.
#include "orchestrator/plan/forecast.h"

#include <algorithm>

namespace assay::plan {

Forecast::Forecast(const Plan& plan) : plan_(plan) {
  for (const auto& node : plan.site.nodes) nodes_.emplace(node.name, nodes_.size());
  for (const auto& step : plan.steps) {
    index_.emplace(step.id, tasks_.size());
    Task task{.nodes = {}, .typical_s = step.typical_s, .power_w = step.power_w, .open = true, .alone = step.alone};
    for (const auto& node : step.nodes) task.nodes.push_back(nodes_.at(node));
    tasks_.push_back(std::move(task));
  }
}

void Forecast::begin(const Step& step, double now) {
  Running running{.ends = now + step.typical_s, .nodes = {}};
  for (const auto& node : step.nodes) running.nodes.push_back(nodes_.at(node));
  running_[step.id] = std::move(running);
  if (const auto found = index_.find(step.id); found != index_.end()) tasks_[found->second].open = false;
}

void Forecast::end(const std::string& step) {
  running_.erase(step);
  if (const auto found = index_.find(step); found != index_.end()) tasks_[found->second].open = false;
}

double Forecast::remaining_s(double now) const {
  std::vector<double> free_at(nodes_.size(), now);
  double last = now;
  for (const auto& [step, running] : running_) {
    for (const std::size_t node : running.nodes) free_at[node] = std::max(now, running.ends);
    last = std::max(last, running.ends);
  }
  double energy_j = 0;
  for (const auto& task : tasks_) {
    if (!task.open) continue;
    double begins = now;
    for (const std::size_t node : task.nodes) begins = std::max(begins, free_at[node]);
    if (task.alone) {
      begins = std::max(begins, std::ranges::max(free_at));
      std::ranges::fill(free_at, begins + task.typical_s);
    }
    for (const std::size_t node : task.nodes) free_at[node] = begins + task.typical_s;
    last = std::max(last, begins + task.typical_s);
    energy_j += task.power_w * task.typical_s;
  }
  const double by_power = plan_.site.power_cap_w ? energy_j / *plan_.site.power_cap_w : 0;
  return std::max(last - now, by_power) + tests_s_;
}

}  // namespace assay::plan
