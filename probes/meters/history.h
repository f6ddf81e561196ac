// history: one meter's series so far, its latest readings, and the check of its scale by its own numbers.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "probes/meters/doubts.h"
#include "probes/meters/slots.h"

namespace assay::meters {

/// The readings of one meter so far.
struct MeterHistory {
  std::map<std::pair<Quantity, int>, SlotSeries> series;  ///< by quantity and outlet
  std::deque<MeterReading> latest;                        ///< of its power, for the doubts
  std::optional<NamedDoubt> scale;                        ///< the last check of V x I x PF, or of heat, that failed
  bool scale_checked = false;
  int answers = 0, faults = 0;
  double longest_answer_s = 0;
  std::string last_fault;  ///< with the meter's name
  std::string not_there;   ///< why it is not read at all: no library, refused credentials
};

/// Takes one answer of `meter` in: its series, its latest readings, and the checks between its numbers.
void take_answer(const Meter& meter, const std::vector<MeterReading>& answer, double interval_s, MeterHistory& history);

}  // namespace assay::meters
