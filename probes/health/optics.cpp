// optics: offsets of SFF-8636 revision 2.11 and of the Common Management Interface Specification (CMIS) 5.2; compared
// with those that ethtool uses (qsfp.h, cmis.h). Both hold numbers with the most significant byte first.
#include "probes/health/optics.h"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>

#include "probes/core/machine_tree.h"

namespace assay::health {
namespace {

constexpr std::size_t kHalf = 128;
constexpr double kPowerStep_w = 1e-7;            // 0.1 uW
constexpr double kDark_w = 1e-6;                 // -30 dBm
constexpr double kDecibel = 1.2589254117941673;  // 10^(1/10)

/// Offsets of a module form's values for `lanes` lanes, absolute in its half of a page.
struct MemoryMap {
  const char* form;
  int lanes;
  std::size_t vendor, part, serial, technology;  // of the upper half of page 00h
  unsigned copper_from;                          // value of `technology` from which on it is a copper cable
  std::size_t rx_power, tx_bias, tx_power;       // first lane's, 2 bytes each
  std::size_t rx_alarm, bias_alarm, tx_alarm;    // thresholds: high alarm, then low alarm
};

constexpr MemoryMap kSff8636{.form = "SFF-8636",
                             .lanes = 4,
                             .vendor = 148,
                             .part = 168,
                             .serial = 196,
                             .technology = 147,
                             .copper_from = 0xa0,
                             .rx_power = 34,
                             .tx_bias = 42,
                             .tx_power = 50,
                             .rx_alarm = 176,
                             .bias_alarm = 184,
                             .tx_alarm = 192};
constexpr MemoryMap kCmis{.form = "CMIS",
                          .lanes = 8,
                          .vendor = 129,
                          .part = 148,
                          .serial = 166,
                          .technology = 212,
                          .copper_from = 0x0a,
                          .rx_power = 186,
                          .tx_bias = 170,
                          .tx_power = 154,
                          .rx_alarm = 192,
                          .bias_alarm = 184,
                          .tx_alarm = 176};

unsigned octet(const std::string& half, std::size_t offset) { return static_cast<unsigned char>(half[offset % kHalf]); }
unsigned pair_at(const std::string& half, std::size_t offset) {
  return octet(half, offset) << 8U | octet(half, offset + 1);
}
std::string text_at(const std::string& half, std::size_t offset) {
  constexpr std::size_t kLength = 16;
  return told(std::string_view(half).substr(offset % kHalf, kLength)).value_or("");
}

/// The halves that hold a module's monitors and thresholds; empty if it has none.
struct Halves {
  std::string monitors, thresholds;
  bool has_bias = true, has_tx_power = true, has_rx_power = true;
};

bool is_near(double power_w, unsigned high, unsigned low) {
  const bool above = high != 0 && power_w * kDecibel >= high * kPowerStep_w;
  return above || power_w <= low * kPowerStep_w * kDecibel;
}

OpticalLane lane_of(const MemoryMap& map, const Halves& halves, int index) {
  const auto at = static_cast<std::size_t>(index) * 2;
  OpticalLane lane{.number = index + 1};
  const auto power = [&](bool there, std::size_t place, std::size_t alarm) -> std::optional<double> {
    const double watts = pair_at(halves.monitors, place + at) * kPowerStep_w;
    if (!there || watts <= kDark_w) return std::nullopt;
    if (!halves.thresholds.empty())
      lane.near_alarm =
          lane.near_alarm || is_near(watts, pair_at(halves.thresholds, alarm), pair_at(halves.thresholds, alarm + 2));
    return watts;
  };
  lane.rx_power_w = power(halves.has_rx_power, map.rx_power, map.rx_alarm);
  lane.tx_power_w = power(halves.has_tx_power, map.tx_power, map.tx_alarm);
  const unsigned bias = pair_at(halves.monitors, map.tx_bias + at);  // both in the same unit, for any CMIS multiplier
  const unsigned alarm = halves.thresholds.empty() ? 0 : pair_at(halves.thresholds, map.bias_alarm);
  if (halves.has_bias && bias > 0 && alarm > 0) lane.tx_bias_share = static_cast<double>(bias) / alarm;
  return lane;
}

void add_alarm(Optics& optics, const std::string& name) {
  ++optics.alarms;
  optics.alarm_names += (optics.alarm_names.empty() ? "" : ", ") + name;
}

/// SFF-8636, 6.2.4 and 6.2.5: of each nibble of lanes the upper two bits are alarms, high and low.
void add_sff_alarms(const std::string& lower, Optics& optics) {
  static constexpr std::pair<std::size_t, const char*> kModule[] = {{6, "temperature"}, {7, "voltage"}};
  static constexpr std::pair<std::size_t, const char*> kLanes[] = {{9, "rx power"}, {11, "tx bias"}, {13, "tx power"}};
  const auto add = [&](unsigned flags, const std::string& name) {
    if ((flags & 0x8U) != 0) add_alarm(optics, name + " high");
    if ((flags & 0x4U) != 0) add_alarm(optics, name + " low");
  };
  for (const auto& [offset, name] : kModule) add(octet(lower, offset) >> 4U, name);
  for (const auto& [offset, name] : kLanes) {
    for (std::size_t lane = 0; lane < 4; ++lane) {
      const unsigned both = octet(lower, offset + lane / 2);
      add(lane % 2 == 0 ? both >> 4U : both, fmt::format("{} {}", name, lane + 1));
    }
  }
}

/// CMIS, 8.2.3 and table 8-80: a bit for each lane.
void add_cmis_alarms(const std::string& lower, const std::string& monitors, Optics& optics) {
  static constexpr std::pair<unsigned, const char*> kModule[] = {
      {0x01, "temperature high"}, {0x02, "temperature low"}, {0x10, "voltage high"}, {0x20, "voltage low"}};
  static constexpr std::pair<std::size_t, const char*> kLanes[] = {{139, "tx power high"}, {140, "tx power low"},
                                                                   {143, "tx bias high"},  {144, "tx bias low"},
                                                                   {149, "rx power high"}, {150, "rx power low"}};
  constexpr std::size_t kModuleFlags = 9;
  for (const auto& [bit, name] : kModule) {
    if ((octet(lower, kModuleFlags) & bit) != 0) add_alarm(optics, name);
  }
  if (monitors.empty()) return;
  for (const auto& [offset, name] : kLanes) {
    for (unsigned lane = 0; lane < 8; ++lane) {
      if ((octet(monitors, offset) >> lane & 1U) != 0) add_alarm(optics, fmt::format("{} {}", name, lane + 1));
    }
  }
}

void add_lanes(const MemoryMap& map, const Halves& halves, Optics& optics) {
  if (halves.monitors.empty()) return;
  for (int index = 0; index < map.lanes; ++index) {
    const OpticalLane lane = lane_of(map, halves, index);
    if (lane.rx_power_w || lane.tx_power_w) optics.lanes.push_back(lane);
  }
}

/// Temperature in 1/256 degree, signed.
double temperature(const std::string& lower, std::size_t offset) {
  return static_cast<std::int16_t>(static_cast<std::uint16_t>(pair_at(lower, offset))) / 256.0;
}

}  // namespace

Optics read_optics(const ModuleReader& read, const std::string& interface) {
  static constexpr std::array<unsigned, 3> kSffIds = {0x0c, 0x0d, 0x11};  // SFF-8024, table 4-1
  static constexpr std::array<unsigned, 6> kCmisIds = {0x18, 0x19, 0x1b, 0x1e, 0x1f, 0x20};
  Optics optics;
  const auto half = [&](bool upper, std::uint8_t page) {
    ModuleAnswer answer = read(interface, {.upper = upper, .page = page});
    if (answer.bytes.size() != kHalf) answer.bytes.clear();
    return answer;
  };
  const ModuleAnswer lower = half(false, 0);
  const std::string names = lower.bytes.empty() ? "" : half(true, 0).bytes;
  if (names.empty()) {
    optics.absence = lower.absence.empty() ? fmt::format("the module of {} is not reported", interface) : lower.absence;
    return optics;
  }
  const unsigned id = octet(lower.bytes, 0);
  const bool sff = std::ranges::find(kSffIds, id) != kSffIds.end();
  if (!sff && std::ranges::find(kCmisIds, id) == kCmisIds.end()) {
    optics.absence = fmt::format("the module of {} is of kind {:02x}h, neither SFF-8636 nor CMIS", interface, id);
    return optics;
  }
  const MemoryMap& map = sff ? kSff8636 : kCmis;
  optics.form = map.form;
  optics.vendor = text_at(names, map.vendor);
  optics.part = text_at(names, map.part);
  optics.serial = text_at(names, map.serial);
  optics.optical = octet(names, map.technology) < map.copper_from;
  if (!optics.optical) return optics;
  const bool flat = (octet(lower.bytes, 2) & (sff ? 0x04U : 0x80U)) != 0;  // it has only page 00h
  if (sff) {
    optics.temperature_c = temperature(lower.bytes, 22);
    add_sff_alarms(lower.bytes, optics);
    add_lanes(map, {.monitors = lower.bytes, .thresholds = flat ? "" : half(true, 3).bytes}, optics);
    return optics;
  }
  optics.temperature_c = temperature(lower.bytes, 14);
  Halves halves;
  if (const std::string advertised = flat ? "" : half(true, 1).bytes; !advertised.empty()) {
    const unsigned monitors = octet(advertised, 160);
    halves = {.monitors = half(true, 0x11).bytes,
              .thresholds = half(true, 2).bytes,
              .has_bias = (monitors & 1U) != 0,
              .has_tx_power = (monitors & 2U) != 0,
              .has_rx_power = (monitors & 4U) != 0};
  }
  add_cmis_alarms(lower.bytes, halves.monitors, optics);
  add_lanes(map, halves, optics);
  return optics;
}

}  // namespace assay::health
