// searches: from results to searches, from searches to tests, and from their outcomes to names.
#include "orchestrator/judge/searches.h"

#include <algorithm>
#include <stdexcept>
#include <string_view>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "orchestrator/judge/judge.h"
#include "orchestrator/judge/pairs.h"
#include "orchestrator/site/planes.h"

namespace assay::judge {
namespace {

constexpr const char* kWithoutTheKnown = "everything without those known";

bool is_bad(const Result& result) {
  return result.outcome == Outcome::fail || result.outcome == Outcome::conditional_fail ||
         result.outcome == Outcome::error;
}

std::string listed(const std::vector<std::string>& names) {
  constexpr std::size_t kMost = 8;
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), kMost); ++i) text += (i == 0 ? "" : ", ") + names[i];
  return names.size() > kMost ? fmt::format("{} and {} more", text, names.size() - kMost) : text;
}

}  // namespace

/// The limits that a test is held against: those of the step that fell short where they refer to other steps, its own
/// otherwise.
struct Searches::Promise {
  const plan::Requirement* requirement = nullptr;
  std::optional<double> fleet_low, fleet_high;
};

/// One search, and the tests that it made.
struct Searches::Inquiry {
  const plan::PlannedSearch* planned = nullptr;
  const plan::Step* step = nullptr;
  std::vector<Promise> promises;
  std::vector<const Inquiry*> after;  ///< searches of the same nodes that come first
  std::vector<std::string> excluded;
  std::vector<Peer> peers;
  std::unique_ptr<Localiser> localiser;  ///< nothing while the first test, without those known, is open
  std::size_t offset = 0;                ///< of the localiser's numbers: the first test is not one of its own
  std::vector<ExtraTest> round;
  std::map<std::string, TestShown> shown;  ///< of this round
  std::vector<MadeTest> made;
  bool begun = false, ended = false, clear = false;
  std::string stopped;  ///< why it goes no further, when it is not that it found out
};

std::set<std::string> bad_alone(const plan::Plan& plan, const std::vector<Result>& results) {
  std::set<std::string> nodes;
  for (const auto& node : plan.site.nodes) nodes.insert(node.name);
  std::set<std::string> bad;
  for (const auto& result : results) {
    const auto& kind = result.subject.kind;
    if (plan::is_together(kind)) continue;
    const bool silent = result.outcome == Outcome::not_measured && !result.step.empty();
    if ((is_bad(result) || silent) && nodes.contains(result.node)) bad.insert(result.node);
  }
  return bad;
}

bool misses_limit(const Result& result) {
  if (!result.value) return false;
  return (result.limit_low && *result.value < *result.limit_low) ||
         (result.limit_high && *result.value > *result.limit_high);
}

