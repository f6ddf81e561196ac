// join_command: joining dossiers, and the view of a joint dossier.
#include "reports/cli/join_command.h"

#include <algorithm>
#include <chrono>
#include <iostream>

#include <fmt/format.h>

#include "probes/core/command.h"
#include "probes/core/how_many.h"
#include "probes/core/text.h"
#include "probes/core/utc_time.h"
#include "reports/cli/commands.h"
#include "reports/cli/signer_options.h"
#include "reports/cli/summary.h"
#include "reports/joint/joint.h"

namespace assay::report_cli {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t kMostOpen = 5;  // shown to people; --json has all of them

bool is_open(const judge::Result& result) { return result.required && result.outcome != judge::Outcome::pass; }

std::size_t nodes_of(const joint::Joined& joined) {
  std::size_t nodes = 0;
  for (const auto& part : joined.parts) nodes += part.verified.contents.nodes.size();
  return nodes;
}

/// How many nodes show no serial number, so that two of them may be one machine for all that is known.
std::size_t unnamed(const joint::Joined& joined) {
  std::size_t shown = 0;
  for (const auto& part : joined.parts) shown += part.serials.size();
  return nodes_of(joined) - std::min(shown, nodes_of(joined));
}

/// Every signature that was checked, with its standing by a policy and an authority.
ordered_json signatures_of(const dossier::Signatures& signatures) {
  ordered_json all = ordered_json::array();
  for (const auto& key : signatures.signers) {
    ordered_json one = {{"key", key}};
    for (const auto& party : signatures.parties) {
      if (party.fingerprint != key) continue;
      one.update(ordered_json{{"role", party.role}, {"party", party.party}, {"signer", party.signer}});
    }
    if (const auto stamp = signatures.stamps.find(key); stamp != signatures.stamps.end())
      one["stamped"] = {{"at", utc_text(stamp->second.at)}, {"authority", stamp->second.authority}};
    all.push_back(std::move(one));
  }
  return all;
}

std::vector<std::string> signers_of(const joint::Joined& joined) {
  std::vector<std::string> all;
  for (const auto& one : signatures_of(joined.signatures)) {
    const std::string key = one.at("key");
    const bool maker = key == joined.claims.key_fingerprint;
    std::string words =
        fmt::format("{} by the key {}", maker ? "joined " + joined.claims.issued_at : "countersigned", key);
    if (one.contains("role"))
      words += fmt::format(", signed as {}: {} of {}", one.at("role").get<std::string>(),
                           one.at("signer").get<std::string>(), one.at("party").get<std::string>());
    if (one.contains("stamped"))
      words += fmt::format(", stamped {} by {}", one.at("stamped").at("at").get<std::string>(),
                           one.at("stamped").at("authority").get<std::string>());
    all.push_back(std::move(words));
  }
  return all;
}

Summary summary_of(const joint::Joined& joined, const Pins& pins, const char* before) {
  const auto& first = joined.parts.front().verified.contents;
  Summary summary{.verdict = fmt::format("{}{}: {}", before, to_string(joined.overall), joined.reason),
                  .signers = signers_of(joined),
                  .pins = pins,
                  .nodes = nodes_of(joined),
                  .ended = first.ended,
                  .profile = fmt::format("{} revision {}", first.verdict.profile, first.profile_revision),
                  .built_in = first.targets_built_in};
  for (const auto& part : joined.parts) {
    const auto& contents = part.verified.contents;
    summary.ended = std::min(summary.ended, contents.ended);
    for (const auto& one : contents.verdict.deviations)
      summary.deviations.push_back(fmt::format("part {}: {}", part.name, one.what));
    for (const auto& probe : contents.probes) {
      const std::string name = fmt::format("{} revision {}", probe.name, probe.revision);
      if (!probe.known && std::ranges::find(summary.unknown, name) == summary.unknown.end())
        summary.unknown.push_back(name);
    }
  }
  return summary;
}

ordered_json document_of(const joint::Joined& joined, const Pins& pins) {
  ordered_json parts = ordered_json::array();
  for (const auto& part : joined.parts) {
    const auto& contents = part.verified.contents;
    ordered_json signers = ordered_json::array();
    for (const auto& one : part.verified.parties)
      signers.push_back({{"role", one.role}, {"party", one.party}, {"signer", one.signer}, {"key", one.fingerprint}});
    if (signers.empty()) signers = part.verified.signers;
    parts.push_back({{"name", part.name},
                     {"site", contents.verdict.site},
                     {"overall", to_string(contents.verdict.overall)},
                     {"nodes", contents.nodes},
                     {"run_id", contents.verdict.run_id},
                     {"ended", contents.ended},
                     {"signers", std::move(signers)}});
  }
  ordered_json fleet = ordered_json::array();
  for (const auto& result : joined.fleet) {
    fleet.push_back({{"requirement", result.requirement},
                     {"subject", {{"kind", result.subject.kind}, {"id", result.subject.id}}},
                     {"node", result.node},
                     {"required", result.required},
                     {"outcome", to_string(result.outcome)},
                     {"reason", result.reason}});
  }
  const auto& first = joined.parts.front().verified.contents;
  return {{"verified", true},
          {"kind", word_of(joined.kind)},
          {"overall", to_string(joined.overall)},
          {"reason", joined.reason},
          {"pinned", pins.pinned},
          {"not_pinned", pins.open},
          {"profile", first.verdict.profile},
          {"profile_revision", first.profile_revision},
          {"targets_sha256", first.targets_sha256},
          {"targets_built_in", first.targets_built_in},
          {"parts", std::move(parts)},
          {"nodes_without_serial", unnamed(joined)},
          {"fleet", std::move(fleet)},
          {"issued_at", joined.claims.issued_at},
          {"signer",
           {{"key", joined.claims.key_fingerprint},
            {"role", joined.claims.role},
            {"name", joined.claims.name},
            {"organisation", joined.claims.organisation}}},
          {"signatures", signatures_of(joined.signatures)}};
}

/// `before`: "verified: " in front of the verdict, for a verification.
void print(const joint::Joined& joined, const dossier::Expectations& expected, const char* before = "") {
  print_summary(summary_of(joined, pins_of(expected, false), before));
  for (const auto& part : joined.parts) {
    const auto& contents = part.verified.contents;
    std::cout << fmt::format("  part {}: {}, {} of site {}, run {}, ended {}\n", part.name,
                             to_string(contents.verdict.overall), how_many(contents.nodes.size(), "node"),
                             harmless(contents.verdict.site), harmless(contents.verdict.run_id),
                             harmless(contents.ended));
    for (const auto& one : part.verified.parties)
      std::cout << fmt::format("    signed as {}: {} of {}\n", one.role, harmless(one.signer), harmless(one.party));
    if (part.verified.parties.empty()) {
      for (const auto& key : part.verified.signers)
        std::cout << fmt::format("    signed by the key {}\n", harmless(key));
    }
  }
  std::size_t open = 0;
  for (const auto& result : joined.fleet) {
    if (is_open(result) && ++open <= kMostOpen)
      std::cout << fmt::format("  {} of {} {}: {}: {}\n", harmless(result.requirement), harmless(result.subject.kind),
                               harmless(result.subject.id), to_string(result.outcome), harmless(result.reason));
  }
  if (open > kMostOpen) std::cout << harmless_page(fmt::format("  and {} more: --json\n", open - kMostOpen));
  std::cout << harmless_page(fmt::format("  targets {}\n", joined.parts.front().verified.contents.targets_sha256));
  if (const auto nodes = unnamed(joined); nodes > 0)
    std::cout << harmless_page(fmt::format("  note: {} of {} nodes show no serial number\n", nodes, nodes_of(joined)));
  if (joined.signatures.other_signatures > 0)
    std::cout << harmless_page(fmt::format("  note: {} more signatures, by other keys, were not checked\n",
                                           joined.signatures.other_signatures));
}

int run_join(const JoinArguments& given, joint::Kind kind) {
  joint::JoinRequest request{.kind = kind, .out = without_slash(given.out)};
  for (const auto& path : given.dossiers) {
    if (!is_folder(path)) return bad_input(not_a_folder(path));
    request.dossiers.push_back(without_slash(path));
    if (const auto problem = check_is_dossier(request.dossiers.back())) return bad_input(*problem);
  }
  if (given.others.empty() && given.policy.empty())
    return bad_input({"--with-key", "is missing: the public keys of those who signed the dossiers",
                      "obtain them from the signers, not from the dossiers; or name a --policy"});
  const auto key = dossier::load_signer(given.signer);
  if (!key) return bad_input(key.error());
  auto others = public_keys(given.others);
  if (!others) return bad_input(others.error());
  auto expected = expectations_of({.policy = given.policy});
  if (!expected) return bad_input(expected.error());
  request.claims = {.issued_at = utc_text(std::chrono::system_clock::now()),
                    .role = given.role,
                    .name = given.name,
                    .organisation = given.organisation};
  const auto joined = joint::make_joint(request, **key, {.keys = std::move(*others), .expected = *expected});
  if (!joined) return refused(joined.error());
  print(*joined, *expected);
  std::cout << harmless_page(request.out) << '\n';
  return files::kExitSuccess;
}

void add(Command& command, JoinArguments& given) {
  add_option(command, "dossiers", given.dossiers, "DIR", "folders of dossiers, two at least")->required();
  add_signer_options(command, given.signer, " of who joins them")->required();
  add_repeated(command, "--with-key", given.others, "FILE", "public key of who signed a dossier; may be repeated");
  add_option(command, "--policy", given.policy, "FILE", "refuse signatures that this trust policy does not count");
  add_option(command, "--out", given.out, "DIR", "folder to make")->required();
  add_option(command, "--role", given.role, "ROLE", "role of who joins them")
      ->with_default()
      ->one_of(std::vector<std::string>(dossier::kRoles.begin(), dossier::kRoles.end()));
  add_option(command, "--name", given.name, "NAME", "name of the signer");
  add_option(command, "--organisation", given.organisation, "NAME", "organisation of the signer");
}

/// An option that is of one dossier, and was given; nothing if there is none.
const char* of_one_dossier(const ExpectationArguments& expected) {
  for (const auto& [option, value] :
       {std::pair("--site", &expected.site), std::pair("--nodes", &expected.nodes), std::pair("--plan", &expected.plan),
        std::pair("--challenge", &expected.challenge), std::pair("--run-id", &expected.run_id),
        std::pair("--supersedes", &expected.supersedes), std::pair("--serials", &expected.serials),
        std::pair("--tpm-roots", &expected.tpm_roots), std::pair("--tpm-keys", &expected.tpm_keys),
        std::pair("--gpu-roots", &expected.gpu_roots), std::pair("--gpu-keys", &expected.gpu_keys),
        std::pair("--crls", &expected.crls)}) {
    if (!value->empty()) return option;
  }
  return nullptr;
}

/// Why `option` is refused of the joint dossier in `directory`.
InputError not_of_joint(const char* option, const std::string& directory) {
  return {option, "is of one dossier, and this is a joint one",
          fmt::format("verify the part by itself: {}/{}/01", directory, joint::kPartsFolder)};
}

}  // namespace

