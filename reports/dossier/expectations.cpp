// expectations: another plan, site, profile, program or time than the receiver expects is refused.
#include "reports/dossier/expectations.h"

#include <algorithm>
#include <set>

#include <fmt/ranges.h>

#include "orchestrator/files/difference.h"
#include "orchestrator/files/digest.h"
#include "orchestrator/plan/catalogue.h"
#include "probes/core/utc_time.h"
#include "reports/dossier/canonical_json.h"
#include "reports/dossier/sign.h"
#include "reports/dossier/target_differences.h"

namespace assay::dossier {
namespace {

using nlohmann::json;

constexpr std::size_t kMostShown = 10;       // differences in one refusal
constexpr std::size_t kMostListed = 10'000;  // in the separate list
constexpr const char* kAnother = "this is a dossier of another run";

InputError wrong(const char* what, const std::string& is, const std::string& should) {
  return InputError{kStatementFile, fmt::format("has the {} '{}', expected '{}'", what, is, should), kAnother};
}

/// The first few of `names`.
std::string some(const std::set<std::string>& names) {
  std::vector<std::string> shown;
  for (const auto& name : names) {
    if (shown.size() < kMostShown) shown.push_back(name);
  }
  return fmt::format("{}{}", fmt::join(shown, ", "),
                     names.size() > kMostShown ? fmt::format(" and {} more", names.size() - kMostShown) : "");
}

std::optional<InputError> check_nodes(const json& site, const std::vector<std::string>& expected) {
  if (expected.empty()) return std::nullopt;
  const std::vector<std::string> list = site.at("nodes");
  const std::set<std::string> found(list.begin(), list.end());
  const std::set<std::string> wanted(expected.begin(), expected.end());
  std::set<std::string> missing;
  std::set<std::string> other;
  std::ranges::set_difference(wanted, found, std::inserter(missing, missing.end()));
  std::ranges::set_difference(found, wanted, std::inserter(other, other.end()));
  if (missing.empty() && other.empty()) return std::nullopt;
  std::string what = fmt::format("has {} nodes, expected {}", found.size(), wanted.size());
  if (!missing.empty()) what += "; not tested: " + some(missing);
  if (!other.empty()) what += "; not expected: " + some(other);
  return InputError{kStatementFile, what, kAnother};
}

/// `name` is the probe's, with the machine and a slash before it if it is another build than the head's.
std::optional<InputError> check_program(const std::string& name, const std::string& digest,
                                        const std::map<std::string, std::string>& expected) {
  const auto known = expected.find(name);
  if (known == expected.end())
    return InputError{kStatementFile, fmt::format("used the probe {}, which the list of programs does not have", name),
                      "a probe that is in no list of known builds may print any number"};
  if (known->second == digest) return std::nullopt;
  return InputError{kStatementFile,
                    fmt::format("used the probe {} with the SHA-256 {}, expected {}", name, digest, known->second),
                    "another program of that name measured"};
}

std::optional<InputError> check_programs(const json& instruments, const std::map<std::string, std::string>& expected) {
  if (expected.empty()) return std::nullopt;
  for (const auto& instrument : instruments) {
    std::map<std::string, std::string> used = {{instrument.at("probe"), instrument.at("sha256")}};
    for (const auto& [machine, sha256] : instrument.value("builds", json::object()).items()) {
      if (sha256 != instrument.at("sha256"))
        used[fmt::format("{}/{}", machine, instrument.at("probe").get<std::string>())] = sha256;
    }
    for (const auto& [name, digest] : used) {
      if (auto problem = check_program(name, digest, expected)) return problem;
    }
  }
  return std::nullopt;
}

std::optional<InputError> check_targets(const plan::Profile& found, const plan::Profile& expected,
                                        const std::function<void(const std::string&)>& each) {
  const auto different = files::differences(by_requirement(found), by_requirement(expected), kMostShown);
  if (different.empty()) return std::nullopt;
  for (const auto& one : target_differences(found, expected)) each(one);
  return InputError{
      fmt::format("{}/plan.json: profile", kEvidenceFolder),
      fmt::format("has other targets than the expected profile {}: {}", expected.name, fmt::join(different, "; ")),
      "the vendor judged by other figures, whatever the profile is called"};
}

/// A site without the paths of keys on the machine that ran assay.
json without_key_files(const site::Site& site) {
  json document = to_json(site);
  document.erase("known_hosts");
  for (auto& node : document.at("nodes")) {
    node.erase("identity_file");
    if (node.contains("jump")) node.at("jump").erase("identity_file");
  }
  return document;
}

/// The same, without the directories that the expected site leaves to that machine.
json comparable(const site::Site& site, const site::Site& expected) {
  json document = without_key_files(site);
  for (auto& node : document.at("nodes")) {
    const site::Node* const wanted = expected.node(node.at("name").get<std::string>());
    if (wanted != nullptr && wanted->directory == site::kDefaultDirectory) node.erase("directory");
  }
  json nodes = json::object();  // by name, so that one that was left out is a difference of its own
  for (auto& node : document.at("nodes")) {
    const std::string name = node.at("name");
    nodes[name] = std::move(node);
  }
  document["nodes"] = std::move(nodes);
  return document;
}

std::optional<InputError> check_site(const site::Site& found, const site::Site& expected,
                                     const std::function<void(const std::string&)>& each) {
  const json is = comparable(found, expected);
  const json should = comparable(expected, expected);
  const auto different = files::differences(is, should, kMostShown);
  if (different.empty()) return std::nullopt;
  for (const auto& one : files::differences(is, should, kMostListed)) each(one);
  return InputError{fmt::format("{}/plan.json: site", kEvidenceFolder),
                    fmt::format("is not the expected site {}: {}", expected.name, fmt::join(different, "; ")),
                    kAnother};
}

/// When the run was, and when it was signed.
std::optional<InputError> check_times(const judge::Journal& journal, const Claims& claims,
                                      const Expectations& expected) {
  const std::chrono::duration<double> skew(judge::kMostClockDifference_s);
  const Moment begin = *utc_time(journal.begin);  // the journal's reader refuses other texts
  const Moment last = *utc_time(journal.last);
  const auto issued = utc_time(claims.issued_at);
  if (!issued) return InputError{kStatementFile, fmt::format("issuedAt: '{}' is not a time", claims.issued_at), ""};
  if (last - *issued > skew) {
    return InputError{kStatementFile,
                      fmt::format("was issued {}, before the run's last line of {}", claims.issued_at, journal.last),
                      "a statement is made after the run; clocks may differ by five minutes"};
  }
  const auto older = claims.supersedes ? utc_time(claims.supersedes->issued_at) : std::nullopt;
  if (older && *older - *issued > skew) {
    return InputError{kStatementFile,
                      fmt::format("was issued {}, before the statement that it supersedes ({})", claims.issued_at,
                                  claims.supersedes->issued_at),
                      "the older statement is issued first; clocks may differ by five minutes"};
  }
  if (expected.begun_after && begin < *expected.begun_after) {
    return InputError{
        kStatementFile,
        fmt::format("is of a run that began {}, before {}", journal.begin, utc_text(*expected.begun_after)), kAnother};
  }
  if (!expected.now) {
    if (expected.max_age) return InputError{"--max-age", "needs a clock", ""};
    return std::nullopt;
  }
  if (*issued - *expected.now > skew) {
    return InputError{kStatementFile,
                      fmt::format("was issued {}, and it is {} here", claims.issued_at, utc_text(*expected.now)),
                      "a statement of the future; compare the clocks, which may differ by five minutes"};
  }
  if (expected.max_age && *expected.now - last > std::chrono::duration<double>(expected.max_age->count)) {
    return InputError{kStatementFile,
                      fmt::format("is of a run that ended {}, and it is {} here: older than {:.0f} s", journal.last,
                                  utc_text(*expected.now), expected.max_age->count),
                      "ask for a test of today"};
  }
  return std::nullopt;
}

/// A pinned profile or list of programs pins the rule: the direction of a metric and the uncertainty of its instrument
/// come with the description of the probe, which for an unknown revision is the signer's own.
std::optional<InputError> check_descriptions(const plan::Plan& plan) {
  const auto unknown = plan::unknown_probes(plan);
  if (unknown.empty()) return std::nullopt;
  return InputError{
      fmt::format("{}/plan.json", kEvidenceFolder),
      fmt::format("describes probes that this version does not know: {}", fmt::join(unknown, ", ")),
      "how their figures are judged is the signer's word: verify with the version of assay that has them, or take "
      "it with --unknown-probes"};
}

std::optional<InputError> check_deviations(const evidence::Examined& examined) {
  if (const auto& all = examined.verdict.deviations; !all.empty()) {
    return InputError{fmt::format("{}/verdict.json", kEvidenceFolder),
                      fmt::format("has {} deviations, first: {}", all.size(), all.front().what),
                      "without --no-deviations it is verified and they are listed"};
  }
  return check_descriptions(examined.run.plan);
}

/// The agreement of the plan on `what` is the expected one: a profile does not have it.
template <class Agreed>
std::optional<InputError> check_agreed(const char* what, const std::optional<Agreed>& kept,
                                       const std::optional<Agreed>& expected) {
  if (!expected || kept == expected) return std::nullopt;
  return InputError{fmt::format("{}/plan.json", kEvidenceFolder),
                    fmt::format("keeps {} agreement on {}", kept ? "another" : "no", what),
                    "the run was planned without the one that is expected"};
}

}  // namespace

std::expected<std::string, InputError> digest_of_site(const site::Site& site) {
  const auto text = canonical_json(without_key_files(site));
  if (!text) return std::unexpected(text.error());
  return files::sha256(*text);
}

std::expected<std::map<std::string, std::string>, InputError> read_sums(std::string_view text,
                                                                        const std::string& where) {
  constexpr std::size_t kDigestLength = 64;
  std::map<std::string, std::string> sums;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const auto refused = [&](const std::string& what) {
      return std::unexpected(InputError{fmt::format("{}: line {}", where, number), what,
                                        "`sha256sum libexec/assay/probes/*` and `assay bundle` write such a list"});
    };
    const auto line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const std::string digest(line.substr(0, kDigestLength));
    if (line.size() < kDigestLength + 3 || !files::is_sha256(digest) || line[kDigestLength] != ' ' ||
        (line[kDigestLength + 1] != ' ' && line[kDigestLength + 1] != '*'))
      return refused("is not '<SHA-256>  <path>'");
    if (digest == std::string(kDigestLength, '0')) return refused("has a digest of zeros");
    const auto path = line.substr(kDigestLength + 2);
    std::string name(path.substr(path.rfind('/') + 1));
    // …/machines/aarch64/probes/host_gemm is the build for another machine.
    constexpr std::string_view kMachines = "machines/", kProbes = "/probes/";
    const auto machine = path.rfind(kMachines);
    const auto probes = path.rfind(kProbes);
    if (machine != std::string_view::npos && probes != std::string_view::npos && probes > machine + kMachines.size())
      name = fmt::format("{}/{}", path.substr(machine + kMachines.size(), probes - machine - kMachines.size()), name);
    if (const auto [known, fresh] = sums.emplace(name, digest); !fresh && known->second != digest)
      return refused(fmt::format("gives {} a second digest", name));
  }
  if (sums.empty()) return std::unexpected(InputError{where, "lists nothing", ""});
  return sums;
}

