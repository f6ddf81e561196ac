// conditions: compares the conditions of records with those that a requirement demands; see conditions.h for the rule.
#include "orchestrator/judge/cells/conditions.h"

#include <algorithm>

#include <fmt/format.h>

#include "orchestrator/judge/cells/condition_words.h"
#include "probes/core/json_io.h"
#include "probes/core/text.h"

namespace assay::judge {
namespace {

/// `value` as a verdict shows it, in every cell that demands it.
Value shortened(Value value) {
  constexpr std::size_t kLongest = 1000;
  if (auto* text = std::get_if<std::string>(&value)) *text = without_controls(*text, kLongest);
  return value;
}

/// Looks at the records of one step for one subject.
class Inspection {
 public:
  Inspection(const site::Site& site, const plan::Step& step, const Subject& subject)
      : site_(site), step_(step), subject_(subject) {}

  /// One record's value of `demand`.
  [[nodiscard]] std::vector<const Condition*> said(const Record& record, const plan::RequiredCondition& demand) const {
    auto all = conditions_of(record, demand.name, subject_);
    std::erase_if(all, [&](const Condition* condition) { return !is_about(*condition, subject_, record); });
    return all;
  }

  /// Takes one value and whether it meets `demand`.
  void take(const Record& record, const plan::RequiredCondition& demand, const Value& value,
            ConditionSeen& seen) const {
    seen.seen = shortened(value);
    if (demand.site.empty()) {
      seen.met = fit_of(demand, value) == plan::Fit::met;
    } else {
      look_at_site(record, demand, value, seen);
    }
  }

  /// Takes the value of `demand` in one record into `seen`; the first value that does not fit stays. Whether it says
  /// anything.
  bool look(const Record& record, const plan::RequiredCondition& demand, ConditionSeen& seen) const {
    const auto all = said(record, demand);
    for (const Condition* condition : all) {
      if (!seen.met) break;
      take(record, demand, condition->value, seen);
    }
    return !all.empty();
  }

  static ConditionSeen unseen(const plan::RequiredCondition& demand) {
    return {.name = demand.name,
            .demanded = demand.site.empty() ? words_of(demand) : fmt::format("the {} in the site", demand.site)};
  }

 private:
  void look_at_site(const Record& record, const plan::RequiredCondition& demand, const Value& value,
                    ConditionSeen& seen) const {
    const site::Node& node = *site_.node(step_.nodes.at(static_cast<std::size_t>(record.start.rank)));
    const site::Port* const port = port_in(node);
    const std::string expected = port == nullptr ? "" : site::port_text(node, *port, demand.site);
    const std::string whose =
        fmt::format("{}{}", node.name, port != nullptr && subject_.kind == "nic" ? " " + subject_.id : "");
    seen.demanded = expected.empty() ? fmt::format("the {} of {}, which is not in the site", demand.site, whose)
                                     : fmt::format("= \"{}\" (the {} of {} in the site)", expected, demand.site, whose);
    seen.met = !expected.empty() && value == Value{expected};
  }

  [[nodiscard]] const site::Port* port_in(const site::Node& node) const {
    if (subject_.kind != "nic") return site::port_of(node, step_.plane, step_.rail);
    const auto ports = node.planes.find(step_.plane);
    if (ports == node.planes.end()) return nullptr;
    const auto port = std::ranges::find_if(ports->second, [&](const site::Port& one) {
      return one.interface == subject_.id || one.device == subject_.id;
    });
    return port == ports->second.end() ? nullptr : &*port;
  }

