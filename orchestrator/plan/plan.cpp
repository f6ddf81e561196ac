// plan: requirements and nodes become steps and cells.
#include "orchestrator/plan/plan.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "orchestrator/files/digest.h"
#include "orchestrator/plan/acceptance.h"
#include "orchestrator/plan/contrast.h"
#include "orchestrator/plan/crossing_spots.h"
#include "orchestrator/plan/lint.h"
#include "orchestrator/plan/metered.h"
#include "orchestrator/plan/placement.h"
#include "orchestrator/plan/probe_check.h"
#include "orchestrator/plan/profile_check.h"
#include "probes/core/suggest.h"

namespace assay::plan {
namespace {

const Program* find(const std::vector<Program>& programs, std::string_view name) {
  const auto found = std::ranges::find(programs, name, &Program::name);
  return found == programs.end() ? nullptr : &*found;
}

/// One probe with one set of parameters in the same places, and the requirements it serves; becomes a step in each
/// place.
struct Task {
  const Program* program = nullptr;
  files::Shared<Values> parameters;
  std::vector<Spot> spots;
  std::vector<const Requirement*> requirements;
  std::vector<const Requirement*> off = {};  ///< of them, contrasts whose feature it has off
  std::string plane;
  bool alone = false;
  bool after = false;

  /// Nodes that work together in the largest of its steps.
  [[nodiscard]] std::size_t width() const {
    return std::ranges::max(spots, {}, [](const Spot& spot) { return spot.nodes.size(); }).nodes.size();
  }
};

class Planner {
 public:
  Planner(const Profile& profile, const site::Site& site, const std::vector<Program>& programs,
          const PlanOptions& options)
      : programs_(programs), options_(options) {
    plan_.assay_version = ASSAY_VERSION;
    plan_.quick = options.quick;
    plan_.localise = options.localise;
    plan_.continues = options.continues;
    plan_.earlier_fleet = options.earlier_fleet;
    plan_.challenge = options.challenge;
    plan_.allow_settings = options.allow_settings;
    plan_.agreed_risk = options.agreed_risk;
    plan_.agreed_stability = options.agreed_stability;
    plan_.drawn = options.drawn;
    plan_.profile = profile;
    plan_.site = site;
  }

  std::expected<Plan, InputError> make() {
    if (!options_.challenge.empty() && !files::is_sha256(options_.challenge)) {
      return std::unexpected(InputError{"--challenge",
                                        fmt::format("'{}' is not 64 hexadecimal digits", options_.challenge),
                                        "the receiver makes one: openssl rand -hex 32"});
    }
    if (auto problem = choose()) return std::unexpected(*problem);
    if (!options_.allow_settings) {
      if (auto problem = unallowed_settings(plan_.profile, plan_.only)) return std::unexpected(*problem);
    }
    for (const auto& name : plan_.profile.companions) {
      if (const auto* program = find(programs_, name)) {
        if (!is_site_companion(name)) companions_.push_back(name);  // that one runs only on the head
        add_probe(*program);
      }
    }
    for (std::size_t i = 0; i < plan_.profile.requirements.size(); ++i) {
      if (auto problem = place(plan_.profile.requirements[i],
                               fmt::format("profile {}: requirements[{}]", plan_.profile.name, i))) {
        return std::unexpected(*problem);
      }
    }
    // A node that is bad on its own would spoil every pair and group, and short steps give the most for their time.
    // Effects of the load are measured after it.
    std::ranges::stable_sort(tasks_, {}, [](const Task& task) {
      return std::tuple(task.after, task.width(), task.program->description.typical_s);
    });
    if (auto problem = check_drawn()) return std::unexpected(*problem);
    if (auto problem = unread_inventory(plan_.profile)) return std::unexpected(*problem);
    if (auto problem = check_faults()) return std::unexpected(*problem);
    write_steps();
    if (auto problem = check_power_cap(plan_)) return std::unexpected(*problem);
    if (auto problem = check_agreement(plan_)) return std::unexpected(*problem);
    if (plan_.agreed_stability) {
      auto looks = check_stability(plan_);
      if (!looks) return std::unexpected(looks.error());
      plan_.looks = std::move(*looks);
    }
    if (plan_.localise && !plan_.quick) plan_.searches = planned_searches(plan_);
    return std::move(plan_);
  }

