// switch_list: the switches of a site whose counters are read from the head, and the ports that are read.
#pragma once

#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "probes/core/error.h"
#include "probes/core/meter_list.h"

namespace assay {

/// One switch, read by SNMP as a meter is: the same versions, credentials and time limit.
struct Switch {
  Meter device;                    ///< kind snmp; its name is that of the leaf in the site
  std::vector<std::string> ports;  ///< ports that are read besides those of nodes, such as those to spines
};

/// The largest number of switches of a site.
inline constexpr std::size_t kMostSwitches = 2000;

/// Reads the list `switches` of a site; `here` names it in errors. Refused: unknown fields, two switches of one name or
/// of one address and port, a switch without credentials, a port twice.
std::expected<std::vector<Switch>, InputError> switches_from(const nlohmann::json& list, const std::string& here);

/// The same as a document; switches_from reads it back unchanged.
nlohmann::json to_json(const std::vector<Switch>& switches);

/// The switches of a site file or of a plan (`site.switches`), each with all ports that are read: its own list and
/// those that the site's nodes are cabled to. `path` names it in errors. An error when there are none.
std::expected<std::vector<Switch>, InputError> read_switches_of(std::string_view text, const std::string& path);

/// The subject of a port: "leaf1/swp3".
Subject switch_port_subject(const std::string& name, const std::string& port);

}  // namespace assay
