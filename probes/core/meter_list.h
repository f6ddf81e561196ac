// meter_list: the meters of a site: instruments of racks, feeds, shelves and cooling units that are read from the head.
#pragma once

#include <expected>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "probes/core/error.h"
#include "probes/core/record.h"
#include "probes/core/words.h"

namespace assay {

/// How a meter is read: IPMI over the network (RMCP+), Redfish (HTTPS), SNMP, Modbus over TCP.
enum class MeterKind { ipmi, redfish, snmp, modbus };

constexpr auto words_of(MeterKind) { return names_as_words<MeterKind>(); }

/// The objects of an SNMP strip, whose scales differ from model to model: taken by identity, never guessed.
enum class MeterModel { apc_rpdu2, raritan_pdu2 };

constexpr auto words_of(MeterModel) {
  using enum MeterModel;
  return std::to_array<Word<MeterModel>>({{apc_rpdu2, "apc-rpdu2"}, {raritan_pdu2, "raritan-pdu2"}});
}

/// Quantity of one reading of a meter, in its base unit.
enum class Quantity {
  power,
  apparent_power,
  energy,
  current,
  current_l2,
  current_l3,
  voltage,
  power_factor,
  frequency,
  flow,
  supply_temperature,
  return_temperature,
  supply_pressure,
  delta_pressure,
  heat,
  leak_detectors,
  leaks,
  outdoor_dry_bulb,
  outdoor_wet_bulb,
  output_power,
  voltage_thd,
};

constexpr auto words_of(Quantity) { return names_as_words<Quantity>(); }

/// Layout of a number in 16-bit registers of a Modbus device.
enum class RegisterType { int16, uint16, int32, uint32, float32, uint64 };

constexpr auto words_of(RegisterType) { return names_as_words<RegisterType>(); }

/// How many 16-bit registers a number of `type` takes.
constexpr int registers_of(RegisterType type) {
  if (type == RegisterType::int16 || type == RegisterType::uint16) return 1;
  return type == RegisterType::uint64 ? 4 : 2;
}

/// One number of a Modbus device: register maps differ from model to model, so the site has them.
struct MeterRegister {
  Quantity quantity = Quantity::power;
  int address = 0;  ///< as it goes over the wire, from 0
  RegisterType type = RegisterType::float32;
  bool input = false;           ///< an input register; otherwise a holding register
  bool low_word_first = false;  ///< otherwise the word with the highest digits is first
  double scale = 1;             ///< factor to the quantity's base unit
};

/// One meter. Facts that its maker or its owner did not state are absent, and checks that need them undecided.
struct Meter {
  std::string name;  ///< unique in the site, of the same letters as a node's
  MeterKind kind = MeterKind::snmp;
  std::string address;
  int port = 0;                          ///< 0: the protocol's own
  std::string subject;                   ///< kind of its subject: node, rack, feed, shelf, cdu, meter
  std::string rack;                      ///< empty: none or unknown
  std::string feed;                      ///< "A"; a rack's power is the sum of all its feeds. Empty: none or unknown
  std::vector<std::string> nodes;        ///< nodes whose whole supply it measures (of a feed: their share of that feed)
  std::map<int, std::string> outlets;    ///< of a strip: outlet number, from 1, to the node that hangs on it
  std::optional<MeterModel> model;       ///< snmp
  std::vector<MeterRegister> registers;  ///< modbus
  std::vector<std::string> resources;    ///< redfish: paths of the resources to read
  int unit = 1;                          ///< modbus: unit identifier
  std::string credentials;               ///< path of a file of mode 0600 on the head; its content goes nowhere else
  std::string public_key;                ///< redfish: "sha256//…", the pin of the certificate's public key
  std::optional<double> averaging_s;     ///< the window that one reading is the mean of
  std::optional<double> accuracy;        ///< relative, of the reading: 0.01
  std::string accuracy_source;           ///< the document that states averaging and accuracy
  std::optional<double> rating_w;        ///< its limit: the breaker's or the shelf's rating
  std::optional<double> nominal_v;       ///< of the supply that it measures, as its voltage is read
  std::optional<double> nominal_hz;      ///< of the supply that it measures
  double timeout_s = 2;                  ///< the longest wait for one answer

  /// Subject of its readings in a record: a node and a rack by their own names, the others by the meter's.
  [[nodiscard]] Subject subject_of() const;
};

/// The largest number of meters of a site.
inline constexpr std::size_t kMostMeters = 2000;

/// Reads the list `meters` of a site. `here` names it in errors ("meters"), `nodes` are the nodes of the site; an empty
/// list of nodes checks no node. Refused: unknown fields, two meters of one name, a field that another kind of meter
/// has, nodes that the site does not have, one device under two names (its power would count twice), an accuracy
/// without its source, a meter without the credentials or the pin that its kind needs.
std::expected<std::vector<Meter>, InputError> meters_from(const nlohmann::json& list, const std::string& here,
                                                          const std::vector<std::string>& nodes);

/// The same as a document; meters_from reads it back unchanged.
nlohmann::json to_json(const std::vector<Meter>& meters);

/// The meters of a site file or of a plan (`site.meters`); `path` names it in errors. An error when there are none.
std::expected<std::vector<Meter>, InputError> read_meters_of(std::string_view text, const std::string& path);

}  // namespace assay
