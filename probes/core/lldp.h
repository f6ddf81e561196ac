// lldp: the systems at the other end of a node's cables, as its LLDP daemon reports it.
#pragma once

#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include "probes/core/error.h"

namespace assay {

/// One neighbour of a port. Fields not announced are empty.
struct Neighbour {
  std::string interface;    ///< of this node
  std::string system;       ///< the name of the neighbour (SysName TLV)
  std::string system_port;  ///< its port: the port id if that is a name, else the port's description. A locally
                            ///< assigned id that is a number (an SNMP index) is no name if there is a description
  std::string other_name;   ///< the other of the two, if it may be a name of the same port
};

/// Reads what `lldpctl -f json` or `lldpctl -f json0` of lldpd prints (1.0.16 was tried), in the order given; a port
/// without neighbours is not in it, one with several is in it several times. The first form is an object where there is
/// one of a thing and an array if there are more. Errors name `where` and the member.
std::expected<std::vector<Neighbour>, InputError> read_lldp(std::string_view text, const std::string& where);

}  // namespace assay
