// switch_counters: the ports of a site's switches, read from the head while something else runs.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "probes/core/probe.h"
#include "probes/meters/switch_history.h"

namespace assay::meters {
namespace {

constexpr double kLongestWatch_s = 7 * 24 * 3600;
constexpr double kShortestInterval_s = 0.5, kLongestInterval_s = 60;
constexpr double kTables_s = 60;      // for the tables of names, neighbours and sensors
constexpr double kReading_s = 30;     // for one reading of counters
constexpr double kSettle_s = 4;       // after the stop: agents show counters some seconds late
constexpr double kLastReading_s = 4;  // for the reading after that; the agent kills ten seconds after a stop
constexpr double kGrace_s = kSettle_s + kLastReading_s + 0.5;
constexpr int kMostDoublings = 6;  // of the wait after a fault

constexpr Parameter kParameters[] = {
    parameter("switches", "", "", "a site file, or a plan, with the list switches; nothing: there are none"),
    parameter("interval", "s", "2s", "time between readings of a switch, 0.5s to 60s"),
    parameter("duration", "s", "0s", "end after this time; 0 means on SIGTERM"),
};

constexpr Metric kMetrics[] = {
    neither("in_bytes", "B", "bytes that the switch received at the port, if counted in 64 bits",
            Recorded::if_reported),
    neither("out_bytes", "B", "bytes that it sent there, likewise", Recorded::if_reported),
    lower("in_errors", "1", "packets received with errors (ifInErrors), where the switch counts them",
          Recorded::if_reported),
    lower("out_errors", "1", "packets not sent because of errors (ifOutErrors), likewise", Recorded::if_reported),
    lower("in_discards", "1", "packets received without error and dropped (ifInDiscards), likewise",
          Recorded::if_reported),
    lower("out_discards", "1", "packets dropped instead of being sent (ifOutDiscards), likewise",
          Recorded::if_reported),
    lower("fcs_errors", "1", "frames received with a wrong check sum, where the switch counts them",
          Recorded::if_reported),
    lower("symbol_errors", "1", "invalid symbols received, likewise", Recorded::if_reported),
    lower("in_pause_frames", "1", "PAUSE frames received (IEEE 802.3x; not those of priorities), likewise",
          Recorded::if_reported),
    lower("out_pause_frames", "1", "PAUSE frames sent, likewise", Recorded::if_reported),
    lower("link_changes", "1", "readings at which the link had gone down or come up since the one before",
          Recorded::if_present),
    higher("link_up", "1", "1 when the port was up at every reading, else 0", Recorded::if_reported),
    higher("link_rate", "B/s", "the lowest rate of the port at any reading (ifHighSpeed over 8)",
           Recorded::if_reported),
    neither("optical_power", "W",
            "light of the module at each reading, by sensor (at.sensor, as the switch calls it), where the switch says "
            "which sensor is of which port",
            Recorded::if_reported),
    neither("module_temperature", "degC", "temperature of sensors of the port, likewise", Recorded::if_reported),
    lower("cabling_wrong", "1",
          "1 where the neighbour that the switch reports at the port is another port of a node of the site than the "
          "site says, 0 where it is that one; the judge joins it from record and site",
          Recorded::if_asked),
};

constexpr ConditionSpec kConditions[] = {
    if_present("interval_s", "time between readings that was asked for, in s, where any switch answers"),
    if_present("neighbours", "read, or \"absent: \" and why the switch's neighbours are not known"),
    if_present("sensors", "read, or \"absent: \" and why the sensors of its ports are not known"),
    if_reported("neighbour", "the system that LLDP reports at the port, if any; several with commas"),
    if_reported("neighbour_port", "its port, if it is named"),
    if_reported("neighbour_port_name", "another name of that port, if there is one"),
    if_occurred(
        "refresh_s",
        "the shortest time between two movements of the port's counters of bytes, in s: how old a count may be"),
    if_occurred("uncounted", "metrics whose rise is not known, with commas"),
    if_occurred("uncounted_why", "why they are not, the last reason"),
    if_occurred("unread", "why this switch or port was not read, if it was not"),
};

constexpr ProbeSpec kSpec{
    .name = "switch_counters",
    .companion = true,
    .measures = "Counters, link, light and neighbour of the switch ports that the site's nodes are cabled to.",
    .method =
        "Reads every switch of the site by a thread of its own over SNMP, read only, with the switch's time limit as "
        "the longest wait for one answer. Ports are those that the site names (switch_port of a node's port whose leaf "
        "is the switch, and the switch's own list), found by ifName, else by ifDescr. Counters are read at the begin, "
        "once an interval, and four seconds after the stop; a figure is the sum of the rises from reading to reading, "
        "with the times of the first and the last in at (from_s, to_s). A 32-bit counter may wrap between two "
        "readings. Where a counter went back otherwise, ifCounterDiscontinuityTime changed, or sysUpTime shows that "
        "the agent started anew or is missing, its rise is not known and the figure is absent (uncounted). A switch "
        "that does not answer the last question has no figures. A table whose rows are out of order, of more than "
        "8,192 rows or longer than a minute is not read; an object of a wrong type is absent. Counters of FEC are "
        "absent: those of IEEE8023-MAU-MIB are of links up to 100 Gb/s without RS-FEC.",
    .source =
        "IF-MIB (RFC 2863), EtherLike-MIB (RFC 3635), ENTITY-MIB (RFC 6933), ENTITY-SENSOR-MIB (RFC 3433), LLDP-MIB "
        "(IEEE 802.1AB-2005), IEEE8023-MAU-MIB (IEEE 802.3.1-2013).",
    .needs = "a site file with the list switches, and Net-SNMP",
    .deadline = {kLongestWatch_s},
    .parameters = kParameters,
    .metrics = kMetrics,
    .conditions = kConditions};

/// Whether the watch is over. The threads that ask may outlive everything else.
std::atomic<bool>& watch_is_over() {
  static std::atomic<bool> over{false};
  return over;
}

/// A switch that a thread of its own reads until the watch is over, and once after that.
class WatchedSwitch {
 public:
  explicit WatchedSwitch(Switch device) : device_(std::move(device)), history_(device_, {}) {}

