// searches: which searches are due, in which order, and the exchange of tests and readings with their localisers.
//
// An SearchRecord is one search: of one step that fell short, from the constructor to the end of Searches. It goes
// through
//   waiting   until the searches in `after`, of the same nodes, have ended;
//   begun     begin() leaves out nodes already known to be faulty. If there are any, the first test is of all others
//             together: if that is good, nothing else is wrong and the search ends (`clear`). That test is not the
//             localiser's, so its numbers are shifted by `offset` = 1 when they become ids ("0012-x.t002" is its
//             test 1), and the budget it gets is one test smaller;
//   rounds    next_round() asks the localiser for tests, take() collects their readings, feed() hands over the round;
//   ended     no test is left, a probe cannot measure so few nodes (`stopped`), or `clear`.
// A Promise is one requirement that the step fell short of, one share of each Reading. A test is compared with the
// requirement's own limit; if that is relative to other steps (a fleet, a smaller group) the limit that the step had
// is frozen in fleet_low and fleet_high, since a test of few nodes has no such reference.
// The run asks open() for tests to make; the judge replays the same sequence over the journal.
#include "orchestrator/judge/locate/search_record.h"

#include <algorithm>
#include <stdexcept>
#include <string_view>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "orchestrator/judge/locate/knees.h"
#include "orchestrator/judge/locate/pairs.h"
#include "orchestrator/site/planes.h"

