// searches_shown: turns records of tests into shares of limits, and the findings of a search into words.
#include <algorithm>

#include <fmt/format.h>

#include "orchestrator/judge/cells/judge.h"
#include "orchestrator/judge/locate/search_record.h"

namespace assay::judge {
namespace {

constexpr double kMostShare = 1e6;  // of an upper limit whose value is 0, and beyond anything that is measured

MadeTest made_test(const Tested& tested, std::string id) {
  return {.id = std::move(id),
          .purpose = tested.test.purpose,
          .outcome = tested.outcome,
          .nodes = tested.test.nodes.size(),
          .share = tested.share,
          .control = tested.control};
}

}  // namespace

double share_of(const Result& result) {
  double share = kMostShare;
  if (result.limit_low)
    share = *result.limit_low > 0 ? *result.value / *result.limit_low : *result.value >= *result.limit_low ? 1 : 0;
  if (result.limit_high) {
    const bool meets = *result.value <= *result.limit_high;
    const double one = *result.limit_high > 0 && *result.value > 0 ? *result.limit_high / *result.value : meets ? 1 : 0;
    share = std::min(share, one);
  }
  return std::clamp(share, 0.0, kMostShare);
}

std::string listed(const std::vector<std::string>& names) {
  constexpr std::size_t kMost = 8;
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), kMost); ++i) text += (i == 0 ? "" : ", ") + names[i];
  return names.size() > kMost ? fmt::format("{} and {} more", text, names.size() - kMost) : text;
}

std::optional<TestShown> Searches::shown(const ExtraTest& test, const Journal& part,
                                         const EvidenceReader& evidence) const {
  const auto ended = std::ranges::find_if(
      part.attempts, [](const Attempt& attempt) { return attempt.outcome != AttemptOutcome::interrupted; });
  if (ended == part.attempts.end()) return std::nullopt;
  const auto inquiry =
      std::ranges::find_if(inquiries_, [&](const auto& one) { return test.step.id.starts_with(one->step->id + ".t"); });
  return shown_by(**inquiry, test.step, *ended, part, evidence);
}

TestShown Searches::shown_by(const SearchRecord& inquiry, const plan::Step& step, const Attempt& attempt,
                             const Journal& part, const EvidenceReader& evidence) const {
  std::vector<plan::Cell> cells;
  for (const auto& promise : inquiry.promises)
    cells.push_back({.requirement = promise.requirement->id, .subject = {"group", step.id}, .step = step.id});
  TestShown shown;
  shown.reading.shares.assign(inquiry.promises.size(), kMostShare);
  const auto results = judge_step(plan_, step, cells, part, evidence);
  for (Result result : results) {
    const auto promise = std::ranges::find_if(
        inquiry.promises, [&](const Promise& one) { return one.requirement->id == result.requirement; });
    if (promise->requirement->is_of_others()) {
      // A sum over nodes is promised in proportion to them.
      const double part_of_nodes =
          promise->requirement->limit.reference == plan::Reference::smallest_group_by_nodes
              ? static_cast<double>(step.nodes.size()) / static_cast<double>(inquiry.step->nodes.size())
              : 1;
      const auto scaled = [&](std::optional<double> limit) {
        return limit ? std::optional(*limit * part_of_nodes) : std::nullopt;
      };
      result.limit_low = scaled(promise->fleet_low);
      result.limit_high = scaled(promise->fleet_high);
    }
    if (!result.value || (!result.limit_low && !result.limit_high)) {
      shown.reading.broken = true;
      shown.unusable =
          shown.unusable || (attempt.outcome == AttemptOutcome::exited && result.outcome == Outcome::not_measured);
      shown.reason = result.reason;
      continue;
    }
    double& share = shown.reading.shares[static_cast<std::size_t>(promise - inquiry.promises.begin())];
    share = std::min(share, share_of(result));
  }
  if (results.empty()) shown.reading.broken = true;
  if (shown.reading.broken) shown.reading.shares.clear();
  return shown;
}

/// The figure of each attempt of the step: the scatter of alike runs, and whether the shortfall is in all.
void Searches::take_attempts(SearchRecord& inquiry, const Journal& journal, const EvidenceReader& evidence) const {
  plan::Step once = *inquiry.step;
  once.attempts = 1;
  once.more_attempts = 0;
  for (const auto& attempt : journal.attempts.of(once.id)) {
    if (attempt.outcome == AttemptOutcome::interrupted) continue;
    Journal part;
    part.simulated = journal.simulated;
    part.attempts.push_back(attempt);
    for (const auto& node : once.nodes) {
      if (const auto facts = journal.node_facts.find(node); facts != journal.node_facts.end())
        part.node_facts.insert(*facts);
    }
    inquiry.attempts.push_back(shown_by(inquiry, once, attempt, part, evidence).reading);
  }
}