  void watch(double interval_s) noexcept {
    try {
      watch_until_over(interval_s);
    } catch (const std::exception& error) {  // Skip and MeterFault, or no memory: the switch is not read
      const std::lock_guard guard(mutex_);
      fault_ = error.what();
    }
    const std::lock_guard guard(mutex_);
    ended_ = true;
  }
  [[nodiscard]] bool ended() const {
    const std::lock_guard guard(mutex_);
    return ended_;
  }
  /// Records it; false if it gave nothing, with the reason in `unread`, too.
  bool record(Recorder& record, std::string& unread) const {
    const std::lock_guard guard(mutex_);
    if (complete_) {
      history_.record(record);
      return true;
    }
    const std::string why = fault_.empty() ? fault_text(device_.device, "no answer in time after the stop") : fault_;
    record.condition("unread", why, {.kind = "meter", .id = device_.device.name});
    unread += (unread.empty() ? "" : "; ") + why;
    return false;
  }

 private:
  void watch_until_over(double interval_s) {
    if (device_.ports.empty())
      throw MeterFault(fault_text(device_.device,
                                  "the site names no port of it: give the nodes' ports their leaf and "
                                  "switch_port, or the switch its ports"));
    const SnmpClient client = open_snmp_client(device_.device, login_of(device_.device));
    bool found = false;
    int faults = 0;
    while (!watch_is_over()) {
      try {
        if (!found) {
          SwitchView view = find_ports(client, device_.ports, utc_now_s() + kTables_s);
          take(client, view, kReading_s);
          find_neighbours(client, utc_now_s() + kTables_s, view);
          find_sensors(client, utc_now_s() + kTables_s, view);
          const std::lock_guard guard(mutex_);
          history_.view() = std::move(view);
          found = true;
        } else {
          take(client, history_.view(), kReading_s);
        }
        faults = 0;
      } catch (const MeterFault& fault) {
        faults = std::min(faults + 1, kMostDoublings);
        const std::lock_guard guard(mutex_);
        fault_ = fault.what();
      }
      wait(std::max(interval_s, faults > 1 ? static_cast<double>(1 << faults) : 0),
           [] { return watch_is_over().load(); });
    }
    if (!found) return;
    wait(kSettle_s, [] { return false; });
    take(client, history_.view(), kLastReading_s);
    const std::lock_guard guard(mutex_);
    complete_ = true;
  }
  void take(const SnmpClient& client, const SwitchView& view, double limit_s) {
    const SwitchReading reading = read_switch(client, view, utc_now_s() + limit_s);
    const std::lock_guard guard(mutex_);
    if (history_.view().ports.empty()) history_.view() = view;
    history_.take(reading);
  }
  static void wait(double time_s, bool (*enough)()) {
    const double end_s = utc_now_s() + time_s;
    while (utc_now_s() < end_s && !enough()) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }

  Switch device_;
  mutable std::mutex mutex_;
  SwitchHistory history_;
  std::string fault_;
  bool ended_ = false, complete_ = false;
};

std::vector<Switch> switches_of(const Parameters& given) {
  const std::string& path = given.text("switches");
  if (path.empty()) throw Skip("no switches: the site has no list switches, or the parameter switches names no file");
  const auto text = read_file(path);
  if (!text) throw Skip(text.error().text());
  auto switches = read_switches_of(*text, path);
  if (!switches) throw std::runtime_error(switches.error().text());
  return *switches;
}

void measure(const Parameters& given, Recorder& record) {
  const double interval_s = given.seconds("interval").count, asked_s = given.seconds("duration").count;
  if (interval_s < kShortestInterval_s || interval_s > kLongestInterval_s)
    throw std::runtime_error(fmt::format("interval: {} s is not between {} s and {} s", interval_s, kShortestInterval_s,
                                         kLongestInterval_s));
  std::vector<std::shared_ptr<WatchedSwitch>> watched;
  for (auto& one : switches_of(given)) watched.push_back(std::make_shared<WatchedSwitch>(std::move(one)));
  watch_is_over() = false;
  // Detached: one that waits inside a library must not hold the record back, and main leaves without destructors.
  for (const auto& one : watched) std::thread([one, interval_s] { one->watch(interval_s); }).detach();
  sleep_until_stopped(std::chrono::duration<double>(asked_s > 0 ? asked_s : kLongestWatch_s));
  watch_is_over() = true;
  const double limit_s = utc_now_s() + kGrace_s;
  while (utc_now_s() < limit_s && !std::ranges::all_of(watched, [](const auto& one) { return one->ended(); }))
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  std::string unread;
  bool any = false;
  for (const auto& one : watched) any = one->record(record, unread) || any;
  if (!any) throw Skip(unread.substr(0, kLongestReason));
  record.condition("interval_s", interval_s);
}

}  // namespace
}  // namespace assay::meters

int main(int argc, char** argv) {
  const int code = assay::probe_main(argc, argv, assay::meters::kSpec, assay::meters::measure);
  (void)std::fflush(stdout);  // the record is out, line by line; a failed write ended it before
  std::_Exit(code);           // a thread may still wait inside a library
}
