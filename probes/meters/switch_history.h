// switch_history: how the counters of a switch rose while it was watched, and the record of it.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "probes/core/recorder.h"
#include "probes/meters/switch_tables.h"

namespace assay::meters {

/// By how much a counter rose from one reading to the next. A 32-bit counter may wrap: it was in its upper half and is
/// in its lower one. Nothing if it went back otherwise, or another counter answers: it was reset.
std::optional<double> rise_of(const Count& before, const Count& now);

/// Whether the agent started anew between two readings: sysUpTime went back, other than at the end of its 32 bits (497
/// days), or advanced by less than the time between them, less a tenth and ten seconds. Nothing without sysUpTime.
std::optional<bool> restarted(const SwitchReading& before, const SwitchReading& now);

/// One port while it was watched.
struct PortHistory {
  std::array<double, kPortCounters.size()> rises = {};
  std::array<std::string, kPortCounters.size()> uncounted;  ///< why a rise is not known; empty: it is
  std::array<bool, kPortCounters.size()> reported = {};     ///< whether any reading had it
  int link_changes = 0;
  bool was_down = false;
  std::optional<bool> up;                ///< at last
  std::optional<double> rate, rate_min;  ///< B/s
  std::optional<double> refresh_s;       ///< the shortest time in which its counters of bytes moved twice
  std::optional<double> moved_s;         ///< when they last moved
  std::string gone;                      ///< why it is no longer read; empty: it is
};

/// A switch while it was watched.
class SwitchHistory {
 public:
  SwitchHistory(const Switch& device, SwitchView view) : name_(device.device.name), view_(std::move(view)) {}

  void take(const SwitchReading& reading);
  [[nodiscard]] const SwitchView& view() const { return view_; }
  SwitchView& view() { return view_; }

  /// Records every port from the first reading to the last, and of those that were not read why (unread).
  void record(Recorder& record) const;

 private:
  void take_port(PortHistory& port, const PortReading& before, const PortReading& now, bool reset, double now_s);

  std::string name_;
  SwitchView view_;
  std::optional<SwitchReading> first_, last_;
  std::map<std::uint32_t, PortHistory> ports_;
  std::map<std::uint32_t, std::vector<double>> sensors_;
};

}  // namespace assay::meters
