// expected: options of verify and `sign --add` on a dossier, as values.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iostream>
#include <system_error>
#include <tuple>

#include <fmt/ranges.h>

#include "orchestrator/files/digest.h"
#include "orchestrator/plan/profile.h"
#include "orchestrator/site/sources.h"
#include "probes/core/secret_file.h"
#include "probes/core/text.h"
#include "probes/core/utc_time.h"
#include "reports/cli/commands.h"
#include "reports/dossier/hardware_trust.h"
#include "reports/dossier/sign.h"
#include "reports/evidence/tree.h"

namespace assay::report_cli {
namespace {

/// A file, or a name: a word with a slash or .json at its end is a file.
bool is_file_name(const std::string& name) { return name.ends_with(".json") || name.find('/') != std::string::npos; }

std::expected<std::vector<std::string>, InputError> node_names(const std::string& given) {
  std::error_code unknown;  // anything but a readable file is a list
  std::string list = given;
  if (std::filesystem::is_regular_file(given, unknown)) {
    auto bytes = read_deciding_file(given);
    if (!bytes) return std::unexpected(bytes.error());
    while (bytes->ends_with('\n')) bytes->pop_back();
    list = std::move(*bytes);
    for (char& c : list) c = c == '\n' ? ',' : c;
  }
  auto names = site::expand_host_list(list);
  if (!names)
    return std::unexpected(InputError{"--nodes", names.error(), "n01,n02, n[01-04], or a file with a name a line"});
  return *names;
}

std::expected<dossier::Moment, InputError> moment_of(const std::string& given) {
  const auto moment = given_time(given);
  if (moment) return *moment;
  return std::unexpected(InputError{"--not-before", fmt::format("'{}' is not a time", given), kGivenTimeHint});
}

/// "30d", "12h", or a text for parse_seconds.
std::expected<Seconds, InputError> age_of(const std::string& given) {
  constexpr double kHour_s = 3600;
  constexpr double kDay_s = 24 * kHour_s;
  const double unit_s = given.ends_with('d') ? kDay_s : given.ends_with('h') ? kHour_s : 1;
  const auto seconds = parse_seconds(unit_s > 1 ? given.substr(0, given.size() - 1) + "s" : given);
  if (seconds && seconds->count > 0) return Seconds{seconds->count * unit_s};
  return std::unexpected(InputError{"--max-age", fmt::format("'{}' is not a duration", given), "30d, 12h or 90min"});
}

/// The files of heads: those named, and every *.head of a folder, in the order of their names.
std::expected<std::vector<std::string>, InputError> head_files(const std::vector<std::string>& given) {
  std::vector<std::string> files;
  for (const auto& path : given) {
    if (!is_folder(path)) {
      files.push_back(path);
      continue;
    }
    std::vector<std::string> found;
    std::error_code unknown;  // a folder that cannot be read has no head, which is refused below
    for (const auto& entry : std::filesystem::directory_iterator(path, unknown)) {
      if (entry.path().extension() == ".head") found.push_back(entry.path().string());
    }
    if (found.empty()) return std::unexpected(InputError{path, "has no *.head", "`assay witness --every` writes them"});
    std::ranges::sort(found);
    files.insert(files.end(), found.begin(), found.end());
  }
  return files;
}

/// The certificates in the file at `path`.
std::expected<std::string, InputError> certificates_in(const std::string& path) {
  auto pem = read_deciding_file(path);
  if (pem && pem->find("BEGIN CERTIFICATE") == std::string::npos)
    return std::unexpected(InputError{path, "has no certificate", "PEM, as the authority publishes it"});
  return pem;
}

/// Reads what `given` says of TPMs and GPUs into `expected`.
std::optional<InputError> read_hardware_files(const ExpectationArguments& given, dossier::Expectations& expected) {
  for (auto [path, trust] : {std::pair(&given.tpm_roots, &expected.tpm), std::pair(&given.gpu_roots, &expected.gpu)}) {
    if (path->empty()) continue;
    auto pem = certificates_in(*path);
    if (!pem) return pem.error();
    trust->roots = std::move(*pem);
  }
  if (!given.crls.empty()) {
    const auto pem = read_deciding_file(given.crls);
    if (!pem) return pem.error();
    if (pem->find("BEGIN X509 CRL") == std::string::npos)
      return InputError{given.crls, "has no list of revoked certificates",
                        "PEM; `openssl crl -inform DER -in FILE` writes it from the form that makers publish"};
    if (given.tpm_roots.empty() && given.gpu_roots.empty())
      return InputError{"--crls", "needs --tpm-roots or --gpu-roots", "without a chain no certificate is asked about"};
    expected.tpm.crls = expected.gpu.crls = *pem;
  }
  for (auto [path, what, list] : {std::tuple(&given.serials, "serial number", &expected.serials),
                                  std::tuple(&given.tpm_keys, "SHA-256 of its TPM's key", &expected.tpm.keys),
                                  std::tuple(&given.gpu_keys, "SHA-256 of its identity key", &expected.gpu.keys)}) {
    if (path->empty()) continue;
    const auto bytes = read_deciding_file(*path);
    if (!bytes) return bytes.error();
    auto read = dossier::read_serials(*bytes, *path, what, path == &given.gpu_keys ? "GPU" : "node");
    if (!read) return read.error();
    *list = std::move(*read);
  }
  for (auto [path, of, keys] : {std::tuple(&given.tpm_keys, "node", &expected.tpm.keys),
                                std::tuple(&given.gpu_keys, "GPU", &expected.gpu.keys)}) {
    for (const auto& [name, key] : *keys) {
      if (!files::is_sha256(key))
        return InputError{*path, fmt::format("has '{}' for the {} {}, which is no SHA-256", key, of, name),
                          "64 hexadecimal digits in small letters, as `verify --json` has them of each node"};
    }
  }
  return std::nullopt;
}

/// Reads the files that the options name into `expected`.
std::optional<InputError> read_expected_files(const ExpectationArguments& given, dossier::Expectations& expected) {
  if (files::is_sha256(given.profile)) {
    expected.targets_sha256 = given.profile;
  } else if (!given.profile.empty()) {
    auto profile = plan::profile_named(given.profile);
    if (!profile) return profile.error();
    expected.profile = std::move(*profile);
  }
  if (files::is_sha256(given.site)) {
    expected.site_sha256 = given.site;
  } else if (is_file_name(given.site)) {
    const auto bytes = read_deciding_file(given.site);
    if (!bytes) return bytes.error();
    auto site = site::read_site(*bytes, given.site);
    if (!site) return site.error();
    expected.whole_site = std::move(*site);
  } else {
    expected.site = given.site;
  }
  if (!given.probes.empty()) {
    const auto bytes = read_deciding_file(given.probes);
    if (!bytes) return bytes.error();
    auto sums = dossier::read_sums(*bytes, given.probes);
    if (!sums) return sums.error();
    expected.probes = std::move(*sums);
  }
  if (!given.supersedes.empty()) {
    auto older = dossier::read_older(given.supersedes);
    if (!older) return older.error();
    expected.older = std::move(*older);
  }
  if (!given.authorities.empty()) {
    auto pem = certificates_in(given.authorities);
    if (!pem) return pem.error();
    expected.authorities = std::move(*pem);
  }
  return read_hardware_files(given, expected);
}

/// The roles of --require, which is valid only with a policy.
std::expected<std::vector<std::string>, InputError> roles_of(const ExpectationArguments& given) {
  if (given.policy.empty())
    return std::unexpected(InputError{"--require", "needs --policy",
                                      "a policy says whose key holds a role; a role in a statement is a word"});
  std::vector<std::string> roles;
  for (std::size_t begin = 0; begin <= given.require.size();) {
    const auto end = std::min(given.require.find(',', begin), given.require.size());
    roles.push_back(given.require.substr(begin, end - begin));
    begin = end + 1;
    if (std::ranges::find(dossier::kPartyRoles, roles.back()) == dossier::kPartyRoles.end())
      return std::unexpected(InputError{
          "--require", fmt::format("'{}' is not one of {}", roles.back(), fmt::join(dossier::kPartyRoles, ", ")),
          "several are parted by commas: buyer,vendor"});
  }
  return roles;
}

}  // namespace

std::expected<dossier::Expectations, InputError> expectations_of(const ExpectationArguments& given) {
  dossier::Expectations expected{
      .plan_sha256 = given.plan,
      .now = std::chrono::system_clock::now(),
      .each_difference = [](const std::string& one) { std::cerr << "  " << harmless(one) << '\n'; },
      .no_deviations = given.no_deviations,
      .without_report = given.without_report,
      .unknown_probes = given.unknown_probes};
  if (auto problem = read_expected_files(given, expected)) return std::unexpected(*problem);
  if (!given.challenge.empty() && !files::is_sha256(given.challenge)) {
    return std::unexpected(InputError{"--challenge", fmt::format("'{}' is not 64 hexadecimal digits", given.challenge),
                                      "give the ones that you made, with openssl rand -hex 32 for instance"});
  }
  expected.challenge = given.challenge;
  if (!given.risk.empty()) {
    auto agreed = plan::read_agreed_risk(given.risk, "--risk");
    if (!agreed) return std::unexpected(agreed.error());
    expected.risk = *agreed;
  }
  if (!given.stability.empty()) {
    auto agreed = plan::read_agreed_stability(given.stability, "--stability");
    if (!agreed) return std::unexpected(agreed.error());
    expected.stability = std::move(*agreed);
  }
  expected.run_id = given.run_id;
  if (!given.policy.empty()) {
    auto policy = dossier::load_trust_policy(given.policy);
    if (!policy) return std::unexpected(policy.error());
    expected.trust = std::move(*policy);
  }
  if (!given.require.empty()) {
    auto roles = roles_of(given);
    if (!roles) return std::unexpected(roles.error());
    expected.require = std::move(*roles);
  }
  if (!given.nodes.empty()) {
    auto names = node_names(given.nodes);
    if (!names) return std::unexpected(names.error());
    expected.nodes = std::move(*names);
  }
  if (!given.not_before.empty()) {
    const auto moment = moment_of(given.not_before);
    if (!moment) return std::unexpected(moment.error());
    expected.begun_after = *moment;
  }
  if (!given.max_age.empty()) {
    const auto age = age_of(given.max_age);
    if (!age) return std::unexpected(age.error());
    expected.max_age = *age;
  }
  return expected;
}

std::expected<std::vector<dossier::WitnessedHead>, InputError> read_heads(const VerifyArguments& given,
                                                                          const dossier::Expectations& expected,
                                                                          const dossier::CheckedContents& contents) {
  if (given.heads.empty())
    return std::unexpected(InputError{"--witness-key", "needs --head", "the files that the witness has written"});
  auto keys = public_keys(given.witness_keys);
  if (!keys) return std::unexpected(keys.error());
  const dossier::Witnesses witnesses{.keys = std::move(*keys), .policy = expected.trust ? &*expected.trust : nullptr};
  const std::string name = std::string(dossier::kEvidenceFolder) + "/journal.jsonl";
  const auto journal = evidence::read_plain_file(without_slash(given.directory), name, kLargestDocument);
  if (!journal) return std::unexpected(journal.error());
  if (files::sha256(*journal) != contents.journal_sha256)
    return std::unexpected(InputError{name, "changed while it was read", "no other process may write to a dossier"});
  const auto paths = head_files(given.heads);
  if (!paths) return std::unexpected(paths.error());
  std::vector<dossier::HeadFile> files;
  for (const auto& path : *paths) {
    auto text = read_file(path, dossier::kLargestHead);
    if (!text) return std::unexpected(text.error());
    files.push_back({.where = path, .text = std::move(*text)});
  }
  auto heads = dossier::check_heads(files, witnesses, *journal, contents.challenge, *expected.now);
  if (!heads) return heads;
  for (std::size_t i = 0; i < witnesses.keys.size(); ++i) {
    if (std::ranges::find(*heads, witnesses.keys[i].fingerprint(), &dossier::WitnessedHead::key) != heads->end())
      continue;
    return std::unexpected(InputError{given.witness_keys[i], "is of a witness that has signed none of the heads", ""});
  }
  std::ranges::stable_sort(*heads, {}, [](const dossier::WitnessedHead& one) { return one.head.seen_at; });
  return heads;
}

}  // namespace assay::report_cli