std::optional<InputError> check_statement(const json& predicate, const Expectations& expected) {
  const std::string plan = predicate.at("plan").at("sha256");
  if (!expected.plan_sha256.empty() && plan != expected.plan_sha256) return wrong("plan", plan, expected.plan_sha256);
  const std::string site = predicate.at("site").at("name");
  if (!expected.site.empty() && site != expected.site) return wrong("site", site, expected.site);
  if (expected.whole_site && site != expected.whole_site->name) return wrong("site", site, expected.whole_site->name);
  const std::string run = predicate.at("run").at("id");
  if (!expected.run_id.empty() && run != expected.run_id) return wrong("run", run, expected.run_id);
  const std::string targets = predicate.at("targets").at("sha256");
  if (!expected.targets_sha256.empty() && targets != expected.targets_sha256)
    return wrong("targets with the digest", targets, expected.targets_sha256);
  const std::string profile = predicate.at("targets").at("profile");
  if (expected.profile && profile != expected.profile->name) return wrong("profile", profile, expected.profile->name);
  if (auto problem = check_nodes(predicate.at("site"), expected.nodes)) return problem;
  return check_programs(predicate.at("instruments"), expected.probes);
}

std::optional<InputError> check_evidence(const evidence::Examined& examined, const Claims& claims,
                                         const Expectations& expected) {
  const plan::Plan& plan = examined.run.plan;
  if (expected.profile) {
    if (auto problem = check_targets(plan.profile, *expected.profile, expected.each_difference)) return problem;
  }
  const bool rules = expected.profile || !expected.targets_sha256.empty() || !expected.probes.empty();
  if (rules && !expected.unknown_probes) {
    if (auto problem = check_descriptions(plan)) return problem;
  }
  if (expected.whole_site) {
    if (auto problem = check_site(plan.site, *expected.whole_site, expected.each_difference)) return problem;
  }
  if (!expected.site_sha256.empty()) {
    const auto digest = digest_of_site(plan.site);
    if (!digest) return digest.error();
    if (*digest != expected.site_sha256) return wrong("site with the digest", *digest, expected.site_sha256);
  }
  if (!expected.challenge.empty() && plan.challenge != expected.challenge) {
    return InputError{fmt::format("{}/plan.json", kEvidenceFolder),
                      plan.challenge.empty() ? fmt::format("answers no challenge, expected '{}'", expected.challenge)
                                             : fmt::format("answers the challenge '{}', expected '{}'", plan.challenge,
                                                           expected.challenge),
                      "the plan was made without it, before it or for another receiver"};
  }
  if (auto problem = check_agreed("risks", plan.agreed_risk, expected.risk)) return problem;
  if (auto problem = check_agreed("stability", plan.agreed_stability, expected.stability)) return problem;
  if (auto problem = check_times(examined.run.journal, claims, expected)) return problem;
  return expected.no_deviations ? check_deviations(examined) : std::nullopt;
}

}  // namespace assay::dossier
