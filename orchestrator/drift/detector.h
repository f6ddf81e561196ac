// detector: the door of the room: nights in, report out. A pure function of fleet, nights and policy.
#pragma once

#include <expected>
#include <memory>
#include <string>
#include <string_view>

#include "orchestrator/drift/fleet.h"
#include "orchestrator/drift/night.h"
#include "orchestrator/drift/policy.h"
#include "orchestrator/drift/report.h"

namespace assay::drift {

/// Judges night after night. The same bytes come out for any order of units, series and readings, any number of
/// threads, and whether nights were added to a saved state or all anew.
class Detector {
 public:
  /// `fleet` must outlive the detector; it may grow between nights. `threads` only changes how fast it is.
  Detector(const Fleet& fleet, Policy policy, unsigned threads = 1);
  Detector(Detector&&) noexcept;
  Detector& operator=(Detector&&) noexcept;
  ~Detector();

  /// Adds one night. Nights come in ascending order; throws std::invalid_argument for one that does not, and for an
  /// index beyond the fleet.
  void add(const Night& night);
  /// As of the last night that was added.
  [[nodiscard]] DriftReport report() const;
  /// The night that was added last; Date{} when there is none.
  [[nodiscard]] Date last() const;

  /// Its state, as bytes: of this version, policy and fleet only.
  [[nodiscard]] std::string state() const;
  /// Continues from state(). An error when the bytes are of another version or policy, or damaged: judge anew.
  static std::expected<Detector, InputError> resume(const Fleet& fleet, Policy policy, std::string_view state,
                                                    unsigned threads = 1);

 private:
  struct Internal;
  std::unique_ptr<Internal> inside_;
};

}  // namespace assay::drift