Searches::Searches(const plan::Plan& plan, const std::vector<Result>& results, const Journal& journal)
    : plan_(plan), known_(plan.searches.empty() ? std::set<std::string>{} : bad_alone(plan, results)) {
  if (plan.searches.empty()) return;
  for (const auto& node : plan.site.nodes) nodes_.emplace(node.name, &node);
  for (const auto& pairs : localise_pairs(plan, results)) {
    for (const auto& culprit : pairs.culprits) {
      if (culprit.fault == Fault::node) known_.insert(culprit.nodes.begin(), culprit.nodes.end());
    }
  }
  std::unordered_map<std::string_view, const plan::Step*> steps;
  for (const auto& step : plan.steps) steps.emplace(step.id, &step);
  std::unordered_map<std::string_view, std::vector<const Result*>> results_of;
  for (const auto& result : results) results_of[result.step].push_back(&result);
  std::unordered_map<std::string_view, AttemptOutcome> ended_as;
  for (const auto& attempt : journal.attempts) {
    if (attempt.outcome != AttemptOutcome::interrupted) ended_as[attempt.step] = attempt.outcome;
  }
  std::map<std::string_view, const Inquiry*> last_of_node;
  for (const auto& planned : plan.searches) {
    auto inquiry = std::make_unique<Inquiry>();
    inquiry->planned = &planned;
    inquiry->step = steps.at(planned.step);
    // Nobody is named by a step that was killed at its deadline: all of its ranks waited.
    const auto ended = ended_as.find(planned.step);
    const bool hung = ended != ended_as.end() && ended->second == AttemptOutcome::deadline;
    for (const Result* result : results_of[planned.step]) {
      if (std::ranges::find(planned.requirements, result->requirement) == planned.requirements.end()) continue;
      const plan::Requirement* requirement = plan.requirement(result->requirement);
      const bool of_fleet = plan::is_of_others(requirement->limit.reference);
      if (!misses_limit(*result) && (!hung || of_fleet)) continue;
      // One for all subjects of a step: what others give as a limit is the same for each.
      if (std::ranges::find(inquiry->promises, requirement, &Promise::requirement) != inquiry->promises.end()) continue;
      inquiry->promises.push_back({.requirement = requirement,
                                   .fleet_low = of_fleet ? result->limit_low : std::nullopt,
                                   .fleet_high = of_fleet ? result->limit_high : std::nullopt});
    }
    if (inquiry->promises.empty()) continue;
    for (const auto& node : inquiry->step->nodes) {
      const Inquiry*& last = last_of_node[node];
      if (last != nullptr && (inquiry->after.empty() || inquiry->after.back() != last)) inquiry->after.push_back(last);
      last = inquiry.get();
    }
    inquiries_.push_back(std::move(inquiry));
  }
  begin_ready();
}

Searches::~Searches() = default;

/// Begins every search whose forerunners have ended. In the plan's order, so one pass is enough.
void Searches::begin_ready() {
  for (const auto& inquiry : inquiries_) {
    if (!inquiry->begun && std::ranges::all_of(inquiry->after, &Inquiry::ended)) begin(*inquiry);
  }
}

void Searches::begin(Inquiry& inquiry) {
  inquiry.begun = true;
  for (const auto& node : inquiry.step->nodes) {
    if (known_.contains(node))
      inquiry.excluded.push_back(node);
    else
      inquiry.peers.push_back(
          {.name = node, .leaf = site::leaf_of(*nodes_.at(node), inquiry.step->plane, inquiry.step->rail)});
  }
  if (inquiry.planned->budget == 0) {
    inquiry.stopped = inquiry.planned->reason;
  } else if (inquiry.peers.size() < 2) {
    inquiry.stopped = fmt::format("{} are already known to be faulty, and too few others are left to search",
                                  listed(inquiry.excluded));
  }
  if (!inquiry.stopped.empty()) {
    inquiry.ended = true;
    return;
  }
  if (inquiry.excluded.empty()) inquiry.localiser = std::make_unique<Localiser>(inquiry.peers, inquiry.planned->budget);
  next_round(inquiry);
}

ExtraTest Searches::test_of(const Inquiry& inquiry, Test test) const {
  ExtraTest extra{.step = *inquiry.step, .test = std::move(test)};
  extra.step.id = fmt::format("{}.t{:03}", inquiry.step->id, extra.test.number + inquiry.offset);
  extra.step.nodes.clear();
  for (const std::size_t node : extra.test.nodes) extra.step.nodes.push_back(inquiry.peers[node].name);
  extra.step.requirements.clear();
  for (const auto& promise : inquiry.promises) extra.step.requirements.push_back(promise.requirement->id);
  extra.step.looks = 1;
  extra.step.power_w *= static_cast<double>(extra.step.nodes.size()) / static_cast<double>(inquiry.step->nodes.size());
  return extra;
}

void Searches::next_round(Inquiry& inquiry) {
  inquiry.round.clear();
  inquiry.shown.clear();
  if (!inquiry.localiser) {
    Test all{.number = 1, .nodes = {}, .purpose = kWithoutTheKnown};
    for (std::size_t i = 0; i < inquiry.peers.size(); ++i) all.nodes.push_back(i);
    inquiry.round.push_back(test_of(inquiry, std::move(all)));
  } else {
    for (auto& test : inquiry.localiser->next()) inquiry.round.push_back(test_of(inquiry, std::move(test)));
  }
  for (const auto& test : inquiry.round) asked_[test.step.id] = {test.step.nodes, test.test.purpose};
  if (inquiry.round.empty()) end(inquiry);
}

