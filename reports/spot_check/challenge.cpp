// challenge: commitments, the seeds that they hid, an unpredictable order of cells, and a plan of the first of them.
#include "reports/spot_check/challenge.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "orchestrator/files/digest.h"
#include "probes/core/json_io.h"

namespace assay::spot_check {
namespace {

using nlohmann::json;

constexpr const char* kSchema = "assay.draw/2";

/// A commitment that was checked, and its part of the challenge.
struct Part {
  CheckedCommitment checked;
  std::string envelope, seed;
};

std::string trimmed(std::string_view text) {
  constexpr std::string_view kWhite = " \t\r\n";
  const auto first = text.find_first_not_of(kWhite);
  if (first == std::string_view::npos) return "";
  return std::string(text.substr(first, text.find_last_not_of(kWhite) - first + 1));
}

std::expected<Part, InputError> part_of(const Revealed& revealed, const dossier::TrustPolicy& policy,
                                        const DrawnRun& run, dossier::Moment now) {
  Part part{.envelope = trimmed(revealed.commitment), .seed = trimmed(revealed.seed)};
  auto checked = check_commitment(part.envelope, revealed.where, policy, run, now);
  if (!checked) return std::unexpected(checked.error());
  part.checked = std::move(*checked);
  if (!files::is_sha256(part.seed) || files::sha256(part.seed) != part.checked.commitment.seed_sha256) {
    return std::unexpected(
        InputError{revealed.where + ": rule draw_seed",
                   fmt::format("{} of {} committed to another seed", part.checked.signer, part.checked.party),
                   "the seed is the one that `assay draw commit` wrote beside this commitment"});
  }
  return part;
}

/// Whether `part` was given away by a party that held exactly the commitments of the others.
std::optional<InputError> check_others(const std::vector<Part>& parts, const Part& part, const std::string& where) {
  const auto& one = part.checked;
  std::vector<std::string> held = one.commitment.others;
  const auto refuse = [&](const std::string& what, const char* hint) {
    return InputError{where + ": rule draw_others", fmt::format("{} of {} {}", one.signer, one.party, what), hint};
  };
  if (held.empty())
    return refuse("does not say for which commitments the seed was given away",
                  "`assay draw reveal` says it, when all commitments are out");
  for (const auto& other : parts) {
    if (&other == &part) continue;
    if (std::erase(held, other.checked.commitment.seed_sha256) == 1) continue;
    return refuse(fmt::format("gave the seed away for another commitment of {} than this one, of {}",
                              other.checked.party, other.checked.commitment.issued_at),
                  "a party that commits again after it saw a seed chooses the cells: hold it to its first commitment");
  }
  if (held.empty()) return std::nullopt;
  return refuse("gave the seed away for more commitments than these", "name the commitments of all parties");
}

std::optional<InputError> check_parties(const std::vector<Part>& parts, const std::string& where) {
  if (parts.size() < kLeastParties || parts.size() > kMostParties) {
    return InputError{where + ": rule draw_parties",
                      fmt::format("{} commitments, not {} to {}", parts.size(), kLeastParties, kMostParties),
                      "one party alone could choose the cells"};
  }
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto& one = parts[i].checked;
    for (std::size_t j = 0; j < i; ++j) {
      if (parts[j].checked.party == one.party)
        return InputError{where + ": rule draw_parties", fmt::format("two commitments are of {}", one.party),
                          "one of each party: who has both seeds chooses the cells"};
    }
    if (one.commitment.cells != parts.front().checked.commitment.cells) {
      return InputError{where + ": rule draw_cells",
                        fmt::format("{} commits to {} cells, {} to {}", parts.front().checked.party,
                                    parts.front().checked.commitment.cells, one.party, one.commitment.cells),
                        "agree on --cells, and commit again"};
    }
  }
  for (const auto& part : parts)
    if (auto problem = check_others(parts, part, where)) return problem;
  return std::nullopt;
}

/// The challenge of all parts, in their order. Its seed follows from the verdict and the seeds alone, fixed before any
/// seed was known: a party could try many values of anything that it signs later, such as the time.
std::expected<Challenge, InputError> challenge_of(std::vector<Part>& parts, const std::string& where) {
  if (auto problem = check_parties(parts, where)) return std::unexpected(*problem);
  std::ranges::sort(parts, {}, [](const Part& part) { return part.checked.commitment.seed_sha256; });
  Challenge challenge{.cells = parts.front().checked.commitment.cells, .seed = ""};
  std::string all = fmt::format("{}\n{}\n", kSchema, parts.front().checked.commitment.run.verdict_sha256);
  for (const auto& part : parts) {
    all += part.seed + "\n";
    challenge.parties.push_back(part.checked);
  }
  challenge.seed = files::sha256(all);
  return challenge;
}

std::string text_of(const std::vector<Part>& parts, const Challenge& challenge) {
  json parties = json::array();
  for (const auto& part : parts) parties.push_back({{"commitment", part.envelope}, {"seed", part.seed}});
  return json{{"schema", kSchema}, {"parties", std::move(parties)}, {"seed", challenge.seed}}.dump(1) + "\n";
}

}  // namespace

