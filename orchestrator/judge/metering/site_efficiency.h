// site_efficiency: floating-point operations of a load over the energy that meters of its racks counted meanwhile.
#pragma once

#include <expected>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "orchestrator/judge/evidence/evidence.h"
#include "orchestrator/plan/metered.h"

namespace assay::judge {

/// Joined from readings and from the record of the load.
using plan::kEfficiency;

/// Readings of the meters of a rack while a load was held.
struct RackPower {
  std::string rack;
  std::vector<double> power_w;   ///< readings in the time of the load, one each interval
  double interval_s = 0;         ///< between readings
  double held_s = 0;             ///< how long the load was held
  std::set<std::string> meters;  ///< whose readings, or their sum, it is
};

/// The efficiency of one load in one rack, with its subject.
struct Efficiency {
  double flop_per_joule = 0;
  double accuracy = 0;       ///< relative: the worst of the meters', as they or the site state
  std::string boundary;      ///< rack, meters and nodes
  std::string method_level;  ///< the claimed level of EE HPC WG
};

/// The sum of the mean rates of all nodes of the rack, which the record `load` of rank 0 has (rate of each rank, second
/// by second while the load was held), over the mean of `power`: operations over energy of the same interval. Refused
/// with its reason: a record that a simulation made up, or that does not date its load or count its operations; a rack
/// of which a node was not in the load; less than 60 readings or more than a second between two (MLCommons training
/// policies, power_measurement.adoc); a meter in doubt, one that states no accuracy or averaging, and one that averages
/// over more than a tenth of the load. `watches` are the records of the companion that read the meters.
std::expected<Efficiency, std::string> efficiency_of(const plan::Plan& plan, const plan::Step& step, const Record& load,
                                                     const std::map<int, Record>& watches, const RackPower& power);

/// The names of the meters that a measurement comes from: at.meter, or at.meters with commas between.
std::set<std::string> meters_in(const Values& at);

/// The largest number that `watches` state of a meter under `name`, such as accuracy_declared; nothing if none does.
std::optional<double> largest_stated(const std::map<int, Record>& watches, std::string_view name,
                                     const std::string& meter);

/// A sentence that says why readings of a meter make no figure: `watches` know nothing of it, or name a doubt.
std::optional<std::string> doubt_stated(const std::map<int, Record>& watches, const std::string& meter);

/// The relative standard uncertainty of a joined efficiency, of the worst accuracy that `records` state of the
/// subject of `measured`, which has one of each record: a bound a of unknown distribution has a / sqrt(3) (JCGM
/// 100:2008, 4.3.7).
double efficiency_instrument(const std::vector<const Record*>& records,
                             const std::vector<const Measurement*>& measured);

}  // namespace assay::judge
