// rehearsal: a night that has got tests is judged anew from the state before it, as `assay drift judge` does.
#include "orchestrator/rehearse/rehearsal.h"

#include <set>
#include <stdexcept>
#include <string>
#include <utility>

namespace assay::rehearse {
namespace {

void append(drift::Night& night, const drift::Night& tests) {
  const auto first = static_cast<std::uint32_t>(night.visits.size());
  night.visits.insert(night.visits.end(), tests.visits.begin(), tests.visits.end());
  for (drift::Reading reading : tests.readings) {
    reading.visit += first;
    night.readings.push_back(reading);
  }
}

}  // namespace

Rehearsal::Rehearsal(Nights& nights, drift::Policy policy, int rounds, unsigned threads)
    : nights_(nights),
      policy_(std::move(policy)),
      rounds_(rounds),
      threads_(threads),
      detector_(nights.fleet(), policy_, threads) {}

std::vector<drift::Night> Rehearsal::next() {
  const std::string before = rounds_ > 0 ? detector_.state() : "";
  drift::Night night = nights_.next();
  std::vector<drift::Night> sweeps = {night};
  detector_.add(night);
  report_ = detector_.report();
  for (int round = 0; round < rounds_; ++round) {
    std::set<std::string> wanted;
    for (const auto& one : report_.retests_wanted) wanted.insert(one.node);
    drift::Night tests = nights_.retests(wanted, round);
    if (tests.visits.empty()) break;
    append(night, tests);
    auto again = drift::Detector::resume(nights_.fleet(), policy_, before, threads_);
    if (!again) throw std::logic_error("a state that was just saved cannot be read: " + again.error().text());
    detector_ = std::move(*again);
    detector_.add(night);
    report_ = detector_.report();
    sweeps.push_back(std::move(tests));
  }
  return sweeps;
}

}  // namespace assay::rehearse
