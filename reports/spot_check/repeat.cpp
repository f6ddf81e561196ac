// repeat: the same exact test that compares two runs, over the attempts of drawn cells; its result for people and for
// programs.
#include "reports/spot_check/repeat.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "orchestrator/judge/evidence/evidence.h"
#include "orchestrator/judge/overall/advice.h"
#include "probes/core/json_io.h"
#include "probes/core/scale.h"
#include "probes/core/text.h"
#include "probes/core/utc_time.h"
#include "reports/compare/shown.h"

namespace assay::spot_check {
namespace {

constexpr double kConfidence = 0.95;  // of the intervals that are shown

/// Requirement, node and subject: nodes have devices of one name.
using Key = std::tuple<std::string_view, std::string_view, Subject>;

Key key_of(const judge::Result& result) { return {result.requirement, result.node, result.subject}; }

std::map<Key, const judge::Result*> by_cell(const judge::Verdict& verdict) {
  std::map<Key, const judge::Result*> all;
  for (const auto& result : verdict.results) all[key_of(result)] = &result;
  return all;
}

/// Why the figures of a cell cannot be tested; empty if they can. The limit's reference may be missing in the repeat,
/// which leaves its cell open; its figures were measured all the same, unless a condition was not met.
std::string why_open(const judge::Result* repeat) {
  if (repeat == nullptr || repeat->each.empty())
    return repeat == nullptr ? "not measured again" : "not measured again: " + repeat->reason;
  for (const auto& condition : repeat->conditions) {
    if (!condition.met) return fmt::format("{} was not {}", condition.name, condition.demanded);
  }
  return "";
}

RepeatedCell repeated_cell(const plan::Requirement& requirement, const judge::Result& dossier,
                           const judge::Result* repeat) {
  using enum judge::Outcome;
  RepeatedCell cell{.dossier = &dossier, .repeat = repeat, .open = why_open(repeat)};
  if (!cell.open.empty()) return cell;
  if (dossier.value && repeat->value && *dossier.value > 0 && *repeat->value > 0)
    cell.change = *repeat->value / *dossier.value - 1;
  cell.fails_now = (dossier.outcome == pass || dossier.outcome == conditional_pass) && repeat->outcome == fail &&
                   !plan::is_relative(requirement.limit.reference);
  return cell;
}

/// The figures of a cell as ratios of which more is better; nothing if one of them is not above 0.
std::optional<compare::Stratum> towards_better(const RepeatedCell& cell, int better) {
  compare::Stratum stratum{.a = cell.dossier->each, .b = cell.repeat->each};
  for (auto* side : {&stratum.a, &stratum.b}) {
    for (auto& figure : *side) {
      if (!(figure > 0)) return std::nullopt;
      if (better < 0) figure = 1 / figure;
    }
  }
  return stratum;
}

/// The results of the dossier's cells that were drawn, in the order of its verdict.
std::vector<RepeatedRequirement> drawn_results(const dossier::OpenedRun& dossier, const dossier::OpenedRun& repeat,
                                               const std::vector<plan::DrawnCell>& drawn) {
  const auto& plan = dossier.content.run.plan;
  std::set<std::pair<std::string_view, std::string_view>> steps;
  for (const auto& cell : plan.coverage) {
    if (std::ranges::find(drawn, plan::DrawnCell{cell.requirement, cell.subject}) != drawn.end())
      steps.emplace(cell.requirement, cell.step);
  }
  const auto repeated = by_cell(repeat.content.verdict);
  std::vector<RepeatedRequirement> all;
  for (const auto& result : dossier.content.verdict.results) {
    if (!is_judged(result) || !steps.contains({result.requirement, result.step})) continue;
    auto found = std::ranges::find(all, result.requirement, &RepeatedRequirement::id);
    if (found == all.end()) {
      all.push_back({.id = result.requirement, .unit = result.unit});
      found = all.end() - 1;
    }
    const auto again = repeated.find(key_of(result));
    found->cells.push_back(repeated_cell(*plan.requirement(result.requirement), result,
                                         again == repeated.end() ? nullptr : again->second));
  }
  return all;
}

/// Tests every requirement, and all together.
void test(const plan::Plan& plan, const compare::Demands& demands, Repeats& repeats) {
  std::vector<compare::Stratum> all;
  std::vector<double> smallest;
  for (auto& requirement : repeats.requirements) {
    const int better = compare::better_side(plan, *plan.requirement(requirement.id));
    std::vector<compare::Stratum> strata;
    for (const auto& cell : requirement.cells) {
      if (!cell.open.empty()) continue;
      strata.push_back({.a = cell.dossier->each, .b = cell.repeat->each});
      if (better == 0) continue;
      if (auto stratum = towards_better(cell, better)) all.push_back(std::move(*stratum));
    }
    if (strata.empty()) continue;
    requirement.test = compare::rank_test(strata, kConfidence);
    smallest.push_back(requirement.test.smallest_p);
  }
  repeats.threshold = compare::tarone_threshold(smallest, demands.alpha / 2);
  repeats.together_threshold = demands.alpha / 2;
  for (auto& requirement : repeats.requirements) {
    if (!requirement.test.shift) continue;
    requirement.finding = compare::finding_of(requirement.test, repeats.threshold, demands.smallest_change,
                                              compare::better_side(plan, *plan.requirement(requirement.id)));
  }
  if (all.empty()) return;
  repeats.together = compare::rank_test(all, kConfidence);
  repeats.together_finding =
      compare::finding_of(repeats.together, repeats.together_threshold, demands.smallest_change, 1);
}

/// Whether some test had figures enough to show a change.
bool could_show(const Repeats& repeats) {
  using enum compare::Finding;
  const auto able = [](compare::Finding finding) { return finding != too_few && finding != not_compared; };
  return able(repeats.together_finding) ||
         std::ranges::any_of(repeats.requirements, [&](const auto& one) { return able(one.finding); });
}

void conclude(Repeats& repeats) {
  std::size_t open = 0, fail = 0, worse = 0;
  for (const auto& requirement : repeats.requirements) {
    worse += requirement.finding == compare::Finding::worse ? 1 : 0;
    for (const auto& cell : requirement.cells) {
      open += cell.open.empty() ? 0 : 1;
      fail += cell.fails_now ? 1 : 0;
    }
  }
  const bool together = repeats.together_finding == compare::Finding::worse;
  if (worse > 0 || fail > 0 || together) {
    repeats.repetition = Repetition::contradicted;
    repeats.reason =
        fmt::format("{} requirements came out worse than the dossier says, {} cells that passed fail now{}.", worse,
                    fail, together ? ", and all cells together are worse" : "");
  } else if (open > 0) {
    repeats.reason = fmt::format("{} of the drawn cells have no figure to hold against the dossier's.", open);
  } else if (!could_show(repeats)) {
    repeats.reason = "The cells have too few attempts to show any change: draw more of them.";
  } else {
    repeats.repetition = Repetition::repeated;
    repeats.reason = "No drawn cell came out worse than the dossier says.";
  }
}

/// The repeats began when every seed was out: before, the cells could not be known; and they are not of the future.
std::optional<InputError> check_times(const dossier::OpenedRun& repeat, const Challenge& challenge,
                                      dossier::Moment now) {
  const std::chrono::duration<double> skew(judge::kMostClockDifference_s);
  const auto& journal = repeat.content.run.journal;
  const std::string last = std::ranges::max(challenge.parties, {}, [](const CheckedCommitment& one) {
                             return one.commitment.issued_at;
                           }).commitment.issued_at;
  const auto begin = utc_time(journal.begin), end = utc_time(journal.last), revealed = utc_time(last);
  if (begin && end && revealed && *revealed - *begin <= skew && *end - now <= skew) return std::nullopt;
  return InputError{repeat.path + ": rule draw_time",
                    fmt::format("the repeats began {} and ended {}, the last seed was given away {}, and it is {} here",
                                journal.begin, journal.last, last, utc_text(now)),
                    "cells are measured again after they are drawn"};
}

std::string fact_of(const nlohmann::json& facts, const char* name) {
  const auto found = facts.is_object() ? facts.find(name) : facts.end();
  return !facts.is_object() || found == facts.end() ? ""
         : found->is_string()                       ? found->get<std::string>()
                                                    : found->dump();
}

/// Each node of the repeats is the machine that the dossier has under its name.
std::optional<InputError> check_machines(const dossier::OpenedRun& dossier, const dossier::OpenedRun& repeat,
                                         Repeats& repeats) {
  const auto& before = dossier.content.run.journal.node_facts;
  for (const auto& [node, facts] : repeat.content.run.journal.node_facts) {
    const auto refuse = [&](const std::string& what, const std::string& is, const std::string& was) {
      return InputError{repeat.path + ": rule draw_machines",
                        fmt::format("the {} of {} is '{}', in the dossier '{}'", what, node, is, was),
                        "the drawn cells are measured again on the machines of the dossier"};
    };
    const auto known = before.find(node);
    if (known == before.end()) return refuse("name", fact_of(facts, "name"), "");
    for (const char* name : {"name", "machine", "cpu_model", "sockets", "cores", "hypervisor"}) {
      if (fact_of(facts, name) != fact_of(known->second, name))
        return refuse(name, fact_of(facts, name), fact_of(known->second, name));
    }
    const auto serial = repeat.serials.find(node), old_serial = dossier.serials.find(node);
    if (serial == repeat.serials.end() || old_serial == dossier.serials.end()) {
      repeats.unproven.push_back(node);
    } else if (serial->second != old_serial->second) {
      return refuse("serial number", *serial->second.begin(), *old_serial->second.begin());
    }
    const std::string boot = fact_of(facts, "boot_id");
    for (const auto& [other, old_facts] : before) {
      if (other != node && !boot.empty() && fact_of(old_facts, "boot_id") == boot &&
          fact_of(known->second, "boot_id") != boot)
        return refuse("boot", boot, "that of " + other);
    }
    if (boot != fact_of(known->second, "boot_id")) repeats.booted.push_back(node);
  }
  return std::nullopt;
}

using nlohmann::ordered_json;

std::string cell_line(const RepeatedRequirement& requirement, const RepeatedCell& cell) {
  const auto& dossier = *cell.dossier;
  std::string line = fmt::format("  {}: ", harmless(judge::place_of(dossier)));
  if (!cell.open.empty()) return line + fmt::format("open: {}\n", harmless(cell.open));
  line += fmt::format("{} in {} attempts, {} in {}", for_people(*dossier.value, requirement.unit), dossier.each.size(),
                      for_people(*cell.repeat->value, requirement.unit), cell.repeat->each.size());
  if (cell.change) line += fmt::format(" ({:+.1f} %)", *cell.change * 100);
  return line + (cell.fails_now ? ", which FAILS its limit\n" : "\n");
}

std::string test_words(const compare::RankTest& test, compare::Finding finding, const std::string& unit) {
  if (!test.shift) return compare::finding_words(finding);
  return fmt::format("{}, change {} ({}), p {:.2g}", compare::finding_words(finding), compare::shift_words(test, unit),
                     compare::interval_words(test, unit), test.p);
}

ordered_json document_of(const compare::RankTest& test, compare::Finding finding) {
  ordered_json document = {{"finding", word_of(finding)}};
  if (!test.shift) return document;
  document["p"] = test.p;
  document["smallest_p"] = test.smallest_p;
  document[test.ratio ? "ratio" : "difference"] = *test.shift;
  if (test.interval) document["interval"] = {test.interval->low, test.interval->high};
  return document;
}

ordered_json document_of(const RepeatedCell& cell) {
  ordered_json document = {{"subject", {{"kind", cell.dossier->subject.kind}, {"id", cell.dossier->subject.id}}},
                           {"node", cell.dossier->node},
                           {"dossier", {{"outcome", to_string(cell.dossier->outcome)}, {"each", cell.dossier->each}}},
                           {"repeat", nullptr},
                           {"open", cell.open},
                           {"fails_now", cell.fails_now}};
  if (cell.repeat != nullptr)
    document["repeat"] = {{"outcome", to_string(cell.repeat->outcome)}, {"each", cell.repeat->each}};
  return document;
}

}  // namespace

std::expected<Repeats, InputError> check_repeats(const dossier::OpenedRun& dossier, const dossier::OpenedRun& repeat,
                                                 const Challenge& challenge, const compare::Demands& demands,
                                                 dossier::Moment now) {
  const auto& again = repeat.content.run;
  if (again.journal.run_id == dossier.content.run.journal.run_id)
    return std::unexpected(InputError{repeat.path, "is the run of the dossier itself", "run the plan of the draw"});
  const auto drawn = draw_cells(dossier.content.run.plan, dossier.content.verdict, challenge.seed, challenge.cells);
  auto plan = drawn_plan(dossier.content.run.plan, drawn, challenge.seed);
  if (!plan) return std::unexpected(plan.error());
  plan->assay_version = again.plan.assay_version;
  if (plan::plan_text(*plan) != plan::plan_text(again.plan)) {
    return std::unexpected(InputError{repeat.path, "is not of the plan that follows from dossier and challenge",
                                      "`assay draw plan` writes it; run it as it is"});
  }
  if (!again.journal.finished)
    return std::unexpected(InputError{repeat.path, "did not come to its end", "finish it: assay run --resume"});
  Repeats repeats{.drawn = drawn.size(), .requirements = drawn_results(dossier, repeat, drawn)};
  if (auto problem = check_times(repeat, challenge, now)) return std::unexpected(*problem);
  if (auto problem = check_machines(dossier, repeat, repeats)) return std::unexpected(*problem);
  test(dossier.content.run.plan, demands, repeats);
  conclude(repeats);
  return repeats;
}

std::string repeats_table(const Repeats& repeats) {
  std::string text;
  for (const auto& requirement : repeats.requirements) {
    text += fmt::format("{}: {}\n", harmless(requirement.id),
                        test_words(requirement.test, requirement.finding, requirement.unit));
    for (const auto& cell : requirement.cells) text += cell_line(requirement, cell);
  }
  text += fmt::format("all cells together, more is better: {}\n",
                      test_words(repeats.together, repeats.together_finding, "1"));
  const auto named = [&](const char* what, const std::vector<std::string>& nodes) {
    if (!nodes.empty()) text += harmless(fmt::format("{}: {}", what, fmt::join(nodes, ", "))) + "\n";
  };
  named("booted since the dossier", repeats.booted);
  named("without a serial number in one of the runs", repeats.unproven);
  return text + fmt::format("{}: {} cells drawn. {}\n", word_of(repeats.repetition), repeats.drawn, repeats.reason);
}

std::string repeats_json(const Repeats& repeats, const Challenge& challenge) {
  ordered_json parties = ordered_json::array();
  for (const auto& one : challenge.parties)
    parties.push_back({{"role", one.commitment.role},
                       {"party", one.party},
                       {"signer", one.signer},
                       {"key", one.commitment.key_fingerprint},
                       {"committed_at", one.commitment.issued_at}});
  ordered_json requirements = ordered_json::array();
  for (const auto& requirement : repeats.requirements) {
    ordered_json cells = ordered_json::array();
    for (const auto& cell : requirement.cells) cells.push_back(document_of(cell));
    requirements.push_back({{"requirement", requirement.id},
                            {"unit", requirement.unit},
                            {"test", document_of(requirement.test, requirement.finding)},
                            {"cells", std::move(cells)}});
  }
  const ordered_json document = {{"schema", "assay.draw-check/1"},
                                 {"outcome", word_of(repeats.repetition)},
                                 {"reason", repeats.reason},
                                 {"seed", challenge.seed},
                                 {"parties", std::move(parties)},
                                 {"drawn", repeats.drawn},
                                 {"booted", repeats.booted},
                                 {"no_serial", repeats.unproven},
                                 {"threshold", repeats.threshold},
                                 {"together_threshold", repeats.together_threshold},
                                 {"together", document_of(repeats.together, repeats.together_finding)},
                                 {"requirements", std::move(requirements)}};
  return document.dump(1, ' ', true, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace assay::spot_check
