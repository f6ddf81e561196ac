// metered: which subjects the meters of a site have, and on which nodes the load runs under which they are judged.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "orchestrator/plan/plan.h"
#include "orchestrator/plan/profile.h"
#include "orchestrator/site/site.h"

namespace assay::plan {

/// The subjects of kind `scope` that the meters of `site` have, in the order of the list: a rack with any meter of its
/// power, a node with a meter or an outlet of its own, each feed, shelf, cooling unit or other meter by its name, and
/// each port of cabled_ports().
/// Of the latter, where `plane` is given, only those that its ports on `rail` (of any, without one) are cabled to;
/// ports without a node go with the first rail.
std::vector<Subject> metered_subjects(const site::Site& site, JudgedScope scope, const std::string& plane = "",
                                      const std::optional<std::string>& rail = {});

/// Whether `site` has nothing that `requirement` could judge: no such meter or switch, or no path of its class.
bool site_lacks(const site::Site& site, const Requirement& requirement);
/// Why a site that lacks it does.
std::string why_lacking(const Requirement& requirement);

/// Metrics of power_feed that no meter has: the judge joins them.
inline constexpr std::string_view kEfficiency = "energy_efficiency", kRamp = "power_ramp";

/// Whether the uncertainty of the figure is that of the accuracy class of its meters.
bool is_of_meter_class(const Requirement& requirement);

/// The relative standard uncertainty of the instrument behind `requirement`: its metric's, or a / sqrt(3) of the worst
/// accuracy a that `site` states of a meter (JCGM 100:2008, 4.3.7); statements of the meters come with the run.
double instrument_of(const site::Site& site, const Requirement& requirement, const Description& probe);

/// The names of the meters from whose readings a figure of `subject` may come: those of a rack, those of a
/// node and the strips that it hangs on, or the one of its name.
std::vector<std::string> meters_of(const site::Site& site, const Subject& subject);

/// A port of a switch whose counters are read, and the port of a node at the other end of its cable.
struct CabledPort {
  std::string leaf, switch_port;
  std::string node;                 ///< empty: the site says none, as of a port to a spine
  std::string plane;                ///< of that port
  const site::Port* end = nullptr;  ///< the port of that node; it belongs to the site
  [[nodiscard]] Subject subject() const { return switch_port_subject(leaf, switch_port); }
  /// "n01 ens1f0 (rail 0)"; empty without a node.
  [[nodiscard]] std::string end_words() const;
};

/// The ports of the switches of `site` that are read, in the order of the switches and of their ports, nodes' first.
std::vector<CabledPort> cabled_ports(const site::Site& site);

/// The companion of `profile` that reads the meters of the site, or its switches; empty if none does.
std::string site_companion(const Profile& profile);
std::string switch_companion(const Profile& profile);

/// Why `site` does not allow a load of all its nodes together, or could not stop it; nothing if it may be planned. It
/// needs a written consent with a limit, the companion that reads the meters, and a meter of power with a rating.
std::optional<InputError> check_load_test(const site::Site& site, const Profile& profile);

/// `requirement` with the scope under which its load is placed: on all nodes together, or on the only one.
Requirement placed_on_all(Requirement requirement, const site::Site& site);

/// Every single step must fit under the site's cap of power, or it could never run.
std::optional<InputError> check_power_cap(const Plan& plan);

}  // namespace assay::plan