void add_join_commands(Command& app, JoinCommands& given, Action& action) {
  auto& merge = app.add_command("merge", "verify dossiers of several sites, and sign one statement of them");
  add(merge, given.merge);
  end_command(
      merge,
      "Example: assay-report merge north/dossier south/dossier --policy trust.json --key buyer.key --role buyer --out "
      "fleet",
      action, [&] { return run_join(given.merge, joint::Kind::merge); });
  auto& expand =
      app.add_command("expand", "the same of one site that has grown, with limits of the fleet over all nodes");
  add(expand, given.expand);
  end_command(
      expand,
      "Example: assay-report expand first/dossier later/dossier --with-key lab.key.pub --key lab.key --out hall",
      action, [&] { return run_join(given.expand, joint::Kind::expand); });
}

int countersign_joint(const std::string& directory, const SignArguments& given, const dossier::Signer& key,
                      const joint::Trust& trust) {
  if (const char* option = of_one_dossier(given.expected)) return bad_input(not_of_joint(option, directory));
  const auto joined = joint::countersign(directory, key, trust);
  if (!joined) return refused(joined.error());
  print(*joined, trust.expected);
  std::cout << fmt::format("signed {} with the key {}\n", harmless(directory), key.public_key().fingerprint());
  return files::kExitSuccess;
}

