// metered: groups the meters of a site by their subjects.
#include "orchestrator/plan/metered.h"

#include <algorithm>

#include <fmt/format.h>

namespace assay::plan {

std::vector<Subject> metered_subjects(const site::Site& site, JudgedScope scope) {
  std::vector<Subject> all;
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
  const auto found = std::ranges::find_if(profile.companions, is_site_companion);
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

}  // namespace assay::plan
