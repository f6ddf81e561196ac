// verify_command: `assay-report verify`, and the view of a verified dossier.
#include <iostream>
#include <set>

#include <fmt/format.h>

#include "orchestrator/files/state.h"
#include "orchestrator/judge/overall/ranking.h"
#include "probes/core/how_many.h"
#include "probes/core/json_fields.h"
#include "probes/core/text.h"
#include "probes/core/utc_time.h"
#include "reports/cli/commands.h"
#include "reports/cli/join_command.h"
#include "reports/cli/summary.h"
#include "reports/joint/joint.h"

namespace assay::report_cli {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t kMostDeviations = 5;  // shown to people; --json has all of them
constexpr std::size_t kMostNodes = 8;       // the same

/// The signatory whose key this is; only the fingerprint when the statement does not list it.
ordered_json signer_of(const dossier::Claims& claims, const std::string& fingerprint) {
  ordered_json signer = {{"key", fingerprint}};
  for (const auto& one : claims.signatories) {
    if (one.key_fingerprint != fingerprint) continue;
    signer["role"] = one.role;
    signer["name"] = one.name;
    signer["organisation"] = one.organisation;
    signer["self_signed"] = one.is_self_signed();
  }
  return signer;
}

/// The text at `name` of an agent's facts of its node; empty if there is none.
std::string said(const nlohmann::json& facts, const char* name) {
  if (!facts.is_object()) return "";
  const auto found = facts.find(name);
  return found != facts.end() && found->is_string() ? found->get<std::string>() : "";
}

ordered_json node_of(const dossier::CheckedContents& contents, const std::string& name) {
  ordered_json node = {{"name", name}};
  if (const auto tpm = contents.tpms.find(name); tpm != contents.tpms.end()) add_tpm(tpm->second, node);
  if (const auto gpus = contents.gpus.find(name); gpus != contents.gpus.end()) add_gpus(gpus->second, node);
  const auto facts = contents.machines.find(name);
  if (facts == contents.machines.end()) return node;
  node["host"] = said(facts->second, "name");
  node["boot"] = said(facts->second, "boot_id");
  return node;
}

/// How many machines the nodes are, by host name and boot, as in judging.
std::size_t machines_in(const dossier::CheckedContents& contents) {
  std::set<std::string> machines;
  for (const auto& [node, facts] : contents.machines)
    machines.insert(said(facts, "name") + "\n" + said(facts, "boot_id"));
  return machines.size();
}

/// Whether one of the signers is the key that this machine made for itself.
bool is_of_this_machine(const dossier::Verified& verified) {
  const auto own = dossier::load_public_key(files::machine_key_path() + ".pub");
  return own && std::ranges::find(verified.signers, own->fingerprint()) != verified.signers.end();
}

ordered_json notes_of(const dossier::Verified& verified) {
  ordered_json notes = verified.contents.notes;
  const auto& signatory = verified.contents.claims.signatories.front();
  if (is_of_this_machine(verified) && !signatory.is_self_signed())
    notes.push_back("one of the keys is this machine's own, for which no organisation vouches");
  return notes;
}

ordered_json waivers_of(const std::vector<dossier::Waiver>& waivers) {
  ordered_json all = ordered_json::array();
  for (const auto& waiver : waivers) {
    const auto shown = dossier::shown(waiver);
    all.push_back({{"cells", shown.cells}, {"reason", shown.reason}, {"until", shown.until}, {"by", shown.by}});
  }
  return all;
}

/// Whose signatures a policy counted; null without one.
ordered_json policy_of(const dossier::Verified& verified) {
  if (verified.policy.empty()) return nullptr;
  ordered_json parties = ordered_json::array();
  for (const auto& one : verified.parties) {
    parties.push_back({{"role", one.role}, {"party", one.party}, {"signer", one.signer}, {"key", one.fingerprint}});
  }
  return {{"name", verified.policy}, {"counted", std::move(parties)}};
}

/// When each signature was made, by an authority; empty if that was not asked for.
ordered_json stamps_of(const dossier::Verified& verified) {
  ordered_json all = ordered_json::array();
  for (const auto& [key, stamp] : verified.stamps)
    all.push_back({{"key", key}, {"at", utc_text(stamp.at)}, {"authority", stamp.authority}});
  return all;
}

ordered_json heads_of(const std::vector<dossier::WitnessedHead>& heads) {
  ordered_json all = ordered_json::array();
  for (const auto& one : heads) {
    all.push_back({{"seen_at", one.head.seen_at},
                   {"lines", one.head.lines},
                   {"bytes", one.head.bytes},
                   {"sha256", one.head.sha256},
                   {"by", one.by}});
  }
  return all;
}

ordered_json document_of(const dossier::Verified& verified, Pins pins) {
  const auto& contents = verified.contents;
  if (contents.agreed && std::ranges::find(pins.pinned, "agreement") == pins.pinned.end())
    pins.open.emplace_back("agreement");
  ordered_json signers = ordered_json::array();
  for (const auto& fingerprint : verified.signers) signers.push_back(signer_of(contents.claims, fingerprint));
  ordered_json deviations = ordered_json::array();
  for (const auto& one : contents.verdict.deviations) deviations.push_back({{"what", one.what}, {"step", one.step}});
  ordered_json nodes = ordered_json::array();
  for (const auto& name : contents.nodes) nodes.push_back(node_of(contents, name));
  ordered_json probes = ordered_json::array();
  for (const auto& probe : contents.probes) {
    probes.push_back(
        {{"name", probe.name}, {"revision", probe.revision}, {"sha256", probe.sha256}, {"known", probe.known}});
    if (!probe.builds.empty()) probes.back()["builds"] = probe.builds;
  }
  return {{"verified", true},
          {"overall", to_string(contents.verdict.overall)},
          {"reason", contents.verdict.reason},
          {"report_checked", contents.report_checked},
          {"pinned", pins.pinned},
          {"not_pinned", pins.open},
          {"deviations", std::move(deviations)},
          {"nodes", std::move(nodes)},
          {"machines", machines_in(contents)},
          {"began", contents.began},
          {"ended", contents.ended},
          {"finished", contents.finished},
          {"run_id", contents.verdict.run_id},
          {"challenge", contents.challenge},
          {"plan_sha256", contents.verdict.plan_sha256},
          {"site", contents.verdict.site},
          {"site_sha256", contents.site_sha256},
          {"profile", contents.verdict.profile},
          {"profile_revision", contents.profile_revision},
          {"requirements", contents.requirements},
          {"targets_sha256", contents.targets_sha256},
          {"targets_built_in", contents.targets_built_in},
          {"probes", std::move(probes)},
          {"issued_at", contents.claims.issued_at},
          {"signers", std::move(signers)},
          {"policy", policy_of(verified)},
          {"supersedes",
           contents.claims.supersedes ? ordered_json(nlohmann::json(*contents.claims.supersedes)) : ordered_json()},
          {"time_stamps", stamps_of(verified)},
          {"heads", ordered_json::array()},
          {"waivers", ordered_json::array()},
          {"other_signatures", verified.other_signatures},
          {"files", contents.claims.evidence.file_count},
          {"notes", notes_of(verified)}};
}

std::string text(const ordered_json& value) { return harmless(value.get<std::string>()); }

std::string words_of_deviation(const ordered_json& deviation) {
  const std::string step = text(deviation.at("step"));
  return fmt::format("{}{}", step.empty() ? "" : step + ": ", text(deviation.at("what")));
}

/// "signed as vendor: Ada of Example AG" by the receiver's policy; else the key, and its owner by the signer's word.
std::vector<std::string> signers_in(const ordered_json& document) {
  std::vector<std::string> all;
  if (const auto& policy = document.at("policy"); !policy.is_null()) {
    for (const auto& one : policy.at("counted")) {
      all.push_back(
          fmt::format("signed as {}: {} of {}", text(one.at("role")), text(one.at("signer")), text(one.at("party"))));
    }
    if (!all.empty()) all.back() += fmt::format(", by the policy {}", text(policy.at("name")));
    return all;
  }
  for (const auto& signer : document.at("signers")) {
    std::string who = "whose owner the statement does not name";
    if (signer.contains("role")) {
      who = "who is, by the signer's word: " + text(signer.at("role"));
      for (const char* part : {"name", "organisation"}) {
        if (!text(signer.at(part)).empty()) who += ", " + text(signer.at(part));
      }
      if (signer.at("self_signed").get<bool>()) who += ", SELF-SIGNED";
    }
    all.push_back(fmt::format("signed by the key {}, {}", text(signer.at("key")), who));
  }
  return all;
}

Summary summary_of(const ordered_json& document) {
  const bool whole = document.at("report_checked").get<bool>();
  Summary summary{
      .verdict = fmt::format(
          "verified{}: {}",
          whole ? "" : " WITHOUT ITS REPORT, which another version rendered and which was not compared: do not read it",
          text(document.at("overall"))),
      .signers = signers_in(document),
      .pins = {.pinned = document.at("pinned"), .open = document.at("not_pinned")},
      .nodes = document.at("nodes").size(),
      .ended = text(document.at("ended")),
      .profile =
          fmt::format("{} revision {}", text(document.at("profile")), document.at("profile_revision").get<int>()),
      .built_in = document.at("targets_built_in")};
  for (const auto& one : document.at("deviations")) summary.deviations.push_back(words_of_deviation(one));
  for (const auto& probe : document.at("probes")) {
    if (!probe.at("known").get<bool>())
      summary.unknown.push_back(fmt::format("{} revision {}", text(probe.at("name")), probe.at("revision").get<int>()));
  }
  return summary;
}

/// The deviations after the first one, which the summary has.
void print_deviations(const ordered_json& document) {
  const auto& all = document.at("deviations");
  std::vector<std::string> steps;
  for (const auto& one : all) steps.push_back(text(one.at("step")));
  auto [shown, more, others] = judge::shown_deviations(steps, kMostDeviations);
  for (const std::size_t i : shown) {
    if (i > 0) std::cout << harmless_page(fmt::format("  deviation: {}\n", words_of_deviation(all[i])));
  }
  for (std::size_t lines = 0; const auto& [step, count] : more) {
    if (++lines > kMostDeviations)
      others += count;
    else
      std::cout << harmless_page(fmt::format("  and {} more of the step {}: --json\n", count, step));
  }
  if (others > 0) std::cout << fmt::format("  and {} more deviations: --json\n", others);
}

/// The tested nodes, and the time.
void print_run(const ordered_json& document) {
  const auto& nodes = document.at("nodes");
  const auto machines = document.at("machines").get<std::size_t>();
  std::cout << fmt::format("  {} of site {}, {} by host name and boot\n", how_many(nodes.size(), "node"),
                           text(document.at("site")), how_many(machines, "machine"));
  for (std::size_t i = 0; i < std::min(nodes.size(), kMostNodes); ++i) {
    std::cout << fmt::format("    {}{}{}\n", text(nodes[i].at("name")),
                             nodes[i].contains("host") ? fmt::format(": host {}, boot {}", text(nodes[i].at("host")),
                                                                     text(nodes[i].at("boot")))
                                                       : ": no agent answered",
                             hardware_words(nodes[i]));
  }
  if (nodes.size() > kMostNodes) std::cout << fmt::format("    and {} more: --json\n", nodes.size() - kMostNodes);
  std::cout << fmt::format("  began {}, {} {}, issued {} (by the clocks of the signer)\n", text(document.at("began")),
                           document.at("finished").get<bool>() ? "ended" : "NOT FINISHED, last line",
                           text(document.at("ended")), text(document.at("issued_at")));
  std::cout << fmt::format("  site {} with the digest {}\n", text(document.at("site")),
                           text(document.at("site_sha256")));
  std::cout << fmt::format("  run {} of plan {}\n", text(document.at("run_id")), text(document.at("plan_sha256")));
  if (!text(document.at("challenge")).empty())
    std::cout << fmt::format("  the plan answers the challenge {}\n", text(document.at("challenge")));
  std::cout << fmt::format("  {}, targets {}\n",
                           how_many(document.at("requirements").get<std::size_t>(), "requirement"),
                           text(document.at("targets_sha256")));
}

/// Keys of the signers that the policy has named above, and the files.
void print_signers(const ordered_json& document) {
  if (!document.at("policy").is_null()) {
    for (const auto& signer : document.at("signers"))
      std::cout << fmt::format("  signed by the key {}\n", text(signer.at("key")));
  }
  if (const auto others = document.at("other_signatures").get<std::size_t>(); others > 0) {
    std::cout << fmt::format("  {} by keys that were not given: not verified\n", how_many(others, "further signature"));
  }
  std::cout << fmt::format("  {}\n", how_many(document.at("files").get<std::uint64_t>(), "file"));
  for (const auto& note : document.at("notes")) std::cout << fmt::format("  note: {}\n", text(note));
}

/// The statement's predecessor, by its maker's word.
void print_superseded(const ordered_json& document) {
  const auto& older = document.at("supersedes");
  if (older.is_null()) return;
  std::cout << fmt::format("  supersedes the {} run {}, issued {}, by the signer's word: {}\n",
                           text(older.at("overall")), text(older.at("run")), text(older.at("issuedAt")),
                           text(older.at("reason")));
  std::cout << fmt::format("    statement {}\n", text(older.at("statementSha256")));
}

/// Waivers, which leave the verdict above them as it is.
void print_waivers(const ordered_json& document) {
  constexpr std::size_t kMostCells = 5;  // of one waiver
  for (const auto& waiver : document.at("waivers")) {
    std::cout << fmt::format("  WAIVED until {} by {}, which changes no verdict: {}\n", text(waiver.at("until")),
                             text(waiver.at("by")), text(waiver.at("reason")));
    const auto& cells = waiver.at("cells");
    for (std::size_t i = 0; i < std::min(cells.size(), kMostCells); ++i)
      std::cout << fmt::format("    {}\n", harmless(cells[i].get<std::string>()));
    if (cells.size() > kMostCells) std::cout << fmt::format("    and {} more: --json\n", cells.size() - kMostCells);
  }
}

/// Proofs by others than the signers: times of the signatures, and the journal's content during the run.
void print_proofs(const ordered_json& document) {
  for (const auto& one : document.at("time_stamps")) {
    std::cout << fmt::format("  stamped {} by {}: the signature of the key {}\n", text(one.at("at")),
                             text(one.at("authority")), text(one.at("key")));
  }
  const auto& heads = document.at("heads");
  if (heads.empty()) return;
  std::cout << fmt::format(
      "  the journal was witnessed {}, first {} with {}, last {} with {}\n", how_many(heads.size(), "time"),
      text(heads.front().at("seen_at")), how_many(heads.front().at("lines").get<std::uint64_t>(), "line"),
      text(heads.back().at("seen_at")), how_many(heads.back().at("lines").get<std::uint64_t>(), "line"));
  constexpr std::size_t kMostHeads = 8;  // of a watch there may be thousands
  for (std::size_t i = 0; i < std::min(heads.size(), kMostHeads); ++i)
    std::cout << fmt::format("    {}: {}\n", text(heads[i].at("seen_at")), text(heads[i].at("by")));
  if (heads.size() > kMostHeads) std::cout << fmt::format("    and {} more: --json\n", heads.size() - kMostHeads);
}

void print(const ordered_json& document) {
  print_summary(summary_of(document));
  std::cout << fmt::format("  {}\n", text(document.at("reason")));
  print_superseded(document);
  print_waivers(document);
  print_proofs(document);
  print_deviations(document);
  print_run(document);
  print_signers(document);
}

/// Prints why a dossier is refused; with --json as a document, too.
int refuse(const VerifyArguments& given, const InputError& error, const ordered_json& differences) {
  if (given.json) {
    std::cout << ordered_json{{"verified", false},
                              {"where", error.where},
                              {"what", error.what},
                              {"differences", differences}}
                     .dump(1, ' ', true, ordered_json::error_handler_t::replace)
              << '\n';
  }
  return refused(error);
}

}  // namespace

