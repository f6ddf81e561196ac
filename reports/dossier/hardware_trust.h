// hardware_trust: which machines were tested, by the serial numbers that they show of themselves, and whose TPMs and
// GPUs have answered: keys by a list of the receiver's, certificates by their makers.
#pragma once

#include <expected>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "orchestrator/judge/evidence/evidence.h"
#include "orchestrator/judge/evidence/gpu_answer.h"
#include "orchestrator/judge/evidence/tpm_answer.h"
#include "probes/core/error.h"
#include "reports/dossier/moment.h"

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

/// Which TPMs, or GPUs, a receiver expects; without roots and keys: any, or none.
struct HardwareTrust {
  std::string roots;      ///< PEM: issuers of the certificates
  Serials keys;           ///< by node SHA-256 of the public area of its TPM's key; by UUID identity_key of a GPU
  std::string crls = {};  ///< PEM: lists of revoked certificates; none: revocation is not checked
  [[nodiscard]] bool demands() const { return !roots.empty() || !keys.empty(); }
};

/// `answer` of the TPM of `node` as `trust` lets it count: one that answered with another key than the node's in the
/// list is unknown_key; with roots also one that is not bound to an endorsement key, and other_root where the
/// certificate of that key, as one for such keys, has no chain to the roots that holds at `at`, or one of the chain is
/// revoked.
judge::TpmAnswer held_against(const HardwareTrust& trust, const std::string& node, judge::TpmAnswer answer, Moment at);

/// The same of the GPU `uuid` and the certificate of the key that signed.
judge::GpuAnswer held_against(const HardwareTrust& trust, const std::string& uuid, judge::GpuAnswer answer, Moment at);

/// Applies held_against to all `answers`. If `trust` demands anything, a node that did not answer so is an error, and a
/// node of the list that the site does not have.
std::optional<InputError> check_tpms(const HardwareTrust& trust, Moment at,
                                     std::map<std::string, judge::TpmAnswer>& answers);

/// The same of every GPU of every node, and of a GPU of the list that no node has.
std::optional<InputError> check_gpus(const HardwareTrust& trust, Moment at,
                                     std::map<std::string, judge::GpuAnswers>& answers);

}  // namespace assay::dossier