std::expected<std::string, InputError> challenge_text(const std::vector<Revealed>& revealed,
                                                      const dossier::TrustPolicy& policy, const DrawnRun& run,
                                                      dossier::Moment now) {
  std::vector<Part> parts;
  for (const auto& one : revealed) {
    auto part = part_of(one, policy, run, now);
    if (!part) return std::unexpected(part.error());
    parts.push_back(std::move(*part));
  }
  const auto challenge = challenge_of(parts, "--commitment");
  if (!challenge) return std::unexpected(challenge.error());
  return text_of(parts, *challenge);
}

std::expected<Challenge, InputError> read_challenge(std::string_view text, const std::string& where,
                                                    const dossier::TrustPolicy& policy, const DrawnRun& run,
                                                    dossier::Moment now) {
  const auto document = parse_json(text, where, {.max_bytes = kLargestChallenge});
  if (!document) return std::unexpected(document.error());
  const std::string hint = "`assay draw challenge` writes it from the commitments and seeds of the parties";
  std::vector<Revealed> revealed;
  try {
    if (document->at("schema") != kSchema)
      return std::unexpected(InputError{where, fmt::format("is not an {}", kSchema), hint});
    for (const auto& party : document->at("parties")) {
      revealed.push_back({.where = fmt::format("{}: parties[{}]", where, revealed.size()),
                          .commitment = party.at("commitment"),
                          .seed = party.at("seed")});
      if (revealed.size() > kMostParties) break;  // refused below, before anything of it is checked
    }
  } catch (const json::exception& error) {
    return std::unexpected(InputError{where, error.what(), hint});
  }
  std::vector<Part> parts;
  for (const auto& one : revealed) {
    auto part = part_of(one, policy, run, now);
    if (!part) return std::unexpected(part.error());
    parts.push_back(std::move(*part));
  }
  auto challenge = challenge_of(parts, where);
  if (!challenge) return challenge;
  if (text_of(parts, *challenge) != text)
    return std::unexpected(InputError{where, "is not byte for byte what follows from its commitments and seeds", hint});
  return challenge;
}

bool is_judged(const judge::Result& result) {
  using enum judge::Outcome;
  return !result.each.empty() && (result.outcome == pass || result.outcome == conditional_pass ||
                                  result.outcome == conditional_fail || result.outcome == fail);
}

std::vector<plan::DrawnCell> draw_cells(const plan::Plan& plan, const judge::Verdict& verdict, const std::string& seed,
                                        std::size_t count) {
  std::set<std::pair<std::string_view, std::string_view>> judged;
  for (const auto& result : verdict.results) {
    if (is_judged(result)) judged.emplace(result.requirement, result.step);
  }
  std::vector<std::pair<std::string, plan::DrawnCell>> order;
  for (const auto& cell : plan.coverage) {
    if (cell.step.empty() || !judged.contains({cell.requirement, cell.step})) continue;
    if (!plan.requirement(cell.requirement)->during.empty()) continue;
    order.emplace_back(
        files::sha256(fmt::format("{}\n{}\n{}\n{}\n", seed, cell.requirement, cell.subject.kind, cell.subject.id)),
        plan::DrawnCell{.requirement = cell.requirement, .subject = cell.subject});
  }
  std::ranges::sort(order, {}, &std::pair<std::string, plan::DrawnCell>::first);
  std::vector<plan::DrawnCell> drawn;
  for (std::size_t i = 0; i < std::min(count, order.size()); ++i) drawn.push_back(std::move(order[i].second));
  return drawn;
}

std::expected<plan::Plan, InputError> drawn_plan(const plan::Plan& plan, const std::vector<plan::DrawnCell>& cells,
                                                 const std::string& seed) {
  if (cells.empty())
    return std::unexpected(InputError{"draw", "no cell of this dossier has a figure that was judged", ""});
  std::vector<plan::Program> programs;
  for (const auto& [name, probe] : plan.probes) programs.push_back(plan::program_of(name, probe));
  std::vector<std::string> only;
  for (const auto& cell : cells) {
    if (std::ranges::find(only, cell.requirement) == only.end()) only.push_back(cell.requirement);
  }
  return plan::make_plan(plan.profile, plan.site, programs,
                         {.quick = plan.quick,
                          .only = std::move(only),
                          .localise = false,
                          .challenge = seed,
                          .allow_settings = plan.allow_settings,
                          .drawn = cells});
}

}  // namespace assay::spot_check
