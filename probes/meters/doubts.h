// doubts: faults in the readings of one instrument. Arithmetic only: readings in, named doubts out.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "probes/meters/reading.h"

namespace assay::meters {

/// Why a series of readings decides nothing.
enum class Doubt {
  absent,       ///< no reading, or only such as an instrument gives that has none
  stuck,        ///< the number did not change while the load did
  stale,        ///< the instrument's own time does not change or is old
  mis_scaled,   ///< power is not voltage x current x power factor of the same strip
  wrapped,      ///< the number is at, or fell from, the end of 16 bits
  coarse,       ///< its least step is too large a share of it
  synthesised,  ///< computed by the instrument and not measured
  slow,         ///< it averages over longer than the window that it should resolve
  gaps,         ///< too few of the readings that were due
};

constexpr auto words_of(Doubt) { return names_as_words<Doubt>(); }

/// A doubt with the figures that it comes from, as a sentence's end: "stuck: 813 W in 120 readings".
struct NamedDoubt {
  Doubt doubt = Doubt::absent;
  std::string figures;
};

/// References for the readings of one quantity of one instrument.
struct Expected {
  double interval_s = 1;             ///< how far apart readings were due
  double window_s = 60;              ///< the shortest span that a mean is taken over
  bool load_changed = false;         ///< something in its supply is known to have changed by more than its quantum
  bool integers_are_16_bit = false;  ///< DCMI: 65,535 W is the end
};

/// Everything that is doubtful about `readings`, which are of one quantity and in the order taken; each doubt once, in
/// the order of the vocabulary. Empty: nothing was found.
std::vector<NamedDoubt> doubts_of(std::span<const MeterReading> readings, const Expected& expected);

/// V x I x PF of one strip or phase against its own active power, in W: a doubt when they differ by more than 3 %
/// (AC strips of the makers read by assay state 1 % for each).
std::optional<NamedDoubt> scale_doubt(double power_w, double voltage_v, double current_a, double power_factor);

/// A heat flow that an instrument states, against rho x c x flow x rise of the water: a doubt when they differ by more
/// than 10 %, which covers a glycol mixture (6 % less) and a rise known to 4 %, or the coolant comes back colder.
std::optional<NamedDoubt> heat_doubt(double stated_w, double flow_m3_s, double rise_k);

/// The heat that `flow_m3_s` of water carries away when it warms by `rise_k`, in W.
constexpr double heat_of_water_w(double flow_m3_s, double rise_k) {
  constexpr double kDensity = 997;    // kg/m3 at 25 degC
  constexpr double kCapacity = 4180;  // J/(kg K)
  return kDensity * kCapacity * flow_m3_s * rise_k;
}

/// All doubts in one line: "stuck: …; stale: …". Empty if there are none.
std::string text_of(std::span<const NamedDoubt> doubts);

}  // namespace assay::meters