namespace assay::judge {
namespace {

constexpr const char* kWithoutTheKnown = "everything without those known";

bool is_bad(const Result& result) {
  return result.outcome == Outcome::fail || result.outcome == Outcome::conditional_fail ||
         result.outcome == Outcome::error;
}

/// Whether the node was measured, and its machine does not report the figure: that is no fault of the node.
bool is_unchecked(const plan::Plan& plan, const Result& result) {
  const auto* const requirement = plan.requirement(result.requirement);
  return requirement != nullptr && requirement->when_told && result.unchecked;
}

/// Plane and rail of a step; empty for one that uses ports of its nodes' choice.
std::string ports_of(const std::string& plane, const std::string& rail) {
  return plane.empty() && rail.empty() ? "" : plane + "/" + rail;
}

}  // namespace

std::set<std::string> bad_alone(const plan::Plan& plan, const Results& results) {
  std::set<std::string> nodes;
  for (const auto& node : plan.site.nodes) nodes.insert(node.name);
  std::set<std::string_view> together;  // pairs of GPUs are parts of one node, and so are groups of them
  for (const auto& step : plan.steps) {
    if (step.nodes.size() > 1) together.insert(step.id);
  }
  std::set<std::string> bad;
  for (const auto& result : results) {
    if (!result.required) continue;
    if (together.contains(result.step) || (result.step.empty() && plan::is_together(result.subject.kind))) continue;
    const bool silent = result.outcome == Outcome::not_measured && !result.step.empty() && !is_unchecked(plan, result);
    if (!(is_bad(result) || silent) || !nodes.contains(result.node)) continue;
    if (!plan.requirement(result.requirement)->contrast) bad.insert(result.node);  // a switch slows no other node
  }
  return bad;
}

bool misses_limit(const Result& result) {
  if (!result.value) return false;
  return (result.limit_low && *result.value < *result.limit_low) ||
         (result.limit_high && *result.value > *result.limit_high);
}

bool falls_short(const Result& result) {
  if (result.outcome == Outcome::fail || result.outcome == Outcome::conditional_fail) return misses_limit(result);
  return result.outcome == Outcome::inconclusive && misses_limit(result) &&
         std::ranges::all_of(result.conditions, &ConditionSeen::met);
}

Searches::Searches(const plan::Plan& plan, const Results& results, const Journal& journal,
                   const EvidenceReader& evidence)
    : plan_(plan), known_(plan.searches.empty() ? std::set<std::string>{} : bad_alone(plan, results)) {
  if (plan.searches.empty()) return;
  for (const auto& node : plan.site.nodes) nodes_.emplace(node.name, &node);
  for (const auto& pairs : localise_pairs(plan, results, {}, nodes_by_host(journal))) {
    const auto* const requirement = plan.requirement(pairs.requirements.front());
    if (!requirement->required) continue;
    for (const auto& culprit : pairs.culprits) {
      if (culprit.fault == Fault::node)
        accused_[ports_of(requirement->plane, pairs.rail)].insert(culprit.nodes.begin(), culprit.nodes.end());
    }
  }
  find_due(results, journal);
  for (auto& inquiry : inquiries_) take_attempts(*inquiry, journal, evidence);
  order();
  begin_ready();
}

/// The searches that are due, in the plan's order.
void Searches::find_due(const Results& results, const Journal& journal) {
  std::unordered_map<std::string_view, std::vector<const Result*>> results_of;
  for (const auto& result : results) results_of[result.step].push_back(&result);
  std::unordered_map<std::string, AttemptOutcome> ended_as;
  for (const auto& attempt : journal.attempts) {
    if (attempt.outcome != AttemptOutcome::interrupted) ended_as[attempt.step] = attempt.outcome;
  }
  for (const auto& planned : plan_.searches) {
    auto inquiry = std::make_unique<SearchRecord>();
    inquiry->planned = &planned;
    inquiry->step = plan_.step(planned.step);
    // No node is named by a step that was killed at its deadline: all of its ranks waited.
    const auto ended = ended_as.find(planned.step);
    const bool hung = ended != ended_as.end() && ended->second == AttemptOutcome::deadline;
    for (const Result* result : results_of[planned.step]) {
      if (std::ranges::find(planned.requirements, result->requirement) == planned.requirements.end()) continue;
      const plan::Requirement* requirement = plan_.requirement(result->requirement);
      const bool of_fleet = requirement->is_of_others();
      if (requirement->knee && !knee_at(plan_, results, *requirement, *inquiry->step).is_first(*result)) continue;
      if (!falls_short(*result) && (!hung || of_fleet)) continue;
      // Once per step: a limit taken from other steps is the same for every subject.
      if (std::ranges::find(inquiry->promises, requirement, &Promise::requirement) != inquiry->promises.end()) continue;
      inquiry->required = inquiry->required || result->required;
      inquiry->promises.push_back({.requirement = requirement,
                                   .fleet_low = of_fleet ? result->limit_low : std::nullopt,
                                   .fleet_high = of_fleet ? result->limit_high : std::nullopt});
    }
    if (inquiry->promises.empty()) continue;
    if (inquiry->required)
      std::erase_if(inquiry->promises, [](const Promise& one) { return !one.requirement->required; });
    begin_knee(*inquiry, results);
    inquiries_.push_back(std::move(inquiry));
  }
}

/// Where a figure with a knee falls out the number of nodes is searched, for the figures that fall out together.
void Searches::begin_knee(SearchRecord& inquiry, const Results& results) const {
  const auto with_knee = [](const Promise& one) { return one.requirement->knee.has_value(); };
  const auto first = std::ranges::find_if(inquiry.promises, with_knee);
  if (first == inquiry.promises.end()) return;
  const KneeRange range = knee_at(plan_, results, *first->requirement, *inquiry.step);
  inquiry.knee.emplace(KneeEnds{.kept = range.kept,
                                .kept_share = range.kept_share,
                                .lost = inquiry.step->nodes.size(),
                                .lost_share = share_of(*range.first),
                                .scatter = range.scatter},
                       inquiry.planned->knee);
  std::erase_if(inquiry.promises, [&](const Promise& one) { return !with_knee(one); });
}

/// Which searches come after which: those of a node follow each other, for advisory figures after all others.
void Searches::order() {
  std::map<std::string_view, const SearchRecord*> last_of_node;
  for (const bool required : {true, false}) {
    for (const auto& inquiry : inquiries_) {
      if (inquiry->required != required) continue;
      for (const auto& node : inquiry->step->nodes) {
        const SearchRecord*& last = last_of_node[node];
        if (last != nullptr && (inquiry->after.empty() || inquiry->after.back() != last))
          inquiry->after.push_back(last);
        last = inquiry.get();
      }
    }
  }
}

Searches::~Searches() = default;

/// Begins every search whose forerunners have ended. One that ends at once may let others begin.
void Searches::begin_ready() {
  for (bool more = true; more;) {
    more = false;
    for (const auto& inquiry : inquiries_) {
      if (inquiry->begun || !std::ranges::all_of(inquiry->after, &SearchRecord::ended)) continue;
      begin(*inquiry);
      more = more || inquiry->ended;
    }
  }
}

/// Whether this node is left out of a search of `step`.
bool Searches::is_known(const plan::Step& step, const std::string& node) const {
  if (known_.contains(node)) return true;
  const std::string own = ports_of(step.plane, step.rail);
  return std::ranges::any_of(accused_, [&](const auto& ports) {
    return (ports.first.empty() || own.empty() || ports.first == own) && ports.second.contains(node);
  });
}

void Searches::begin(SearchRecord& inquiry) {
  inquiry.begun = true;
  for (const auto& node : inquiry.step->nodes) {
    if (is_known(*inquiry.step, node))
      inquiry.excluded.push_back(node);
    else
      inquiry.peers.push_back(
          {.name = node, .leaf = site::leaf_of(*nodes_.at(node), inquiry.step->plane, inquiry.step->rail)});
  }
  if (inquiry.planned->budget.most == 0) {
    inquiry.stopped = inquiry.planned->reason;
  } else if (inquiry.peers.size() < 2) {
    inquiry.stopped = fmt::format("{} are already known to be faulty, and too few others are left to search",
                                  listed(inquiry.excluded));
  }
  if (!inquiry.stopped.empty()) {
    inquiry.ended = true;
    return;
  }
  if (inquiry.knee && !inquiry.excluded.empty()) {
    inquiry.stopped =
        fmt::format("{} are already known to be faulty, and the fall may be theirs", listed(inquiry.excluded));
    inquiry.ended = true;
    return;
  }
  if (inquiry.excluded.empty() && !inquiry.knee)
    inquiry.localiser = std::make_unique<Localiser>(inquiry.peers, inquiry.planned->budget, inquiry.attempts);
  next_round(inquiry);
}

ExtraTest Searches::test_of(const SearchRecord& inquiry, Test test) const {
  ExtraTest extra{.step = *inquiry.step, .test = std::move(test)};
  extra.step.id = fmt::format("{}.t{:03}", inquiry.step->id, extra.test.number + inquiry.offset);
  extra.step.nodes.clear();
  for (const std::size_t node : extra.test.nodes) extra.step.nodes.push_back(inquiry.peers[node].name);
  extra.step.requirements.clear();
  for (const auto& promise : inquiry.promises) extra.step.requirements.push_back(promise.requirement->id);
  extra.step.attempts = 1;
  extra.step.more_attempts = 0;
  extra.step.power_w *= static_cast<double>(extra.step.nodes.size()) / static_cast<double>(inquiry.step->nodes.size());
  return extra;
}

void Searches::next_round(SearchRecord& inquiry) {
  inquiry.round.clear();
  inquiry.shown.clear();
  if (inquiry.knee) {
    if (auto test = inquiry.knee->next()) inquiry.round.push_back(test_of(inquiry, std::move(*test)));
  } else if (!inquiry.localiser) {
    Test all{.number = 1, .purpose = kWithoutTheKnown};
    for (std::size_t i = 0; i < inquiry.peers.size(); ++i) all.nodes.push_back(i);
    inquiry.round.push_back(test_of(inquiry, std::move(all)));
  } else {
    for (auto& test : inquiry.localiser->next()) inquiry.round.push_back(test_of(inquiry, std::move(test)));
  }
  for (const auto& test : inquiry.round) asked_[test.step.id] = {test.step.nodes, test.test.purpose};
  if (inquiry.round.empty()) end(inquiry);
}

void Searches::end(SearchRecord& inquiry) {
  inquiry.ended = true;
  inquiry.round.clear();
  if (inquiry.knee && inquiry.knee->cause() == FallCause::nodes) {
    for (const auto& node : last_nodes(inquiry))
      accused_[ports_of(inquiry.step->plane, inquiry.step->rail)].insert(node);
  }
  if (!inquiry.localiser) return;
  for (const auto& suspect : inquiry.localiser->finding().suspects) {
    // One end of a bad pair is enough to leave out for the others to be seen.
    for (const std::size_t node : suspect.nodes) {
      accused_[ports_of(inquiry.step->plane, inquiry.step->rail)].insert(inquiry.peers[node].name);
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
void Searches::feed(SearchRecord& inquiry) {
  const auto round = std::exchange(inquiry.round, {});
  for (const auto& test : round) {
    const TestShown& shown = inquiry.shown.at(test.step.id);
    if (shown.unusable)
      inquiry.stopped = fmt::format("the probe cannot be run on {} nodes: {}", test.step.nodes.size(), shown.reason);
  }
  if (inquiry.knee) {
    if (inquiry.stopped.empty()) inquiry.knee->take(inquiry.shown.at(round.front().step.id).reading);
  } else if (!inquiry.localiser) {
    const Reading& all = inquiry.shown.at(round.front().step.id).reading;
    inquiry.first = MadeTest{.id = round.front().step.id,
                             .purpose = round.front().test.purpose,
                             .outcome = all.broken    ? TestOutcome::broken
                                        : all.meets() ? TestOutcome::good
                                                      : TestOutcome::short_of_limit,
                             .nodes = round.front().step.nodes.size(),
                             .share = all.shares.empty() ? std::nullopt : std::optional(std::ranges::min(all.shares))};
    inquiry.clear = inquiry.stopped.empty() && all.meets();
    if (inquiry.stopped.empty() && !inquiry.clear) {
      inquiry.offset = 1;
      plan::SearchBudget left = inquiry.planned->budget;
      --left.base;
      --left.most;
      inquiry.localiser = std::make_unique<Localiser>(inquiry.peers, left, std::vector<Reading>(1, all));
    }
  } else {
    for (const auto& test : round) inquiry.localiser->take(test.test, inquiry.shown.at(test.step.id).reading);
  }
  if (!inquiry.stopped.empty() || inquiry.clear)
    end(inquiry);
  else
    next_round(inquiry);
  if (inquiry.ended) begin_ready();
}

std::size_t Searches::SearchRecord::asked() const {
  if (knee) return knee->tests().size() + round.size();
  return (first || (!localiser && !round.empty()) ? 1 : 0) + (localiser ? localiser->asked() : 0);
}

std::size_t Searches::SearchRecord::allowed() const {
  if (knee) return planned->knee;
  return localiser ? localiser->allowed() + offset : planned->budget.allowed(0);
}

std::size_t Searches::most_left() const {
  std::size_t left = 0;
  for (const auto& inquiry : inquiries_) {
    if (!inquiry->ended) left += inquiry->allowed() - inquiry->asked();
  }
  return left;
}

std::vector<Localised> Searches::found() const {
  std::vector<Localised> all;
  for (const auto& inquiry : inquiries_) all.push_back(found_by(*inquiry));
  return all;
}

}  // namespace assay::judge
