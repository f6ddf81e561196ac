// forecast: simulates the schedule of the open attempts from their typical times; see forecast.h.
#include "orchestrator/plan/forecast.h"

#include <algorithm>

namespace assay::plan {

namespace {

/// A step with quick parameters starts its probe, warms up and ends like any other: no less than this share is left.
constexpr double kLeastShare = 0.25;

/// The parameters of `probe` whose quick value is a number, with its share of the usual one.
std::vector<std::pair<std::string, double>> quick_shares(const Description& probe) {
  std::vector<std::pair<std::string, double>> shares;
  const auto usual = probe.resolve({}, false), quick = probe.resolve({}, true);
  if (!usual || !quick) return shares;
  for (const auto& parameter : probe.parameters) {
    if (parameter.quick.empty()) continue;
    const auto slow = number_in(usual->at(parameter.name)), fast = number_in(quick->at(parameter.name));
    if (slow && fast && *fast > 0 && *fast < *slow) shares.emplace_back(parameter.name, *fast / *slow);
  }
  return shares;
}

}  // namespace

double Forecast::typical_s(const Step& step) const {
  const auto kind = kind_of(step);
  return kind ? kinds_[*kind].typical_s : stated_s(step);
}

void Forecast::took(const Step& step, double seconds) {
  const auto known = kind_of(step);
  if (!known) return;
  Kind& kind = kinds_[*known];
  kind.typical_s = kind.seen == 0 ? seconds : kind.typical_s + (seconds - kind.typical_s) / (kind.seen + 1);
  ++kind.seen;
}

std::optional<std::size_t> Forecast::kind_of(const Step& step) const {
  const auto all = kinds_of_.find({step.probe, step.nodes.size()});
  if (all == kinds_of_.end()) return std::nullopt;
  const auto same = [&](std::size_t kind) { return *kinds_[kind].parameters == step.parameters; };
  const auto found = std::ranges::find_if(all->second, same);
  return found == all->second.end() ? std::nullopt : std::optional(*found);
}

double Forecast::stated_s(const Step& step) const {
  const auto shares = quick_.find(step.probe);
  if (shares == quick_.end()) return step.typical_s;
  double least = 1;
  const Description& probe = plan_.probes.at(step.probe).description;
  const auto quick = probe.resolve({}, true);
  for (const auto& [name, share] : shares->second) {
    const auto own = step.parameters.find(name);
    if (quick && own != step.parameters.end() && own->second == quick->at(name)) least = std::min(least, share);
  }
  return step.typical_s * std::max(kLeastShare, least);
}

Forecast::Forecast(const Plan& plan) : plan_(plan), passes_(plan) {
  if (plan.quick) {
    for (const auto& [name, probe] : plan.probes) quick_[name] = quick_shares(probe.description);
  }
  for (const auto& node : plan.site.nodes) nodes_.emplace(node.name, nodes_.size());
  for (const auto& step : plan.steps) {
    index_.emplace(step.id, tasks_.size());
    auto kind = kind_of(step);
    if (!kind) {
      kind = kinds_.size();
      kinds_.push_back({.parameters = &step.parameters, .typical_s = stated_s(step)});
      kinds_of_[{step.probe, step.nodes.size()}].push_back(*kind);
    }
    Task task{.kind = *kind, .power_w = step.power_w, .open = step.attempts, .alone = step.alone};
    for (const auto& node : step.nodes) task.nodes.push_back(nodes_.at(node));
    tasks_.push_back(std::move(task));
  }
  add_turns(Stage::first);
}

void Forecast::add_turns(Stage stage) {
  for (int pass = 1; pass <= passes_.count(stage); ++pass) {
    for (const Step* step : passes_.steps(stage, pass)) turns_.push_back(index_.at(step->id));
  }
}

void Forecast::add_second_stage(const std::vector<const Step*>& steps) {
  for (const Step* step : steps) tasks_[index_.at(step->id)].open += step->more_attempts;
  add_turns(Stage::second);
}

void Forecast::begin(const Step& step, double now) {
  Running running{.ends = now + typical_s(step)};
  for (const auto& node : step.nodes) running.nodes.push_back(nodes_.at(node));
  running_[step.id] = std::move(running);
  if (const auto found = index_.find(step.id); found != index_.end())
    tasks_[found->second].open = std::max(0, tasks_[found->second].open - 1);
}

void Forecast::end(const std::string& step) { running_.erase(step); }

void Forecast::set_left(const std::string& step, int attempts) {
  if (const auto found = index_.find(step); found != index_.end()) tasks_[found->second].open = attempts;
}

double Forecast::remaining_s(double now) const {
  std::vector<double> free_at(nodes_.size(), now);
  double last = now;
  for (const auto& [step, running] : running_) {
    for (const std::size_t node : running.nodes) free_at[node] = std::max(now, running.ends);
    last = std::max(last, running.ends);
  }
  // Which turns of a task are left matters little for the time: the last ones are.
  std::vector<int> to_pass(tasks_.size(), 0);
  for (const std::size_t index : turns_) ++to_pass[index];
  for (std::size_t i = 0; i < tasks_.size(); ++i) to_pass[i] -= tasks_[i].open;
  double energy_j = 0;
  for (const std::size_t index : turns_) {
    const Task& task = tasks_[index];
    if (to_pass[index]-- > 0) continue;
    const double typical_s = kinds_[task.kind].typical_s;
    double begins = now;
    for (const std::size_t node : task.nodes) begins = std::max(begins, free_at[node]);
    if (task.alone) {
      begins = std::max(begins, std::ranges::max(free_at));
      std::ranges::fill(free_at, begins + typical_s);
    }
    for (const std::size_t node : task.nodes) free_at[node] = begins + typical_s;
    last = std::max(last, begins + typical_s);
    energy_j += task.power_w * typical_s;
  }
  const double by_power = plan_.site.power_cap_w ? energy_j / *plan_.site.power_cap_w : 0;
  return std::max(last - now, by_power) + tests_s_;
}

Durations durations_of(const Plan& plan) {
  Forecast forecast(plan);
  Durations durations{.first_s = forecast.remaining_s(0)};
  std::vector<const Step*> all;
  for (const auto& step : plan.steps) {
    if (step.more_attempts > 0) all.push_back(&step);
  }
  if (!all.empty()) forecast.add_second_stage(all);
  durations.most_s = forecast.remaining_s(0);
  return durations;
}

}  // namespace assay::plan
