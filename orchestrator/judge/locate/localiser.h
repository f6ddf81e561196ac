// localiser: the nodes at fault when a group falls short: an adaptive search that asks for tests and accuses nodes,
// pairs of nodes and leaves, each confirmed with peers that are known to be good.
#pragma once

#include <cstddef>
#include <list>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "orchestrator/judge/locate/controls.h"
#include "orchestrator/judge/locate/search_task.h"
#include "orchestrator/judge/verdict.h"
#include "orchestrator/plan/search_budget.h"

namespace assay::judge {

/// A node that takes part, and its leaf switch; empty if unknown.
struct Peer {
  std::string name;
  std::string leaf;
};

/// Nodes that run together, by index; at least two, ascending. Tests of one round have no node in common.
struct Test {
  std::size_t number = 0;  ///< from 1, in the order asked
  std::vector<std::size_t> nodes;
  std::string purpose;  ///< screening, control, bisection, confirmation, partner search, everything together
};

/// A test with its result, and the meaning of that.
struct Tested {
  Test test;
  Reading reading;
  TestOutcome outcome = TestOutcome::good;  ///< against its controls, or its limits if it has none
  std::optional<double> share, control;     ///< of the limit in which it is worst, and the mean of the controls
};

/// An accusation, shown by at least two tests with different peers that are good with others (pair: by two tests of the
/// two together, while each of them is good with others).
struct Suspect {
  Fault fault = Fault::node;
  std::vector<std::size_t> nodes;  ///< one, two, or all of the leaf
  std::string leaf;                ///< fault leaf: its name
  bool unsteady = false;           ///< some of the tests that should have shown it were good
  std::vector<std::size_t> tests;  ///< numbers of the tests that show it
};

/// Findings of a search.
struct Finding {
  std::vector<Suspect> suspects;       ///< in the order of their nodes
  std::vector<std::size_t> undecided;  ///< neither accused nor seen to work together with the others
  bool complete = false;               ///< all that are not accused were seen to work together
  bool alike = false;  ///< all groups of one size are alike, twice in a row, and together they are short: whatever
                       ///< is wrong is common to all
  bool budget_ended = false;  ///< more tests were wanted than the budget has
  std::size_t budget = 0;     ///< tests allowed, with the findings so far
  std::vector<Tested> tests;  ///< in the order taken
  std::size_t rounds = 0;
};

/// The search. It rests on one assumption: a test is short of the figure of alike nodes in a group of the same size
/// exactly when it holds a node that is at fault, or both nodes of a pair that is, but for an outcome that now and then
/// is wrong. So the test must use every pair of its nodes (all_to_all, or pairs one after another), at a size at which
/// one slow member shows.
///
/// Screening compares disjoint groups of one size, neighbours on one leaf side by side. If all are alike and short,
/// smaller groups are compared; if they are alike too, the search ends and accuses no node. In a group that is short
/// of the others, bisection over its prefixes finds the first node without which the ones before it are good; tests
/// are filled up with good nodes to a size that has controls. That node is tested with two peers that are known good:
/// short with both, it is accused; good with both, its partner is searched by bisection among those with which it was
/// short. Then all the rest runs together against the limit, twice. When it is short, six halves, any
/// two nodes together in one of them, show the pairs across groups; when those are all alike, smaller unions do. Where
/// outcomes contradict each other they are repeated. A test that did not run to its end is repeated, too, before it
/// counts: the testing machine may be the cause. The order of everything follows from nodes and readings only.
class Localiser {
 public:
  /// A search among `nodes`, which together fell short as `attempts` show, with as many tests as `budget` allows. Where
  /// some of the attempts were good a good outcome is repeated until it would have shown a fault that shows as often.
  Localiser(std::vector<Peer> nodes, plan::SearchBudget budget, const std::vector<Reading>& attempts = {});
  Localiser(const Localiser&) = delete;
  Localiser& operator=(const Localiser&) = delete;

  /// The tests of the next round, disjoint, to be run at the same time; none if the search has ended. All of them must
  /// be taken before the next round.
  std::vector<Test> next();
  /// Takes the result of one test of the round. Throws std::logic_error for any other test.
  void take(const Test& test, Reading reading);
  /// The findings now.
  [[nodiscard]] Finding finding() const;
  /// How many tests are allowed, with the findings so far.
  [[nodiscard]] std::size_t allowed() const { return budget_.allowed(suspects_.size()); }
  /// How many tests were asked for.
  [[nodiscard]] std::size_t asked() const { return asked_; }

 private:
  using Nodes = std::vector<std::size_t>;
  /// Rounds without a difference, before the fault is taken as common to all.
  static constexpr int kMostAlike = 2;

  /// Nodes that are searched together: those that were good together, and those that are still open.
  struct Lane {
    Nodes clean, open, parked;
    Nodes shown = {};                        ///< nodes of the last test of it that was short
    std::vector<std::size_t> measured = {};  ///< tests of all of it
    bool known_short = false;                ///< clean and open together have just been seen to be short
    bool crosses_groups = false;             ///< each of its nodes was good in a group of its own
    int refuted = 0;  ///< suspicions that confirmation did not bear out: after one, outcomes are repeated