/// The culprits, and how far the search came.
void Searches::tell_finding(const SearchRecord& inquiry, Localised& found) const {
  const Finding finding = inquiry.localiser->finding();
  const auto id_of = [&](std::size_t number) {
    return fmt::format("{}.t{:03}", inquiry.step->id, number + inquiry.offset);
  };
  for (const auto& tested : finding.tests) found.tests.push_back(made_test(tested, id_of(tested.test.number)));
  for (const auto& suspect : finding.suspects) {
    Culprit culprit{.fault = suspect.fault,
                    .leaf = suspect.leaf,
                    .unsteady = suspect.unsteady,
                    .words = suspect_words(suspect, inquiry.peers)};
    for (const std::size_t node : suspect.nodes) culprit.nodes.push_back(inquiry.peers[node].name);
    for (const std::size_t number : suspect.tests) culprit.tests.push_back(id_of(number));
    found.culprits.push_back(std::move(culprit));
  }
  const auto tests = fmt::format("{} extra tests of at most {}", found.tests.size(), found.budget);
  if (!found.culprits.empty()) {
    found.state = SearchState::found;
    found.reason = fmt::format("Located by {}{}.", tests,
                               finding.complete ? ", and the others met the limit together"
                               : finding.alike
                                   ? "; the others miss the limit together, and groups of one size are alike among them"
                                   : "; not all of the others were shown to be good");
  } else if (finding.alike) {
    found.state = SearchState::common_cause;
    found.reason = fmt::format(
        "Common cause: in {} all groups of one size are alike, and together they miss the limit; no node is accused. "
        "Check what all nodes share: configuration, versions, power limit, the fabric as a whole, the limit.",
        tests);
  } else {
    found.state = finding.complete ? SearchState::clear : SearchState::undecided;
    found.reason = finding.complete
                       ? fmt::format("All nodes met the limit together in {}: the shortfall did not recur.", tests)
                       : fmt::format("{} did not locate the fault.", tests);
  }
  if (found.state == SearchState::common_cause) return;
  for (const std::size_t node : finding.undecided) found.undecided.push_back(inquiry.peers[node].name);
}

/// The nodes of the group that falls out and not of the one before it.
std::vector<std::string> Searches::last_nodes(const SearchRecord& inquiry) {
  const auto at = [&](std::size_t i) { return inquiry.step->nodes.begin() + static_cast<std::ptrdiff_t>(i); };
  return {at(inquiry.knee->kept()), at(inquiry.knee->lost())};
}

/// Between which numbers of nodes a figure falls out, and whose that is.
void Searches::tell_knee(const SearchRecord& inquiry, Localised& found) const {
  const KneeSearch& knee = *inquiry.knee;
  for (const auto& tested : knee.tests())
    found.tests.push_back(made_test(tested, fmt::format("{}.t{:03}", inquiry.step->id, tested.test.number)));
  const std::string range = fmt::format("{} nodes keep the figure and {} do not, by {} extra tests of at most {}",
                                        knee.kept(), knee.lost(), found.tests.size(), found.budget);
  const auto last = last_nodes(inquiry);
  if (knee.cause() == FallCause::count) {
    found.state = SearchState::common_cause;
    found.reason =
        fmt::format("Knee: {}. It is of the number of nodes: the last ones ({}) are no worse than the others.", range,
                    listed(last));
  } else if (knee.cause() == FallCause::nodes && last.size() == 1) {
    found.state = SearchState::found;
    found.reason =
        fmt::format("No knee: {}, and as many nodes as keep it do not either with {} among them.", range, last.front());
    Culprit culprit{.fault = Fault::node,
                    .nodes = last,
                    .words = suspect_words({.fault = Fault::node, .nodes = {knee.kept()}}, inquiry.peers)};
    for (const auto& test : found.tests) {
      if (test.control && test.outcome == TestOutcome::short_of_limit) culprit.tests.push_back(test.id);
    }
    found.culprits.push_back(std::move(culprit));
  } else {
    found.reason =
        fmt::format("The knee is open: {}; {}.", range,
                    knee.cause() == FallCause::nodes ? "the fall goes with nodes among the last ones"
                                                     : "whether the number or the last nodes matter is not shown");
    found.undecided = last;
  }
}

Localised Searches::found_by(const SearchRecord& inquiry) const {
  Localised found{.step = inquiry.step->id,
                  .rail = inquiry.step->rail,
                  .state = SearchState::undecided,
                  .budget = inquiry.allowed(),
                  .excluded = inquiry.excluded};
  for (const auto& promise : inquiry.promises) found.requirements.push_back(promise.requirement->id);
  if (inquiry.first) found.tests.push_back(*inquiry.first);
  if (inquiry.localiser) tell_finding(inquiry, found);
  if (inquiry.knee) tell_knee(inquiry, found);
  if (inquiry.clear) {
    found.state = SearchState::clear;
    found.reason = fmt::format("Without {} (already known to be faulty) the others meet the limit together.",
                               listed(inquiry.excluded));
  } else if (!inquiry.begun || !inquiry.ended) {
    found.state = SearchState::open;
    found.reason = inquiry.begun ? fmt::format("The search did not finish: {} extra tests of at most {} were made.",
                                               found.tests.size(), found.budget)
                                 : "An earlier search of the same nodes did not finish.";
  } else if (!inquiry.stopped.empty()) {
    found.state = SearchState::not_searched;
    found.reason = fmt::format("No search: {}.", inquiry.stopped);
  }
  return found;
}

}  // namespace assay::judge