void Searches::end(Inquiry& inquiry) {
  inquiry.ended = true;
  inquiry.round.clear();
  if (!inquiry.localiser) return;
  for (const auto& suspect : inquiry.localiser->finding().suspects) {
    // One end of a bad pair is enough to leave out for the others to be seen.
    for (const std::size_t node : suspect.nodes) {
      known_.insert(inquiry.peers[node].name);
      if (suspect.fault == Fault::pair) break;
    }
  }
}

std::vector<ExtraTest> Searches::open() const {
  std::vector<ExtraTest> tests;
  for (const auto& inquiry : inquiries_) {
    std::ranges::copy_if(inquiry->round, std::back_inserter(tests),
                         [&](const ExtraTest& test) { return !inquiry->shown.contains(test.step.id); });
  }
  return tests;
}

bool Searches::has_asked(const Attempt& attempt) const {
  const auto asked = asked_.find(attempt.step);
  return asked != asked_.end() && asked->second.first == attempt.nodes && asked->second.second == attempt.purpose;
}

std::optional<TestShown> Searches::shown(const ExtraTest& test, const Journal& part,
                                         const EvidenceReader& evidence) const {
  const auto ended = std::ranges::find_if(
      part.attempts, [](const Attempt& attempt) { return attempt.outcome != AttemptOutcome::interrupted; });
  if (ended == part.attempts.end()) return std::nullopt;
  const auto inquiry =
      std::ranges::find_if(inquiries_, [&](const auto& one) { return test.step.id.starts_with(one->step->id + ".t"); });
  std::vector<plan::Cell> cells;
  for (const auto& id : test.step.requirements)
    cells.push_back({.requirement = id, .subject = {"group", test.step.id}, .step = test.step.id, .reason = ""});
  TestShown shown{.outcome = TestOutcome::good, .unusable = false, .reason = ""};
  const auto results = judge_step(plan_, test.step, cells, part, evidence);
  for (std::size_t i = 0; i < results.size(); ++i) {
    Result result = results[i];
    const auto& promise = *std::ranges::find_if(
        (*inquiry)->promises, [&](const Promise& one) { return one.requirement->id == result.requirement; });
    if (plan::is_of_others(promise.requirement->limit.reference)) {
      // A sum over nodes is promised in proportion to them.
      const double share =
          promise.requirement->limit.reference == plan::Reference::smallest_group_by_nodes
              ? static_cast<double>(test.step.nodes.size()) / static_cast<double>((*inquiry)->step->nodes.size())
              : 1;
      const auto scaled = [&](std::optional<double> limit) {
        return limit ? std::optional(*limit * share) : std::nullopt;
      };
      result.limit_low = scaled(promise.fleet_low);
      result.limit_high = scaled(promise.fleet_high);
    }
    if (misses_limit(result)) {
      shown.outcome = TestOutcome::short_of_limit;
    } else if (!result.value || (!result.limit_low && !result.limit_high)) {
      shown.unusable =
          shown.unusable || (ended->outcome == AttemptOutcome::exited && result.outcome == Outcome::not_measured);
      if (shown.outcome == TestOutcome::good) shown.outcome = TestOutcome::broken;
      shown.reason = result.reason;
    }
  }
  return shown;
}

void Searches::take(const std::string& test, const TestShown& shown) {
  for (const auto& inquiry : inquiries_) {
    if (std::ranges::none_of(inquiry->round, [&](const ExtraTest& one) { return one.step.id == test; })) continue;
    if (!inquiry->shown.emplace(test, shown).second) break;
    if (inquiry->shown.size() == inquiry->round.size()) feed(*inquiry);
    return;
  }
  throw std::logic_error(fmt::format("the test {} is not open", test));
}