 private:
  /// Applies --only.
  std::optional<InputError> choose() {
    if (options_.only.empty()) return std::nullopt;
    std::vector<std::string> ids;
    for (const auto& requirement : plan_.profile.requirements) ids.push_back(requirement.id);
    for (const auto& id : options_.only) {
      if (std::ranges::find(ids, id) == ids.end()) {
        return InputError{"--only", fmt::format("profile {} has no requirement '{}'", plan_.profile.name, id),
                          suggestion(id, ids)};
      }
    }
    for (const auto& id : ids) {
      if (std::ranges::find(options_.only, id) != options_.only.end()) plan_.only.push_back(id);
    }
    if (plan_.only.size() == ids.size() && plan_.drawn.empty()) plan_.only.clear();
    return std::nullopt;
  }

  void add_probe(const Program& program) {
    if (!plan_.probes.contains(program.name)) plan_.probes.emplace(program.name, planned_probe(program, plan_.site));
  }

  std::optional<InputError> place(const Requirement& requirement, const std::string& here) {
    if (!plan_.only.empty() && std::ranges::find(plan_.only, requirement.id) == plan_.only.end()) {
      return leave_out(requirement, "left out by --only");
    }
    const Program* measuring = find(programs_, requirement.probe);
    const bool metered = !requirement.during.empty();
    const Program* program = metered ? find(programs_, requirement.during) : measuring;
    if (program == nullptr || measuring == nullptr)
      return leave_out(requirement, fmt::format("the probe {} is not part of this build",
                                                measuring == nullptr ? requirement.probe : requirement.during));
    if (auto problem = check_against(requirement, measuring->description, here)) return problem;
    if (requirement.by == Grouping::path) {
      if (auto problem = check_crossings(plan_.site, plan_.profile)) return problem;
    }
    if (site_lacks(plan_.site, requirement)) return leave_out(requirement, why_lacking(requirement));
    const Requirement placed = metered ? placed_on_all(requirement, plan_.site) : requirement;
    if (auto problem = count(least_spots(placed, program->description, plan_.site), here)) return problem;
    auto spots = spots_of(placed, program->description, plan_.site, growing_of(requirement));
    if (!spots) {
      spots.error().where = here + "." + spots.error().where;
      return spots.error();
    }
    keep_built(*program, plan_.site, *spots);
    if (!plan_.drawn.empty()) found_ += keep_drawn(requirement, plan_.drawn, *spots);
    cells_ += spots->size();
    if (auto problem = count(0, here)) return problem;
    if (program->name == kLoadProbe) {
      if (auto problem = check_load_test(plan_.site, plan_.profile)) return problem;
    }
    add_probe(*program);
    add_probe(*measuring);
    for (const bool on : {true, false}) {
      if (!on && !requirement.contrast) break;
      if (auto problem = join_task(requirement, *program, *spots, on, here)) return problem;
    }
    return std::nullopt;
  }

  /// The growing groups of its probe: with a knee they are drawn, and those that must keep it are among them. All
  /// requirements of one probe have the same, so that they share their steps.
  [[nodiscard]] Growing growing_of(const Requirement& requirement) const {
    Growing growing{.seed = plan_.challenge};
    for (const auto& other : plan_.profile.requirements) {
      if (!other.knee || other.probe != requirement.probe) continue;
      growing.drawn = true;
      if (other.knee->at_least) growing.sizes.push_back(static_cast<std::size_t>(*other.knee->at_least));
    }
    return growing;
  }

  /// Adds `requirement` to the task of `program` with its parameters in `spots`, or to a new one; `on`: with the
  /// feature of a contrast on, and else off.
  std::optional<InputError> join_task(const Requirement& requirement, const Program& program,
                                      const std::vector<Spot>& spots, bool on, const std::string& here) {
    auto parameters = program.description.resolve(asked_of(requirement, program.description, on), options_.quick);
    if (!parameters) {
      InputError error = parameters.error();
      error.where = here + ".parameters." + error.where;
      return error;
    }
    if (auto problem = check_group_sizes(spots, program.description, *parameters, here)) return problem;
    if (!options_.quick && requirement.during.empty()) {
      if (auto problem = check_samples(requirement, *parameters, plan_.profile.confidence, here)) return problem;
    }
    auto task = std::ranges::find_if(tasks_, [&](const Task& one) {
      return one.program == &program && one.parameters == *parameters && one.plane == requirement.plane &&
             one.alone == requirement.alone && one.after == requirement.after &&
             std::ranges::equal(one.spots, spots, [](const Spot& a, const Spot& b) {
               return a.subject == b.subject && a.nodes == b.nodes;
             });
    });
    if (task == tasks_.end()) {
      tasks_.push_back({.program = &program,
                        .parameters = std::move(*parameters),
                        .spots = spots,
                        .plane = requirement.plane,
                        .alone = requirement.alone,
                        .after = requirement.after});
      task = tasks_.end() - 1;
    }
    task->requirements.push_back(&requirement);
    if (!on) task->off.push_back(&requirement);
    return std::nullopt;
  }

