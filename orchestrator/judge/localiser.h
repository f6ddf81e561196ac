// localiser: who is at fault when a group falls short: an adaptive search that asks for tests and accuses nodes, pairs
// of nodes and leaves, each confirmed with peers that are known to be good.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "orchestrator/judge/search_task.h"
#include "orchestrator/judge/verdict.h"

namespace assay::judge {

/// A node that takes part, and the leaf switch it hangs on; empty when not told.
struct Peer {
  std::string name;
  std::string leaf;
};

/// Nodes that run together, by index; at least two, ascending. Tests of one round have no node in common.
struct Test {
  std::size_t number = 0;  ///< from 1, in the order asked
  std::vector<std::size_t> nodes;
  std::string purpose;  ///< screening, bisection, confirmation, partner search, everything together
};

/// A test with its outcome.
struct Tested {
  Test test;
  TestOutcome outcome = TestOutcome::good;
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

/// What a search has found.
struct Finding {
  std::vector<Suspect> suspects;       ///< in the order of their nodes
  std::vector<std::size_t> undecided;  ///< neither accused nor seen to work together with the others
  bool complete = false;               ///< all that are not accused were seen to work together
  bool budget_ended = false;           ///< more tests were wanted than the budget has
  std::vector<Tested> tests;           ///< in the order taken
  std::size_t rounds = 0;
};

/// The search. It rests on one assumption: a test is short exactly when it holds a node that is at fault, or both nodes
/// of a pair that is, but for an outcome that now and then is wrong. So the test must use every pair of its nodes
/// (all_to_all, or pairs one after another), at a size at which one slow member shows.
///
/// Screening: disjoint chunks of about 2 sqrt(n) nodes, neighbours on one leaf side by side. In a chunk that is short,
/// bisection over its prefixes finds the first node without which what stands before it is good. It is tested with two
/// peers that are known good: short with both, it is accused; good with both, its partner is searched by bisection
/// among those with which it was short. Then everything that is left runs together, twice, which shows pairs across
/// chunks. Where outcomes contradict each other they are repeated. The order of everything follows from nodes and
/// outcomes alone.
class Localiser {
 public:
  /// A search among `nodes`, which together fell short, with at most `budget` tests.
  Localiser(std::vector<Peer> nodes, std::size_t budget);
  Localiser(const Localiser&) = delete;
  Localiser& operator=(const Localiser&) = delete;

  /// The tests of the next round, disjoint, to be run at the same time; none when the search has ended. All of them
  /// must be taken before the next round.
  std::vector<Test> next();
  /// Takes the outcome of one test of the round. Throws std::logic_error for any other test.
  void take(const Test& test, TestOutcome outcome);
  /// What is known now.
  [[nodiscard]] Finding finding() const;

 private:
  using Nodes = std::vector<std::size_t>;

  /// Nodes that are searched together: those that were good together, and those that are still to be told of.
  struct Lane {
    Nodes clean, open, parked;
    bool known_short = false;  ///< clean and open together have just been seen to be short
    int refuted = 0;           ///< suspicions that confirmation did not bear out: after one, outcomes are repeated

    [[nodiscard]] bool steady() const { return refuted == 0; }
  };
  /// A test that a coroutine waits for.
  struct Wanted {
    Nodes nodes;
    const char* purpose = "";
    std::coroutine_handle<> waiter;
    std::size_t number = 0;  ///< 0 until it was handed out
    std::optional<TestOutcome> outcome;
  };
  /// Awaited: asks for a test and gives whether it was good.
  struct Ask {
    Localiser& localiser;
    Wanted wanted;
    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> waiter);
    bool await_resume() const noexcept { return wanted.outcome == TestOutcome::good; }
  };
  /// Short and good outcomes of confirming tests.
  struct Count {
    int bad = 0, good = 0;
    std::vector<std::size_t> tests;
  };
  /// What classify() made of a suspicion.
  enum class Ruling { refuted, accused, paired };

  Search<bool> main();
  Search<bool> extend(Lane& lane);
  Search<std::optional<std::size_t>> bisect(Lane& lane);
  Search<bool> anchor(Lane& lane);
  Search<Ruling> classify(std::size_t suspect, Nodes together, bool steady);
  Search<Ruling> partner(std::size_t suspect, Nodes among, bool steady);
  Search<Count> confirm(Nodes suspects, bool steady);
  Search<bool> good(Nodes nodes, const char* purpose, int times);
  Search<bool> refute(Lane& lane, std::size_t suspect);
  Search<bool> sweep(Lane& lane, std::string leaf);
  Search<bool> holds(std::size_t node);
  Search<bool> check_parked(std::size_t node, Nodes others);

  Ask ask(Nodes nodes, const char* purpose);
  [[nodiscard]] std::vector<Lane> chunks() const;
  [[nodiscard]] std::optional<std::size_t> peer_for(const Nodes& nodes, const Nodes& used) const;
  [[nodiscard]] bool has_peer(std::size_t node) const;
  void reopen_parked(Lane& lane) const;
  [[nodiscard]] bool leaf_looks_bad(const std::string& leaf) const;
  void accuse_node(std::size_t node, Count shown);
  void accuse_pair(std::size_t parked, std::size_t other, Count shown);
  [[nodiscard]] std::vector<Suspect> with_leaves() const;

  std::vector<Peer> nodes_;
  std::size_t budget_;
  std::vector<Lane> lanes_;
  std::vector<int> trust_;          ///< of each node: good tests it was in
  std::set<std::size_t> accused_;   ///< as nodes
  std::set<std::size_t> parked_;    ///< in an accused pair, and left out so that the others can be seen
  std::set<std::size_t> given_up_;  ///< suspected again and again, and never confirmed
  std::set<std::string> swept_;     ///< leaves whose nodes were tested one by one
  std::vector<Suspect> suspects_;
  std::vector<Wanted*> wanted_;   ///< not handed out yet
  std::vector<Wanted*> running_;  ///< of this round
  std::vector<Tested> tested_;
  std::size_t asked_ = 0, rounds_ = 0;
  bool complete_ = false, budget_ended_ = false;
  std::optional<Search<bool>> search_;  ///< last, so that it dies first
};

/// "node n017", "pair n003 and n112", "leaf l04 (16 nodes)", with where to look, for people.
std::string suspect_words(const Suspect& suspect, const std::vector<Peer>& nodes);

}  // namespace assay::judge