/// Hands a whole round on.
void Searches::feed(Inquiry& inquiry) {
  const auto round = std::exchange(inquiry.round, {});
  for (const auto& test : round) {
    const TestShown& shown = inquiry.shown.at(test.step.id);
    inquiry.made.push_back(
        {.id = test.step.id, .purpose = test.test.purpose, .outcome = shown.outcome, .nodes = test.step.nodes.size()});
    if (shown.unusable)
      inquiry.stopped = fmt::format("the probe cannot be run on {} nodes: {}", test.step.nodes.size(), shown.reason);
  }
  if (!inquiry.stopped.empty()) {
    end(inquiry);
  } else if (!inquiry.localiser && inquiry.shown.at(round.front().step.id).outcome == TestOutcome::good) {
    inquiry.clear = true;
    end(inquiry);
  } else if (!inquiry.localiser) {
    inquiry.offset = 1;
    inquiry.localiser = std::make_unique<Localiser>(inquiry.peers, inquiry.planned->budget - 1);
    next_round(inquiry);
  } else {
    for (const auto& test : round) inquiry.localiser->take(test.test, inquiry.shown.at(test.step.id).outcome);
    next_round(inquiry);
  }
  if (inquiry.ended) begin_ready();
}

std::size_t Searches::most_left() const {
  std::size_t left = 0;
  for (const auto& inquiry : inquiries_) {
    if (!inquiry->ended) left += inquiry->planned->budget - inquiry->made.size();
  }
  return left;
}

std::vector<Localised> Searches::found() const {
  std::vector<Localised> all;
  for (const auto& inquiry : inquiries_) all.push_back(found_by(*inquiry));
  return all;
}

Localised Searches::found_by(const Inquiry& inquiry) const {
  Localised found{.requirements = {},
                  .step = inquiry.step->id,
                  .state = SearchState::undecided,
                  .reason = "",
                  .budget = inquiry.planned->budget,
                  .excluded = inquiry.excluded,
                  .undecided = {},
                  .culprits = {},
                  .tests = inquiry.made};
  for (const auto& promise : inquiry.promises) found.requirements.push_back(promise.requirement->id);
  const auto tests = fmt::format("{} extra tests of at most {}", inquiry.made.size(), inquiry.planned->budget);
  if (inquiry.localiser) {
    const Finding finding = inquiry.localiser->finding();
    for (const auto& suspect : finding.suspects) {
      Culprit culprit{.fault = suspect.fault,
                      .nodes = {},
                      .leaf = suspect.leaf,
                      .unsteady = suspect.unsteady,
                      .tests = {},
                      .words = suspect_words(suspect, inquiry.peers)};
      for (const std::size_t node : suspect.nodes) culprit.nodes.push_back(inquiry.peers[node].name);
      for (const std::size_t number : suspect.tests)
        culprit.tests.push_back(fmt::format("{}.t{:03}", inquiry.step->id, number + inquiry.offset));
      found.culprits.push_back(std::move(culprit));
    }
    for (const std::size_t node : finding.undecided) found.undecided.push_back(inquiry.peers[node].name);
    if (finding.complete && found.culprits.empty()) found.state = SearchState::clear;
    found.reason =
        found.culprits.empty()
            ? finding.complete
                  ? fmt::format("All nodes met the limit together in {}: the shortfall did not recur.", tests)
                  : fmt::format("{} did not locate the fault.", tests)
            : fmt::format("Located by {}{}.", tests,
                          finding.complete ? ", and the others met the limit together"
                                           : "; not all of the others were shown to be good");
    if (!found.culprits.empty()) found.state = SearchState::found;
  }
  if (inquiry.clear) {
    found.state = SearchState::clear;
    found.reason = fmt::format("Without {} (already known to be faulty) the others meet the limit together.",
                               listed(inquiry.excluded));
  } else if (!inquiry.begun || !inquiry.ended) {
    found.state = SearchState::open;
    found.reason = inquiry.begun ? fmt::format("The search did not finish: {} were made.", tests)
                                 : "An earlier search of the same nodes did not finish.";
  } else if (!inquiry.stopped.empty()) {
    found.state = SearchState::not_searched;
    found.reason = fmt::format("No search: {}.", inquiry.stopped);
  }
  return found;
}

}  // namespace assay::judge
