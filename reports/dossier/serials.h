// serials: which machines were tested, by the serial numbers that they show of themselves.
#pragma once

#include <expected>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "orchestrator/judge/evidence/evidence.h"
#include "probes/core/error.h"

namespace assay::dossier {

/// The condition with the serial number of a machine, as health_inventory records it of a node.
inline constexpr const char* kSerialCondition = "product_serial";

/// Serial numbers by node.
using Serials = std::map<std::string, std::string>;

/// "node serial-number" a line, or another identity than a `what`, of another thing than a node (`of`). Refused: a line
/// of another form, a node or an identity that is there twice, no line.
std::expected<Serials, InputError> read_serials(std::string_view text, const std::string& where,
                                                const std::string& what = "serial number",
                                                const std::string& of = "node");

/// Every serial number that a record of `run` gives its node, by node.
std::map<std::string, std::set<std::string>> recorded_serials(const judge::Run& run,
                                                              const judge::EvidenceReader& evidence);

/// Differences of the machines of `run` from `expected`; nothing if the site has these nodes and no others, and every
/// attempt that recorded a serial number of a node, at least one of each, recorded the expected one.
std::optional<InputError> check_serials(const judge::Run& run, const judge::EvidenceReader& evidence,
                                        const Serials& expected);

}  // namespace assay::dossier
