// metered: groups the meters of a site by their subjects.
#include "orchestrator/plan/metered.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "orchestrator/plan/crossing_spots.h"

namespace assay::plan {

std::string CabledPort::end_words() const {
  if (end == nullptr) return "";
  return fmt::format("{} {}{}", node, end->interface.empty() ? end->device : end->interface,
                     end->rail.empty() ? "" : fmt::format(" (rail {})", end->rail));
}

std::vector<CabledPort> cabled_ports(const site::Site& site) {
  std::vector<CabledPort> all;
  for (const auto& [device, ports] : site.switches) {
    const std::size_t first = all.size();
    const auto add = [&](CabledPort one) {
      const auto same = std::find_if(all.begin() + static_cast<std::ptrdiff_t>(first), all.end(),
                                     [&](const CabledPort& other) { return other.switch_port == one.switch_port; });
      if (same == all.end()) all.push_back(std::move(one));
    };
    for (const auto& node : site.nodes) {
      for (const auto& [plane, ends] : node.planes) {
        for (const auto& end : ends)
          if (!end.switch_port.empty() && site::port_text(node, end, "leaf") == device.name)
            add({.leaf = device.name, .switch_port = end.switch_port, .node = node.name, .plane = plane, .end = &end});
      }
    }
    for (const auto& port : ports) add({.leaf = device.name, .switch_port = port});
  }
  return all;
}

std::vector<Subject> metered_subjects(const site::Site& site, JudgedScope scope, const std::string& plane,
                                      const std::optional<std::string>& rail) {
  std::vector<Subject> all;
  if (scope == JudgedScope::switch_port) {
    const auto rails = site::rails_of(site, plane);
    for (const auto& port : cabled_ports(site)) {
      const bool with = port.end != nullptr ? port.plane == plane && (!rail || port.end->rail == *rail)
                                            : !rail || rails.empty() || rails.front() == *rail;
      if (plane.empty() || with) all.push_back(port.subject());
    }
    return all;
  }
  for (const auto& meter : site.meters) {
    Subject subject = meter.subject_of();
    if (scope == JudgedScope::node) {
      for (const auto& [outlet, node] : meter.outlets) {
        const Subject hangs{.kind = "node", .id = node};
        if (std::ranges::find(all, hangs) == all.end()) all.push_back(hangs);
      }
    }
    if (scope == JudgedScope::rack) {
      const bool of_power = meter.subject == "rack" || meter.subject == "feed" || meter.subject == "shelf";
      if (meter.rack.empty() || !of_power) continue;
      subject = {.kind = "rack", .id = meter.rack};
    } else if (meter.subject != word_of(scope)) {
      continue;
    }
    if (std::ranges::find(all, subject) == all.end()) all.push_back(std::move(subject));
  }
  return all;
}

bool site_lacks(const site::Site& site, const Requirement& requirement) {
  if (requirement.by == Grouping::path) return paths_of(site, requirement).empty();
  return !requirement.during.empty() && metered_subjects(site, requirement.scope, requirement.plane).empty();
}

std::string why_lacking(const Requirement& requirement) {
  if (requirement.by == Grouping::path) return no_path_words(requirement);
  if (requirement.scope != JudgedScope::switch_port)
    return fmt::format("the site has no meter of a {}", requirement.scope);
  return "the site names no switches, or no port of them (switches, leaf, switch_port)";
}

bool is_of_meter_class(const Requirement& requirement) {
  return !requirement.during.empty() && (requirement.metric == kEfficiency || requirement.metric == kRamp);
}

double instrument_of(const site::Site& site, const Requirement& requirement, const Description& probe) {
  if (!is_of_meter_class(requirement)) return probe.metric(requirement.metric)->instrument;
  double worst = 0;
  for (const auto& meter : site.meters) worst = std::max(worst, meter.accuracy.value_or(0));
  return worst / std::sqrt(3.0);
}

std::vector<std::string> meters_of(const site::Site& site, const Subject& subject) {
  std::vector<std::string> names;
  for (const auto& meter : site.meters) {
    const bool of_outlet = subject.kind == "node" && std::ranges::any_of(meter.outlets, [&](const auto& outlet) {
                             return outlet.second == subject.id;
                           });
    if (meter.subject_of() == subject || of_outlet || (subject.kind == "rack" && meter.rack == subject.id))
      names.push_back(meter.name);
  }
  return names;
}

std::string site_companion(const Profile& profile) {
  const auto found = std::ranges::find_if(
      profile.companions, [](const std::string& name) { return is_site_companion(name) && name != kSwitchCompanion; });
  return found == profile.companions.end() ? "" : *found;
}

std::string switch_companion(const Profile& profile) {
  const auto found = std::ranges::find(profile.companions, kSwitchCompanion);
  return found == profile.companions.end() ? "" : *found;
}

std::optional<InputError> check_load_test(const site::Site& site, const Profile& profile) {
  if (!site.load_test)
    return InputError{fmt::format("site {}: load_test", site.name),
                      fmt::format("is missing, and profile {} loads all nodes together", profile.name),
                      "needs the consent of those responsible for power and cooling: \"load_test\": "
                      "{\"consent\": \"NAME, DATE, RACKS\", \"limit_w\": 120000}"};
  if (site_companion(profile).empty())
    return InputError{
        fmt::format("profile {}: companions", profile.name),
        fmt::format("{} is missing, and {} must stop when a meter is over its limit", kSiteCompanion, kLoadProbe),
        fmt::format("add \"companions\": [\"{}\"]", kSiteCompanion)};
  const bool guarded = std::ranges::any_of(site.meters, [](const Meter& one) { return one.rating_w.has_value(); });
  if (!guarded)
    return InputError{fmt::format("site {}: meters", site.name),
                      "none has a rating_w, so nothing could stop the load of all nodes",
                      "give the feeds or racks their meters, with rating_w"};
  return std::nullopt;
}

Requirement placed_on_all(Requirement requirement, const site::Site& site) {
  requirement.scope = site.nodes.size() > 1 ? JudgedScope::cluster : JudgedScope::node;
  return requirement;
}

std::optional<InputError> check_power_cap(const Plan& plan) {
  if (!plan.site.power_cap_w) return std::nullopt;
  const double cap = *plan.site.power_cap_w;
  for (const auto& step : plan.steps) {
    if (step.power_w == 0) {
      return InputError{fmt::format("profile {}: power_w", plan.profile.name),
                        fmt::format("is missing, and the site {} has a power cap of {} W", plan.site.name, cap),
                        "give the power of one node of this design under load, or take power_cap_w out of the site"};
    }
    if (step.power_w > cap) {
      return InputError{fmt::format("site {}: power_cap_w", plan.site.name),
                        fmt::format("{} W, but step {} draws {} W on {} nodes by design", cap, step.id, step.power_w,
                                    step.nodes.size()),
                        "raise the cap, or leave its requirement out with --only"};
    }
  }
  return std::nullopt;
}

}  // namespace assay::plan
