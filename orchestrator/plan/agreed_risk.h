// agreed_risk: what a vendor and a buyer agree on before anything is measured: a fleet that must not be refused, one
// that must not be accepted, and how often either may happen.
#pragma once

#include <expected>
#include <string>
#include <string_view>

#include "probes/core/error.h"
#include "probes/core/fields.h"

namespace assay::plan {

/// All numbers are shares: of a limit, of the nodes, or probabilities.
struct AgreedRisk {
  double beyond = 0;             ///< the vendor's fleet: every required rate is this far beyond its limit
  double vendor_risk = 0;        ///< it is not accepted with at most this probability
  double short_by = 0;           ///< the buyer's fleet: the same, but its bad nodes miss the limit of one rate by this
  double bad_nodes = 1;          ///< so many nodes of the buyer's fleet are bad, and at least one
  double buyer_risk = 0;         ///< it is accepted with at most this probability
  double between_nodes = 0.005;  ///< assumed standard deviation between nodes of both fleets
  double between_runs = 0.005;   ///< and between attempts on one node
  bool operator==(const AgreedRisk&) const = default;
};

/// The members in JSON.
template <class Io, Of<AgreedRisk> R>
void fields(Io& io, R& risk) {
  io("beyond", risk.beyond), io("vendor_risk", risk.vendor_risk), io("short_by", risk.short_by);
  io("bad_nodes", risk.bad_nodes), io("buyer_risk", risk.buyer_risk), io("between_nodes", risk.between_nodes);
  io("between_runs", risk.between_runs);
}

/// Reads "beyond=4,vendor=5,short=2,buyer=5,bad=10,nodes=0.5,runs=0.5", in per cent; `bad` is 100 and the last two are
/// 0.5 where they are not given. Errors: an unknown or repeated name, one of the first four that is missing, a number
/// that is no share (beyond, short: above 0, at most 50; risks: 0.01 to 50; bad: above 0, at most 100; deviations: 0 to
/// 50).
std::expected<AgreedRisk, InputError> read_agreed_risk(std::string_view text, const std::string& where);

/// Refuses numbers outside of these ranges.
std::expected<void, InputError> check_agreed_risk(const AgreedRisk& risk, const std::string& where);

}  // namespace assay::plan
