// facility: what is judged of racks, cooling and steps from readings of meters. Pure functions with named doubts.
#pragma once

#include <expected>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "probes/meters/agreement.h"
#include "probes/meters/doubts.h"

namespace assay::meters {

/// A finding of one rule, and the figures as a sentence.
struct Judged {
  Finding finding = Finding::undecided;  ///< agrees: the rule is met; differs: it is not
  std::string figures;
};

/// Whether a load held steady for the last ten minutes of `power` and of each series in `temperatures`: the slope of
/// power over ten minutes is at most 0.5 % of its mean, and that of each temperature at most 0.1 K a minute. undecided
/// with less than ten minutes. The limits are proposals of this project, not of a document.
Judged steady(std::span<const MeterReading> power,
              const std::map<std::string, std::vector<MeterReading>>& temperatures);

/// Whether any unit was throttled for its temperature after the steady mark: `throttled_s` has the seconds of each.
/// undecided without a unit.
Judged unthrottled(const std::map<std::string, double>& throttled_s);

/// Whether all promised leak detectors are there and enabled. `enabled` has every detector that answered.
Judged leak_detectors(std::size_t promised, const std::map<std::string, bool>& enabled);

/// Whether all feeds carry power: a rack fed by A and B draws from both. undecided with less than two feeds.
Judged feeds_alive(const std::map<std::string, std::vector<MeterReading>>& feeds);

/// Whether the power of `meter` stayed at most `budget_w` in every mean of one second, and came to 0.95 of it at least,
/// without which the load was not full and nothing is shown.
Judged budget(std::span<const MeterReading> meter, double budget_w);

/// (max - mean) / mean of the phase currents against `limit`.
Judged phase_balance(std::span<const double> currents_a, double limit);

/// The rise of a step of load from 10 to 90 %, in s. An error where the meter cannot see it: its averaging window must
/// be stated and at most a fifth of the rise.
std::expected<double, NamedDoubt> rise_time_s(std::span<const MeterReading> readings, double step_at_s);

/// PUE is an energy ratio over twelve months (ISO/IEC 30134-2): a claim from less is refused, whatever its value.
Judged pue_claim(double hours);

}  // namespace assay::meters