void print_verified(const dossier::Verified& verified, const dossier::Expectations& expected) {
  print(document_of(verified, pins_of(expected, false)));
}

int run_verify(const VerifyArguments& given) {
  if (!is_folder(given.directory)) return bad_input(not_a_folder(given.directory));
  if (const auto problem = check_is_dossier(without_slash(given.directory))) return bad_input(*problem);
  if (given.keys.empty() && given.expected.policy.empty()) {
    return bad_input({"--key", "is missing: the public key of a required signer",
                      "obtain it from the signer, not from the dossier; or name a --policy"});
  }
  if (joint::is_joint(without_slash(given.directory))) return run_verify_joint(given);
  const auto keys = public_keys(given.keys);
  if (!keys) return bad_input(keys.error());
  auto expected = expectations_of(given.expected);
  if (!expected) return bad_input(expected.error());
  ordered_json differences = ordered_json::array();
  if (given.json) expected->each_difference = [&](const std::string& one) { differences.push_back(one); };
  const auto verified = dossier::verify_dossier(without_slash(given.directory), *keys, *expected);
  if (!verified) return refuse(given, verified.error(), differences);
  ordered_json document = document_of(*verified, pins_of(*expected, !given.heads.empty()));
  if (!given.heads.empty() || !given.witness_keys.empty()) {
    const auto heads = read_heads(given, *expected, verified->contents);
    if (!heads) return refuse(given, heads.error(), differences);
    document["heads"] = heads_of(*heads);
  }
  if (!given.waivers.empty()) {
    if (!expected->trust) return bad_input({"--waiver", "needs --policy, which says who may waive", ""});
    const auto& contents = verified->contents;
    const auto waivers = read_waivers(given.waivers, *expected->trust,
                                      {contents.verdict, contents.verdict_sha256, contents.ended}, *expected->now);
    if (!waivers) return refuse(given, waivers.error(), differences);
    document["waivers"] = waivers_of(*waivers);
  }
  if (const auto note = gone_on_note(given.directory); !note.empty()) {
    std::cerr << fmt::format("assay-report: warning: {}\n", harmless(note));
    document["notes"].push_back(note);
  }
  if (given.json) {
    std::cout << document.dump(1, ' ', true) << '\n';
  } else {
    print(document);
  }
  return given.accepted ? judge::exit_code(verified->contents.verdict.overall) : files::kExitSuccess;
}

}  // namespace assay::report_cli