    [[nodiscard]] bool steady() const { return refuted == 0; }
  };
  /// A test that a coroutine waits for.
  struct Wanted {
    Nodes nodes;
    const char* purpose = "";
    std::coroutine_handle<> waiter;
    std::size_t number = 0;  ///< 0 until it was handed out
    std::optional<Reading> reading;
    int broken = 0;  ///< times that it did not run to its end
  };
  /// Awaited: asks for a test and gives its number.
  struct Ask {
    Localiser& localiser;
    Wanted wanted;
    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> waiter);
    std::size_t await_resume() const noexcept { return wanted.number; }
  };
  /// Short and good outcomes of confirming tests.
  struct Count {
    int bad = 0, good = 0;
    std::vector<std::size_t> tests;
  };
  /// classify()'s outcome of a suspicion.
  enum class Ruling { refuted, accused, paired };

  // The way of the search, in localiser_screening and localiser_search.
  Search<bool> main();
  Search<bool> screen();
  Search<bool> screen_pairs();
  Search<bool> measure(std::vector<Lane*> lanes);
  Search<bool> measure_once(Lane& lane);
  [[nodiscard]] bool was_short(const Lane& lane) const;
  Search<bool> extend(Lane& lane);
  Search<std::size_t> bisect(Lane& lane);
  Search<bool> whole();
  Search<bool> everything();
  Search<bool> compare_unions(std::size_t parts);
  Search<bool> refute(Lane& lane, std::size_t suspect);
  Search<bool> check_parked(std::size_t node, Nodes others);
  [[nodiscard]] std::list<Lane> groups_of(plan::Screening screening) const;
  [[nodiscard]] std::vector<Lane> unions_of(const Nodes& all, std::size_t parts) const;
  Search<bool> best_again(std::size_t size);
  bool differ(std::size_t size, bool enough);
  void make_lanes_of_pairs(const std::list<Lane>& pairs);
  [[nodiscard]] Nodes clean_nodes() const;
  [[nodiscard]] int repeats(bool steady) const;

  // Classification of a suspicion, in localiser_confirm.
  Search<Ruling> classify(std::size_t suspect, Nodes together, bool steady);
  Search<Ruling> partner(std::size_t suspect, Nodes among, bool steady);
  Search<Count> confirm(Nodes suspects, bool steady);
  Search<bool> sweep(Lane& lane, std::string leaf);
  Search<bool> holds(std::size_t node);
  void reopen_parked(Lane& lane) const;
  [[nodiscard]] bool leaf_looks_bad(const std::string& leaf) const;
  void accuse_node(std::size_t node, Count shown);
  void accuse_pair(std::size_t parked, std::size_t other, Count shown);

  // Tests, their controls and their outcomes, in localiser_tests.
  Ask ask(Nodes nodes, const char* purpose);
  Search<bool> good(Nodes nodes, const char* purpose, int times);
  Search<bool> lane_good(Lane& lane, Nodes nodes, const char* purpose);
  Search<bool> control(std::size_t size, Nodes without);
  [[nodiscard]] Nodes good_together(std::size_t size, std::size_t place) const;
  bool rule(std::size_t number);
  bool rule_by_limit(std::size_t number);
  [[nodiscard]] Nodes filled(Nodes nodes, const Nodes& without, bool known) const;
  void remember(const Nodes& nodes);
  [[nodiscard]] bool were_good(std::size_t a, std::size_t b) const;
  [[nodiscard]] bool were_good_with(std::size_t one, const Nodes& all) const;
  [[nodiscard]] Nodes trusted(const Nodes& near, const Nodes& without) const;
  [[nodiscard]] std::optional<std::size_t> peer_for(const Nodes& nodes, const Nodes& used) const;

  [[nodiscard]] std::vector<Suspect> with_leaves() const;

  std::vector<Peer> nodes_;
  plan::SearchBudget budget_;
  int most_broken_ = 1;  ///< times that a test may not run to its end before that counts
  int repeats_ = 1;      ///< of a good outcome, so that a fault that shows as often as in the attempts is seen
  Controls controls_;
  std::set<std::size_t> controlled_;  ///< sizes that have controls
  std::list<Lane> lanes_;
  std::vector<int> trust_;                    ///< of each node: good tests it was in
  std::vector<std::vector<bool>> good_with_;  ///< of each node: those that it was in a good test with; empty: none
  std::set<std::size_t> accused_;             ///< as nodes
  std::set<std::size_t> parked_;              ///< in an accused pair, and left out so that the others can be seen
  std::set<std::size_t> given_up_;            ///< suspected again and again, and never confirmed
  std::set<std::string> swept_;               ///< leaves whose nodes were tested one by one
  std::vector<Suspect> suspects_;
  std::vector<Wanted*> wanted_;   ///< not handed out yet
  std::vector<Wanted*> running_;  ///< of this round
  std::vector<Tested> tested_;    ///< a test's number less one is its place
  std::size_t asked_ = 0, rounds_ = 0;
  bool complete_ = false, alike_ = false, budget_ended_ = false;
  std::optional<Search<bool>> search_;  ///< last, so that it dies first
};

/// "node n017", "pair n003 and n112", "leaf l04 (16 nodes)", with where to look, for people.
std::string suspect_words(const Suspect& suspect, const std::vector<Peer>& nodes);

}  // namespace assay::judge
