// expectations: the receiver's prior knowledge of a dossier, with which it is compared.
#pragma once

#include <expected>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "orchestrator/plan/agreed_risk.h"
#include "orchestrator/plan/agreed_stability.h"
#include "orchestrator/plan/profile.h"
#include "orchestrator/site/site.h"
#include "reports/dossier/hardware_trust.h"
#include "reports/dossier/moment.h"
#include "reports/dossier/statement.h"
#include "reports/dossier/trust.h"
#include "reports/evidence/evidence_files.h"

namespace assay::dossier {

/// Expected properties of the dossier, against substitution of another dossier; empty ones match anything.
struct Expectations {
  std::string plan_sha256;
  std::string site;                           ///< only its name
  std::optional<site::Site> whole_site;       ///< every node with its address and ports
  std::vector<std::string> nodes;             ///< names, in any order
  std::optional<plan::Profile> profile;       ///< resolved: every limit, condition, peak and the rule
  std::map<std::string, std::string> probes;  ///< SHA-256 of the program, by name
  std::optional<TrustPolicy> trust;           ///< whose signatures count; needs `now`
  std::vector<std::string> require;           ///< roles, besides those of `trust`
  std::optional<Moment> begun_after;          ///< the run began then or later
  std::optional<Moment> now;                  ///< the verifier's clock; without it no time is too late
  std::optional<Seconds> max_age;             ///< since the run's last line; needs `now`
  std::string targets_sha256;                 ///< of the targets: targets.sha256 of the statement
  std::string site_sha256;                    ///< of the site: digest_of_site
  /// Called with every difference between found and expected targets or sites, one sentence each, before they are
  /// refused; the refusal has the first few.
  std::function<void(const std::string&)> each_difference = [](const std::string&) {};
  std::string challenge;                           ///< of the plan
  std::optional<plan::AgreedRisk> risk;            ///< that the plan keeps
  std::optional<plan::AgreedStability> stability;  ///< likewise
  std::string run_id;                              ///< of the journal
  std::map<std::string, std::string> serials;      ///< serial number of the machine, by node; all nodes and no others
  HardwareTrust tpm, gpu;                          ///< whose TPMs and GPUs must have answered
  std::optional<Older> older;                      ///< the statement that this one supersedes
  std::string authorities;      ///< PEM: every signature that is demanded has a time stamp by one of them
  bool no_deviations = false;   ///< none at all, and no probe that this version does not know
  bool without_report = false;  ///< a report of another renderer is passed over instead of refused
  /// A pinned profile or list of programs takes a probe that this version does not know as the signer describes it.
  bool unknown_probes = false;
};

/// SHA-256 of the canonical JSON of a site without the paths of keys on the machine that ran assay.
std::expected<std::string, InputError> digest_of_site(const site::Site& site);

/// "digest  path" a line, as sha256sum and `assay bundle` write it: the digests by the last part of the path, with the
/// machine and a slash before it in a folder of another machine (machines/aarch64/probes/). Refused:
/// a line of another form, a name with two digests, no line at all.
std::expected<std::map<std::string, std::string>, InputError> read_sums(std::string_view text,
                                                                        const std::string& where);

/// Differences from the expected dossier by the statement: plan, site, nodes, profile's name, probes.
std::optional<InputError> check_statement(const nlohmann::json& predicate, const Expectations& expected);

/// Differences by the evidence: targets limit by limit, the site node by node, when the run was and when it was signed,
/// and deviations. In any case the statement is issued after the run's last line and not after `now`, each within
/// judge::kMostClockDifference_s.
std::optional<InputError> check_evidence(const evidence::Examined& examined, const Claims& claims,
                                         const Expectations& expected);

}  // namespace assay::dossier
