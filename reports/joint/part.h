// part: a dossier as part of a joint one, verified on its own; limits of the fleet, judged over the nodes of all parts.
#pragma once

#include <expected>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "orchestrator/judge/evidence/evidence.h"
#include "orchestrator/judge/verdict.h"
#include "reports/dossier/expectations.h"
#include "reports/dossier/verify.h"

namespace assay::joint {

/// How dossiers are joined: those of several sites side by side, or those of one site that has grown.
enum class Kind { merge, expand };

constexpr auto words_of(Kind) { return names_as_words<Kind>(); }

/// Signers of dossiers, and the expectations of each.
struct Trust {
  /// Of each dossier one at least must have signed, and all that have are checked.
  std::vector<dossier::PublicKey> keys;
  dossier::Expectations expected;
};

/// A verified dossier, and its run as values.
struct Part {
  std::string name;  ///< "01"
  dossier::Verified verified;
  std::string statement_sha256;  ///< of the payload that is signed
  judge::Run run;
  judge::EvidenceReader evidence;
  std::map<std::string, std::set<std::string>> serials;  ///< serial numbers that its nodes show, by node
};

/// Verifies the dossier in `directory` as `verify` does, and reads its run. An error has the name of the part.
std::expected<Part, InputError> open_part(const std::string& directory, const std::string& name, const Trust& trust);

/// What is wrong with these parts together; nothing if there are two at least, each may be a part (may_join), all are
/// of the same targets and of different runs, and no machine, GPU or drive is in two of them, by serial number, UUID,
/// or host name and boot. Nodes of a site that has grown have names of their own.
std::optional<InputError> check_together(const std::vector<Part>& parts, Kind kind);

/// Whether every required cell of `part` that does not pass has a limit of the fleet, for which its own nodes may be
/// too few, and nothing else keeps it from being accepted.
bool waits_for_fleet(const Part& part);

/// The results of every cell whose limit refers to the fleet, judged again from the evidence of all parts as one fleet,
/// by the function that judges a run. Empty if the profile has no such limit. Refused: a probe of other description in
/// one of the parts, because its figures mean something else. The parts have passed check_together(expand).
std::expected<judge::Results, InputError> judge_fleet(const std::vector<Part>& parts);

}  // namespace assay::joint
