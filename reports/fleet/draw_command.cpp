// draw_command: commitments, the challenge that they make, its plan, and the result of the repeats.

#include <algorithm>
#include <chrono>
#include <expected>
#include <iostream>

#include <fmt/format.h>

#include "orchestrator/files/atomic_file.h"
#include "orchestrator/files/digest.h"
#include "orchestrator/judge/verdict.h"
#include "probes/core/command.h"
#include "probes/core/secret_file.h"
#include "probes/core/text.h"
#include "probes/core/utc_time.h"
#include "reports/cli/signer_options.h"
#include "reports/dossier/certificate.h"
#include "reports/dossier/trust_rules.h"
#include "reports/fleet/commands.h"
#include "reports/spot_check/challenge.h"
#include "reports/spot_check/repeat.h"

namespace assay::report_cli {
namespace {

/// The policy, and the dossier that it counts.
struct Drawn {
  dossier::TrustPolicy policy;
  dossier::OpenedRun run;
  dossier::Moment now;
};

/// The dossier at `path`, whose signatures must count. Prints the error; the exit code is the error.
std::expected<dossier::OpenedRun, int> open_dossier(const std::string& path, const dossier::TrustPolicy& policy,
                                                    dossier::Moment now) {
  if (!is_folder(path)) return std::unexpected(bad_input(not_a_folder(path)));
  const std::string directory = without_slash(path);
  if (const auto problem = check_is_dossier(directory)) return std::unexpected(bad_input(*problem));
  auto run = dossier::open_run(directory, {.policy = policy, .now = now});
  if (!run) return std::unexpected(refused(run.error()));
  if (run->standing == "verified") return std::move(*run);
  return std::unexpected(refused({directory, "is a run and no dossier: it is " + run->standing,
                                  "cells are drawn of what was signed, and repeats are signed, too"}));
}

std::expected<Drawn, int> open(const DrawArguments& given) {
  auto policy = dossier::load_trust_policy(given.policy);
  if (!policy) return std::unexpected(bad_input(policy.error()));
  const auto now = std::chrono::system_clock::now();
  auto run = open_dossier(given.dossier, *policy, now);
  if (!run) return std::unexpected(run.error());
  return Drawn{.policy = std::move(*policy), .run = std::move(*run), .now = now};
}

/// Signs `commitment` by the key of `given`; the text of its file, which its reader has passed.
std::expected<std::string, int> signed_text(const DrawArguments& given, const Drawn& drawn,
                                            spot_check::Commitment commitment) {
  const auto key = dossier::load_signer(given.signer);
  if (!key) return std::unexpected(bad_input(key.error()));
  const auto policy = dossier::with_certificates(drawn.policy, {(*key)->certificate});
  const auto by = dossier::listed(policy, (*key)->public_key().fingerprint());
  if (by.party == nullptr)
    return std::unexpected(
        refused({given.policy, "does not have this key", "the policy of a draw names the keys of all its parties"}));
  if (const auto problem = dossier::check_key(policy, by, drawn.now)) return std::unexpected(refused(*problem));
  commitment.run = spot_check::drawn_run(drawn.run);
  commitment.issued_at = utc_text(drawn.now);
  commitment.role = by.party->role;
  commitment.key_fingerprint = by.key->fingerprint;
  auto text = spot_check::commitment_text(commitment, **key);
  if (!text) return std::unexpected(bad_input(text.error()));
  const auto checked = spot_check::check_commitment(*text, given.out, policy, commitment.run, drawn.now);
  if (!checked) return std::unexpected(refused(checked.error()));
  return std::move(*text);
}

int run_commit(const DrawArguments& given) {
  const auto drawn = open(given);
  if (!drawn) return drawn.error();
  const auto seed = spot_check::new_seed();
  if (!seed) return bad_input(seed.error());
  const auto text = signed_text(given, *drawn, {.cells = given.cells, .seed_sha256 = files::sha256(*seed)});
  if (!text) return text.error();
  if (const auto problem = files::create_file(given.out + ".seed", *seed + "\n", 0600)) return bad_input(*problem);
  if (const auto problem = files::create_file(given.out, *text, 0644)) return bad_input(*problem);
  std::cout << harmless_page(given.out) << '\n';
  std::cerr << fmt::format(
      "{0}: the commitment; hand it to the other parties now\n"
      "{0}.seed: the seed; keep it until you hold the commitments of all others, then `assay draw reveal`\n",
      harmless(given.out));
  return files::kExitSuccess;
}

/// The commitment in the file `path`, checked. Prints the error; the exit code is the error.
std::expected<spot_check::CheckedCommitment, int> commitment_in(const std::string& path, const Drawn& drawn) {
  const auto text = read_deciding_file(path, spot_check::kLargestCommitment);
  if (!text) return std::unexpected(bad_input(text.error()));
  auto checked = spot_check::check_commitment(*text, path, drawn.policy, spot_check::drawn_run(drawn.run), drawn.now);
  if (!checked) return std::unexpected(refused(checked.error()));
  return std::move(*checked);
}

int run_reveal(const DrawArguments& given) {
  const auto drawn = open(given);
  if (!drawn) return drawn.error();
  const auto own = commitment_in(given.commitments.front(), *drawn);
  if (!own) return own.error();
  spot_check::Commitment revealed = own->commitment;
  revealed.others.clear();
  for (const auto& path : given.others) {
    const auto other = commitment_in(path, *drawn);
    if (!other) return other.error();
    if (other->party == own->party)
      return refused({path, fmt::format("is of {}, too", own->party), "name the commitments of the other parties"});
    revealed.others.push_back(other->commitment.seed_sha256);
  }
  std::ranges::sort(revealed.others);
  const auto text = signed_text(given, *drawn, std::move(revealed));
  if (!text) return text.error();
  if (const auto problem = files::create_file(given.out, *text, 0644)) return bad_input(*problem);
  std::cout << harmless_page(given.out) << '\n';
  std::cerr << fmt::format("{}: says for which commitments your seed is; hand both over\n", harmless(given.out));
  return files::kExitSuccess;
}

int run_challenge(const DrawArguments& given) {
  if (given.commitments.size() != given.seeds.size()) {
    return bad_input({"--seed",
                      fmt::format("{} seeds for {} commitments", given.seeds.size(), given.commitments.size()),
                      "one --seed for each --commitment, in the same order"});
  }
  std::vector<spot_check::Revealed> revealed;
  for (std::size_t i = 0; i < given.seeds.size(); ++i) {
    const auto commitment = read_deciding_file(given.commitments[i], spot_check::kLargestCommitment);
    if (!commitment) return bad_input(commitment.error());
    const auto seed = read_deciding_file(given.seeds[i], spot_check::kLargestCommitment);
    if (!seed) return bad_input(seed.error());
    revealed.push_back({.where = given.commitments[i], .commitment = *commitment, .seed = *seed});
  }
  const auto drawn = open(given);
  if (!drawn) return drawn.error();
  const auto text = spot_check::challenge_text(revealed, drawn->policy, spot_check::drawn_run(drawn->run), drawn->now);
  if (!text) return refused(text.error());
  if (const auto problem = files::create_file(given.out, *text, 0644)) return bad_input(*problem);
  std::cout << harmless_page(given.out) << '\n';
  return files::kExitSuccess;
}

std::expected<spot_check::Challenge, int> challenge_of(const DrawArguments& given, const Drawn& drawn) {
  const auto text = read_deciding_file(given.challenge, spot_check::kLargestChallenge);
  if (!text) return std::unexpected(bad_input(text.error()));
  auto challenge =
      spot_check::read_challenge(*text, given.challenge, drawn.policy, spot_check::drawn_run(drawn.run), drawn.now);
  if (!challenge) return std::unexpected(refused(challenge.error()));
  return std::move(*challenge);
}

int run_draw_plan(const DrawArguments& given) {
  const auto drawn = open(given);
  if (!drawn) return drawn.error();
  const auto challenge = challenge_of(given, *drawn);
  if (!challenge) return challenge.error();
  const auto& content = drawn->run.content;
  const auto cells = spot_check::draw_cells(content.run.plan, content.verdict, challenge->seed, challenge->cells);
  const auto plan = spot_check::drawn_plan(content.run.plan, cells, challenge->seed);
  if (!plan) return refused(plan.error());
  if (const auto problem = files::create_file(given.out, plan::plan_text(*plan), 0644)) return bad_input(*problem);
  for (const auto& cell : cells)
    std::cout << fmt::format("{} of {} {}\n", harmless(cell.requirement), cell.subject.kind, harmless(cell.subject.id));
  if (cells.size() < challenge->cells)
    std::cerr << fmt::format("only {} cells have a figure that was judged\n", cells.size());
  std::cout << harmless_page(given.out) << '\n';
  return files::kExitSuccess;
}

int run_check(const DrawArguments& given) {
  const auto drawn = open(given);
  if (!drawn) return drawn.error();
  const auto challenge = challenge_of(given, *drawn);
  if (!challenge) return challenge.error();
  const auto repeat = open_dossier(given.repeat, drawn->policy, drawn->now);
  if (!repeat) return repeat.error();
  const auto repeats =
      spot_check::check_repeats(drawn->run, *repeat, *challenge,
                                {.alpha = given.alpha, .smallest_change = given.smallest_change / 100}, drawn->now);
  if (!repeats) return refused(repeats.error());
  std::cout << harmless_page(given.json ? spot_check::repeats_json(*repeats, *challenge)
                                        : spot_check::repeats_table(*repeats));
  using enum spot_check::Repetition;
  switch (repeats->repetition) {
    case repeated:
      return files::kExitSuccess;
    case contradicted:
      return judge::exit_code(judge::Overall::rejected);
    case open:
      break;
  }
  return judge::exit_code(judge::Overall::incomplete);
}

Command& add(Command& parent, const char* name, const char* what, DrawArguments& given) {
  auto& command = parent.add_command(name, what);
  add_option(command, "dossier", given.dossier, "DIR", "folder of the dossier whose cells are drawn")->required();
  add_option(command, "--policy", given.policy, "FILE", "trust policy that names the parties")->required();
  return command;
}

void add_challenge_option(Command& command, DrawArguments& given) {
  add_option(command, "--challenge", given.challenge, "FILE",
             "what `draw challenge` wrote; make your own, from what you hold")
      ->required();
}

void add_check(Command& parent, DrawArguments& given, Action& action) {
  auto& check = add(parent, "check", "hold the repeats against the dossier", given);
  add_option(check, "repeat", given.repeat, "DIR", "folder of the dossier of the repeats")->required();
  add_challenge_option(check, given);
  check.add_option("--alpha", given.alpha, "probability at most to contradict an honest dossier by chance")
      ->with_default()
      ->between(1e-6, 0.5);
  check.add_option("--smallest-change", given.smallest_change, "percent: a smaller change contradicts nothing")
      ->with_default()
      ->between(0.0, 100.0);
  check.add_flag("--json", given.json, "print JSON, assay.draw-check/1");
  end_command(check,
              "Exit codes: 0 repeated, 1 contradicted, 3 open.\n"
              "Example: assay draw check run/dossier repeat/dossier --challenge draw.json --policy trust.json",
              action, [&] { return run_check(given); });
}

void add_reveal(Command& parent, DrawArguments& given, Action& action) {
  auto& reveal = add(parent, "reveal", "sign for which commitments of the others your seed is given away", given);
  add_signer_options(reveal, given.signer, " of the party")->required();
  add_option(reveal, "--commitment", given.commitments, "FILE", "your own")->required()->once();
  add_repeated(reveal, "--other", given.others, "FILE", "the commitment of another party; may be repeated")->required();
  add_option(reveal, "--out", given.out, "FILE", "file to write; hand it over together with the seed")->required();
  end_command(reveal,
              "Example: assay draw reveal run/dossier --key buyer.key --policy trust.json --commitment buyer.commit\n"
              "           --other vendor.commit --out buyer.reveal",
              action, [&] { return run_reveal(given); });
}

}  // namespace

void add_draw_command(Command& app, DrawArguments& given, Action& action) {
  auto& parent = app.add_command("draw", "draw cells of a dossier by seeds of two parties, and check their repeats");
  parent.need_commands(1, 1);
  auto& commit = add(parent, "commit", "make a seed, and sign its digest before the other seeds are known", given);
  add_signer_options(commit, given.signer, " of a party")->required();
  commit.add_option("--cells", given.cells, "how many cells are drawn; all parties commit to the same number")
      ->required()
      ->between(std::size_t{1}, spot_check::kMostCells);
  add_option(commit, "--out", given.out, "FILE", "file to write; the seed goes to FILE.seed")->required();
  end_command(commit,
              "Example: assay draw commit run/dossier --key buyer.key --policy trust.json --cells 8 --out buyer.commit",
              action, [&] { return run_commit(given); });
  add_reveal(parent, given, action);
  auto& challenge = add(parent, "challenge", "draw the cells from what all parties revealed, and their seeds", given);
  add_repeated(challenge, "--commitment", given.commitments, "FILE",
               "what `draw reveal` of each party wrote; may be repeated")
      ->required();
  add_repeated(challenge, "--seed", given.seeds, "FILE", "of each party, in the order of --commitment")->required();
  add_option(challenge, "--out", given.out, "FILE", "file to write")->required();
  end_command(challenge,
              "Example: assay draw challenge run/dossier --policy trust.json --commitment buyer.reveal --seed "
              "buyer.commit.seed\n"
              "           --commitment vendor.reveal --seed vendor.commit.seed --out draw.json",
              action, [&] { return run_challenge(given); });
  auto& plan = add(parent, "plan", "write the plan that measures the drawn cells again", given);
  add_challenge_option(plan, given);
  add_option(plan, "--out", given.out, "FILE", "file to write")->required();
  end_command(plan, "Example: assay draw plan run/dossier --challenge draw.json --policy trust.json --out plan.json",
              action, [&] { return run_draw_plan(given); });
  add_check(parent, given, action);
}

}  // namespace assay::report_cli
