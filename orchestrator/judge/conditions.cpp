// conditions: comparing recorded conditions with demanded ones.
#include "orchestrator/judge/conditions.h"

#include <algorithm>

#include <fmt/format.h>

#include "probes/core/json_io.h"
#include "probes/core/scale.h"

namespace assay::judge {
namespace {

std::optional<double> number_in(const Value& value) {
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return static_cast<double>(*whole);
  if (const auto* real = std::get_if<double>(&value)) return *real;
  return std::nullopt;
}

bool meets(const plan::RequiredCondition& demand, const Value& seen) {
  const auto number = number_in(seen);
  if (demand.equals) return number ? number == number_in(*demand.equals) : *demand.equals == seen;
  if (!number) return false;
  return (!demand.at_least || *number >= *demand.at_least) && (!demand.at_most || *number <= *demand.at_most);
}

std::string words(const plan::RequiredCondition& demand) {
  if (demand.equals) return "= " + assay::to_json(*demand.equals).dump();
  std::string text;
  if (demand.at_least) text = fmt::format(">= {:g}", *demand.at_least);
  if (demand.at_most) text += fmt::format("{}<= {:g}", text.empty() ? "" : " and ", *demand.at_most);
  return text;
}

/// A value for people: a number with four significant digits, or with all of them where four would show the bound.
std::string seen_text(const Value& seen, const std::string& demanded) {
  const auto* real = std::get_if<double>(&seen);
  const std::string exact = assay::to_json(seen).dump();
  if (real == nullptr) return exact;
  const std::string rounded = for_people(*real, "1");
  return demanded.find(rounded) == std::string::npos ? rounded : exact;
}

/// Looks at the records of one step for one subject.
class Inspection {
 public:
  Inspection(const site::Site& site, const plan::Step& step, const Subject& subject)
      : site_(site), step_(step), subject_(subject) {}

  /// Takes what one record says of `demand` into `seen`; the first value that does not fit stays. Whether it says
  /// anything.
  bool look(const Record& record, const plan::RequiredCondition& demand, ConditionSeen& seen) const {
    bool recorded = false;
    for (const auto& condition : record.conditions) {
      if (condition.name != demand.name || (condition.subject != subject_ && condition.subject.kind != "node"))
        continue;
      recorded = true;
      if (!seen.met) continue;
      seen.seen = condition.value;
      if (demand.site.empty()) {
        seen.met = meets(demand, condition.value);
      } else {
        look_at_site(record, demand, condition.value, seen);
      }
    }
    return recorded;
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

std::vector<ConditionSeen> check_demands(const site::Site& site, const plan::Step& step,
                                         const plan::Requirement& requirement, const Subject& subject,
                                         std::span<const Record* const> records,
                                         std::span<const Record* const> others) {
  const Inspection inspection(site, step, subject);
  std::vector<ConditionSeen> all;
  for (const auto& demand : requirement.conditions) {
    ConditionSeen seen{.name = demand.name,
                       .demanded = demand.site.empty() ? words(demand) : fmt::format("the {} in the site", demand.site),
                       .seen = std::nullopt,
                       .met = true};
    for (const Record* record : records) {
      if (inspection.look(*record, demand, seen)) continue;
      seen.met = false;
      seen.seen = std::nullopt;
    }
    for (const Record* record : others) (void)inspection.look(*record, demand, seen);  // a rank may have nothing to say
    all.push_back(std::move(seen));
  }
  return all;
}

std::string first_unmet(std::span<const ConditionSeen> seen) {
  const auto unmet = std::ranges::find(seen, false, &ConditionSeen::met);
  if (unmet == seen.end()) return "";
  if (!unmet->seen) return fmt::format("Condition {} {} not recorded.", unmet->name, unmet->demanded);
  return fmt::format("Condition {} {} not met: {}.", unmet->name, unmet->demanded,
                     seen_text(*unmet->seen, unmet->demanded));
}

}  // namespace assay::judge