  /// Every drawn cell is one that can be measured.
  [[nodiscard]] std::optional<InputError> check_drawn() const {
    if (found_ == plan_.drawn.size()) return std::nullopt;
    return InputError{
        "drawn",
        fmt::format("{} of {} cells are none that the plan measures", plan_.drawn.size() - found_, plan_.drawn.size()),
        "`assay draw plan` writes a plan of drawn cells"};
  }

  /// Refuses `more` cells in addition to those placed when a plan would have too many.
  [[nodiscard]] std::optional<InputError> count(std::size_t more, const std::string& here) const {
    if (cells_ + more <= options_.most_cells) return std::nullopt;
    return InputError{here, fmt::format("makes {} cells of the plan, over {}", cells_ + more, options_.most_cells),
                      "give `rounds`, or take requirements out"};
  }

  /// The parameters as given; where the profile demands more samples than the probe takes at least, that many are asked
  /// for, because a run that stops before would be inconclusive by plan. A rehearsal spends no times but its own.
  [[nodiscard]] Values asked_of(const Requirement& requirement, const Description& probe, bool on) const {
    Values asked = parameters_of(requirement, on);
    for (const auto& parameter : probe.parameters) {
      if (options_.quick && parameter.spent > 0) asked.erase(parameter.name);
    }
    for (const char* name : {"min_samples", "max_samples"}) {
      const auto parameter = std::ranges::find(probe.parameters, name, &Description::OwnParameter::name);
      if (parameter == probe.parameters.end() || asked.contains(name)) continue;
      if (std::stol(parameter->fallback) < requirement.repeat_n) asked[name] = std::int64_t{requirement.repeat_n};
    }
    return asked;
  }

  std::optional<InputError> leave_out(const Requirement& requirement, const std::string& reason) {
    if (!requirement.during.empty()) {
      add_metered_cells(requirement, "", reason, {});
      return std::nullopt;
    }
    for (const auto& spot : spots_without_steps(requirement, plan_.site, reason)) add_cell(requirement, spot, "");
    return std::nullopt;
  }

  void add_cell(const Requirement& requirement, const Spot& spot, const std::string& step) {
    plan_.coverage.push_back(
        {.requirement = requirement.id, .subject = spot.subject, .step = step, .reason = spot.reason});
  }

  /// A cell for every subject that meters of the site have, or that switches have on this rail; one for the site if
  /// there is none.
  void add_metered_cells(const Requirement& requirement, const std::string& step, const std::string& reason,
                         const std::optional<std::string>& rail) {
    auto subjects = metered_subjects(plan_.site, requirement.scope, requirement.plane, rail);
    if (subjects.empty() && !step.empty() && requirement.scope == JudgedScope::switch_port) return;  // of other rails
    if (subjects.empty()) subjects.push_back({.kind = "cluster", .id = plan_.site.name});
    for (auto& subject : subjects)
      plan_.coverage.push_back(
          {.requirement = requirement.id, .subject = std::move(subject), .step = step, .reason = reason});
  }

  /// Faults that a planned step counts must be judged. A part of the profile cannot be accepted anyway.
  [[nodiscard]] std::optional<InputError> check_faults() const {
    if (!plan_.only.empty()) return std::nullopt;
    for (const auto& task : tasks_) {
      if (task.width() == 0) continue;
      if (auto problem = unjudged_fault(task.program->description, task.parameters, task.requirements,
                                        fmt::format("profile {}", plan_.profile.name)))
        return problem;
    }
    return std::nullopt;
  }