  const site::Site& site_;
  const plan::Step& step_;
  const Subject& subject_;
};

}  // namespace

bool is_about(const Condition& condition, const Subject& subject, const Record& record) {
  if (condition.subject == subject) return true;
  const auto name = record.start.host.find("name");
  return condition.subject.kind == "node" && name != record.start.host.end() &&
         name->second == Value{condition.subject.id};
}

bool is_idle(const Record& record) {
  return std::ranges::any_of(record.conditions, [](const Condition& condition) {
    return condition.name == "idle" && condition.value == Value{true};
  });
}

namespace {

/// Whether no record says anything of a demanded condition that is of one subject of this kind: then all subjects of
/// the kind see the same.
bool is_same_for_all(const plan::Requirement& requirement, const std::string& kind,
                     std::span<const Record* const> records) {
  if (kind == "nic" || kind == "node") return false;  // these have ports, and a name, of their own
  return std::ranges::none_of(records, [&](const Record* record) {
    return std::ranges::any_of(record->conditions, [&](const Condition& one) {
      return one.subject.kind == kind &&
             std::ranges::find(requirement.conditions, one.name, &plan::RequiredCondition::name) !=
                 requirement.conditions.end();
    });
  });
}

std::vector<ConditionSeen> look_at_all(const Inspection& inspection, const plan::Requirement& requirement,
                                       const Description& probe, std::span<const Record* const> records,
                                       std::span<const Record* const> others) {
  std::vector<ConditionSeen> all;
  for (const auto& demand : requirement.conditions) {
    ConditionSeen seen = Inspection::unseen(demand);
    seen.met = true;
    for (const Record* record : records) {
      if (inspection.look(*record, demand, seen)) continue;
      seen.met = false;
      seen.seen = std::nullopt;
    }
    for (const Record* record : others) {
      if (inspection.look(*record, demand, seen) || is_idle(*record) || !probe.always_records(demand.name)) continue;
      seen.met = false;
      seen.seen = std::nullopt;
    }
    all.push_back(std::move(seen));
  }
  return all;
}

}  // namespace

std::vector<ConditionSeen> Demands::check(const plan::Step& step, const plan::Requirement& requirement,
                                          const Description& probe, const Subject& subject,
                                          std::span<const Record* const> records,
                                          std::span<const Record* const> others) {
  constexpr std::size_t kMostKept = 4;  // a requirement is looked at whole, and for its surroundings in each attempt
  const auto known = std::ranges::find_if(kept_, [&](const Kept& one) {
    return one.step == &step && one.requirement == requirement.id && one.demands == requirement.conditions.size() &&
           one.kind == subject.kind && std::ranges::equal(one.records, records) &&
           std::ranges::equal(one.others, others);
  });
  if (known != kept_.end()) return known->seen;
  auto seen = look_at_all(Inspection(site_, step, subject), requirement, probe, records, others);
  if (is_same_for_all(requirement, subject.kind, records) && is_same_for_all(requirement, subject.kind, others)) {
    if (kept_.size() == kMostKept) kept_.pop_front();
    kept_.push_back({.step = &step,
                     .requirement = requirement.id,
                     .kind = subject.kind,
                     .demands = requirement.conditions.size(),
                     .records = {records.begin(), records.end()},
                     .others = {others.begin(), others.end()},
                     .seen = seen});
  }
  return seen;
}

std::vector<ConditionSeen> Demands::states(const plan::Step& step, const plan::RequiredCondition& demand,
                                           const Description& probe, const Subject& subject,
                                           std::span<const Record* const> records,
                                           std::span<const Record* const> others) const {
  const Inspection inspection(site_, step, subject);
  std::vector<ConditionSeen> all;
  const auto look = [&](const Record& record, bool owes) {
    const auto said = inspection.said(record, demand);
    std::vector<ConditionSeen> found(said.empty() && owes ? 1 : said.size(), Inspection::unseen(demand));
    for (std::size_t i = 0; i < said.size(); ++i) inspection.take(record, demand, said[i]->value, found[i]);
    for (auto& one : found) {
      if (std::ranges::find(all, one) == all.end()) all.push_back(std::move(one));
    }
  };
  for (const Record* record : records) look(*record, true);
  for (const Record* record : others) look(*record, !is_idle(*record) && probe.always_records(demand.name));
  return all;
}

bool all_met(std::span<const ConditionSeen> seen) { return std::ranges::all_of(seen, &ConditionSeen::met); }

std::string first_unmet(const plan::Requirement& requirement, std::span<const ConditionSeen> seen,
                        const Description& probe) {
  const auto unmet = std::ranges::find(seen, false, &ConditionSeen::met);
  if (unmet == seen.end()) return "";
  const auto& demand = requirement.conditions.at(static_cast<std::size_t>(unmet - seen.begin()));
  const auto own = std::ranges::find(probe.conditions, demand.name, &Description::OwnCondition::name);
  return condition_sentence(demand, *unmet, own == probe.conditions.end() ? "" : own->meaning);
}

std::string emulated_drive(const plan::Requirement& requirement, std::span<const Record* const> records) {
  const bool promised = requirement.limit.reference == plan::Reference::none &&
                        (requirement.limit.unit == "B/s" || requirement.limit.unit == "1/s");
  const bool meant = std::ranges::any_of(requirement.conditions, [](const plan::RequiredCondition& demand) {
    return demand.name == "emulated_drive" || demand.name == "device_class";
  });
  if (!promised || meant) return "";
  const bool found = std::ranges::any_of(records, [](const Record* record) {
    return std::ranges::any_of(record->conditions, [](const Condition& one) {
      return one.name == "emulated_drive" && one.value == Value{true};
    });
  });
  if (!found) return "";
  return "A hypervisor makes up the drive, and a cache of its host may serve it: no rate of it is one of a drive. "
         "Measure on the "
         "machine itself, or demand device_class, if the virtual drive is what was promised.";
}

}  // namespace assay::judge