int run_verify_joint(const VerifyArguments& given) {
  const char* option = of_one_dossier(given.expected);
  if (option == nullptr && !given.waivers.empty()) option = "--waiver";
  if (option == nullptr && (!given.heads.empty() || !given.witness_keys.empty())) option = "--head";
  if (option != nullptr) return bad_input(not_of_joint(option, without_slash(given.directory)));
  auto keys = public_keys(given.keys);
  if (!keys) return bad_input(keys.error());
  auto expected = expectations_of(given.expected);
  if (!expected) return bad_input(expected.error());
  const auto joined =
      joint::verify_joint(without_slash(given.directory), {.keys = std::move(*keys), .expected = *expected});
  if (!joined) {
    if (given.json) {
      std::cout << ordered_json{{"verified", false}, {"where", joined.error().where}, {"what", joined.error().what}}
                       .dump(1, ' ', true, ordered_json::error_handler_t::replace)
                << '\n';
    }
    return refused(joined.error());
  }
  if (given.json) {
    std::cout << document_of(*joined, pins_of(*expected, false)).dump(1, ' ', true) << '\n';
  } else {
    print(*joined, *expected, "verified: ");
  }
  return given.accepted ? judge::exit_code(joined->overall) : files::kExitSuccess;
}

}  // namespace assay::report_cli