  /// As many attempts as the requirement wants. A rehearsal takes one. Requirements after the load are measured after
  /// that of the second stage, too.
  void take_repeat(const Requirement& requirement, Step& step) const {
    if (plan_.quick) return;
    step.attempts = std::max(step.attempts, requirement.attempts);
    if (plan_.agreed_stability && counts_interruptions(requirement))
      step.attempts = std::max(step.attempts, looks_wanted(*plan_.agreed_stability, step));
    step.more_attempts = std::max({step.more_attempts, requirement.more_attempts, step.after ? 1 : 0});
  }

  void write_steps() {
    struct Contrasted {
      std::size_t cell = 0, on = 0, off = 0;  // indices
    };
    std::map<std::pair<std::string_view, std::ptrdiff_t>, Contrasted> contrasts;  // by requirement and spot
    for (const auto& task : tasks_) {
      for (const auto& spot : task.spots) {
        const auto& probe = task.program->description;
        Step step{.id = fmt::format("{:04}-{}-{}", plan_.steps.size() + 1, probe.name, spot.label),
                  .probe = probe.name,
                  .parameters = task.parameters,
                  .nodes = spot.nodes,
                  .companions = probe.companion ? std::vector<std::string>{} : companions_,
                  .deadline_s = probe.deadline_s,
                  .typical_s = typical_of(task),
                  .attempts = 1,
                  .more_attempts = 0,
                  .plane = task.plane,
                  .rail = spot.rail,
                  .alone = task.alone,
                  .after = task.after,
                  .path = spot.path};
        for (const auto* requirement : task.requirements) {
          step.requirements.push_back(requirement->id);
          take_repeat(*requirement, step);
          step.power_w = std::max(step.power_w, static_cast<double>(spot.nodes.size()) *
                                                    requirement->power_w.value_or(plan_.profile.power_w.value_or(0)));
          auto* contrasted = requirement->contrast && !spot.nodes.empty()
                                 ? &contrasts[{requirement->id, &spot - task.spots.data()}]
                                 : nullptr;
          const bool off = std::ranges::find(task.off, requirement) != task.off.end();
          if (contrasted != nullptr) (off ? contrasted->off : contrasted->on) = plan_.steps.size();
          if (off) continue;
          if (contrasted != nullptr) contrasted->cell = plan_.coverage.size();
          // The smallest of growing groups is the reference of the others: compared with itself it would always pass.
          if (spot.smallest && is_of_smallest(requirement->limit.reference)) continue;
          if (requirement->during.empty())
            add_cell(*requirement, spot, spot.nodes.empty() ? "" : step.id);
          else
            add_metered_cells(*requirement, spot.nodes.empty() ? "" : step.id, spot.reason, spot.rail);
        }
        if (spot.nodes.empty()) continue;
        plan_.steps.push_back(std::move(step));
      }
    }
    for (const auto& [place, one] : contrasts) {
      Step &on = plan_.steps[one.on], &off = plan_.steps[one.off];
      plan_.coverage[one.cell].against = off.id;
      on.attempts = off.attempts = std::max(on.attempts, off.attempts);  // pairs of one pass each
      on.more_attempts = off.more_attempts = std::max(on.more_attempts, off.more_attempts);
    }
    order_coverage();
  }

  /// Typical time of the probe, and what its parameters add.
  static double typical_of(const Task& task) {
    const Description& probe = task.program->description;
    return probe.typical_s + probe.spent_s(task.parameters);
  }

  /// The ledger runs in the profile's order of requirements; within one, cells stand in the order of their places.
  void order_coverage() {
    std::map<std::string_view, std::size_t> rank;
    for (const auto& requirement : plan_.profile.requirements) rank.emplace(requirement.id, rank.size());
    std::ranges::stable_sort(plan_.coverage, {}, [&](const Cell& cell) { return rank.at(cell.requirement); });
  }

  const std::vector<Program>& programs_;
  const PlanOptions& options_;
  Plan plan_;
  std::vector<std::string> companions_;
  std::vector<Task> tasks_;
  std::size_t cells_ = 0;  ///< placed so far
  std::size_t found_ = 0;  ///< of the drawn ones
};

}  // namespace

std::expected<Plan, InputError> make_plan(const Profile& profile, const site::Site& site,
                                          const std::vector<Program>& programs, const PlanOptions& options) {
  return Planner(profile, site, programs, options).make();
}

}  // namespace assay::plan
