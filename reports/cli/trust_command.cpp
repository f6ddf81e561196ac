// trust_command: `assay trust init`: a trust policy from keys and roles, to be read and signed off by its owner.

#include <algorithm>
#include <chrono>
#include <expected>
#include <filesystem>
#include <iostream>
#include <string>

#include <fmt/format.h>

#include "orchestrator/files/atomic_file.h"
#include "probes/core/command.h"
#include "probes/core/json_io.h"
#include "probes/core/text.h"
#include "probes/core/utc_time.h"
#include "reports/cli/commands.h"
#include "reports/dossier/public_key.h"
#include "reports/dossier/trust.h"

namespace assay::report_cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

/// The day `days` from today, UTC: "2026-01-05".
std::string day_from_today(int days) {
  constexpr std::size_t kDay = 10;  // of "2026-01-05T06:37:41.211Z"
  return utc_text(std::chrono::system_clock::now() + std::chrono::days(days)).substr(0, kDay);
}

/// "ada" of "keys/ada.key.pub".
std::string signer_of(const fs::path& file) {
  const std::string name = file.filename();
  return name.substr(0, name.find('.', 1));
}

/// The party of `role`, made when the first of its keys comes.
ordered_json& party_of(ordered_json& parties, const std::string& role) {
  for (auto& party : parties) {
    if (party.at("role") == role) return party;
  }
  parties.push_back({{"name", role}, {"role", role}, {"threshold", 1}, {"signers", ordered_json::array()}});
  return parties.back();
}

/// The policy of the keys "ROLE=FILE" in `given`; the files are named relative to the policy.
std::expected<ordered_json, InputError> draft(const TrustArguments& given) {
  const std::string from = given.from.empty() ? day_from_today(-365) : given.from;
  const std::string until = given.until.empty() ? day_from_today(365) : given.until;
  const fs::path folder = fs::absolute(given.out).parent_path();
  ordered_json require = ordered_json::array(), parties = ordered_json::array();
  for (const auto& one : given.keys) {
    const auto split = one.find('=');
    if (split == std::string::npos || split == 0 || split + 1 == one.size())
      return std::unexpected(
          InputError{"--key", fmt::format("'{}' is not ROLE=FILE", one), "--key vendor=lab.key.pub"});
    const std::string role = one.substr(0, split);
    const fs::path file = one.substr(split + 1);
    const auto key = dossier::load_public_key(file);
    if (!key) return std::unexpected(key.error());
    if (require.empty()) require.push_back(role);
    auto& signers = party_of(parties, role).at("signers");
    std::string name = signer_of(file);
    if (std::ranges::any_of(signers, [&](const ordered_json& other) { return other.at("name") == name; }))
      name += fmt::format(" {}", signers.size() + 1);
    signers.push_back({{"name", name},
                       {"keys",
                        {{{"fingerprint", key->fingerprint()},
                          {"file", fs::absolute(file).lexically_normal().lexically_proximate(folder).string()},
                          {"valid_from", from},
                          {"valid_until", until}}}}});
  }
  if (!given.require.empty()) require = given.require;
  return ordered_json{{"schema", "assay.trust/1"}, {"name", given.name}, {"valid_from", from},
                      {"valid_until", until},      {"require", require}, {"parties", parties}};
}

int run_trust_init(const TrustArguments& given) {
  const auto policy = draft(given);
  if (!policy) return bad_input(policy.error());
  const std::string text = policy->dump(1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
  const auto folder = fs::absolute(given.out).parent_path();
  const auto read = dossier::read_trust_policy(text, given.out, [&](const std::string& file) {
    return read_file((folder / file).string(), dossier::kLargestKeyFile);
  });
  if (!read) return bad_input(read.error());  // what verify would refuse is not written
  if (const auto problem = files::create_file(given.out, text, 0644)) return bad_input(*problem);
  std::cout << harmless_page(given.out) << '\n';
  for (const auto& party : read->parties) {
    for (const auto& signer : party.signers)
      std::cerr << fmt::format("{}: {}, key {}\n", party.role, harmless(signer.name), signer.keys.front().fingerprint);
  }
  std::cerr << "ask each owner for the fingerprint by another way than the file came by; parties and signers are named "
               "after roles and files: edit the names, threshold and times as your contract says\n";
  return files::kExitSuccess;
}

}  // namespace

void add_trust_command(Command& app, TrustArguments& given, Action& action) {
  auto& trust = app.add_command("trust", "draft a trust policy, for --policy");
  trust.need_commands(1, 1);
  auto& init = trust.add_command("init", "write a policy from public keys and the roles of their owners");
  add_repeated(init, "--key", given.keys, "ROLE=FILE",
               "a public key and the role of its owner: vendor, buyer, commissioner or witness; may be repeated")
      ->required();
  add_option(init, "--out", given.out, "FILE", "policy to write")->required();
  add_option(init, "--name", given.name, "NAME", "name of the policy: your contract or hall")->with_default();
  add_option(init, "--require", given.require, "ROLES", "roles that must have signed [the role of the first key]")
      ->separated_by(',');
  add_option(init, "--from", given.from, "DAY", "first day on which policy and keys count [a year ago]");
  add_option(init, "--until", given.until, "DAY", "day from which they no longer count [in a year]");
  end_command(
      init, "Example: assay trust init --key vendor=vendor.pub --key buyer=buyer.pub --name 'hall 3' --out trust.json",
      action, [&] { return run_trust_init(given); });
}

}  // namespace assay::report_cli
