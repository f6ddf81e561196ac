// searches: which groups that fell short are searched for nodes at fault, the next tests of each search, and its
// findings. The run asks it for tests to make; the judge replays it over the tests that were made.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "orchestrator/judge/evidence/evidence.h"
#include "orchestrator/judge/locate/localiser.h"
#include "orchestrator/judge/verdict.h"
#include "orchestrator/plan/plan.h"

namespace assay::judge {

/// A test that a search asks for: probe and parameters of the step that fell short, on some of its nodes.
struct ExtraTest {
  plan::Step step;  ///< "0012-fabric-cluster.t003"; serves the requirements that fell short, has one look and is no
                    ///< step of the plan
  Test test;        ///< the same as the search knows it
};

/// Result of an extra test. `unusable`: the probe does not measure this on so few nodes, and the search ends.
struct TestShown {
  Reading reading;
  bool unusable = false;
  std::string reason;  ///< when it is unusable or broken
};

/// By how much the value meets the worse of its limits, clamped to 0..1e6: at 1 it is at the limit. `result` has a
/// value.
double share_of(const Result& result);

/// Nodes with a required cell of their own, or of a part of theirs, that is bad or was planned and never measured. They
/// are known without any search.
std::set<std::string> bad_alone(const plan::Plan& plan, const Results& results);

/// Whether the value of `result` misses its limit, with any outcome.
bool misses_limit(const Result& result);

/// Whether `result` is a shortfall that a search is made for: a fail or conditional fail, or a figure that misses its
/// limit under the demanded conditions and is open for another reason.
bool falls_short(const Result& result);

/// Every search that the plan allows and that is due, because its step fell short of a limit or was killed at its
/// deadline. Searches that share a node follow each other: those for required figures in the plan's order, then those
/// for advisory ones. Each leaves out the nodes that fail on their own, and those that the ones before accused on the
/// same ports: another rail is other ports and cables. Others run concurrently. The tests follow only from plan,
/// results and readings, so a resumed run, and every later judgement, goes the same way again.
class Searches {
 public:
  /// `results` of every planned cell; `journal` and `evidence` have the attempts behind them. `plan` must outlive it.
  Searches(const plan::Plan& plan, const Results& results, const Journal& journal, const EvidenceReader& evidence);
  ~Searches();
  Searches(const Searches&) = delete;
  Searches& operator=(const Searches&) = delete;

  /// The tests that are asked for now and have not been taken, of searches in the plan's order; no two have a node in
  /// common. None if all searches have ended.
  [[nodiscard]] std::vector<ExtraTest> open() const;
  /// Whether this test was ever asked for, on these nodes and for this purpose.
  [[nodiscard]] bool has_asked(const Attempt& attempt) const;
  /// The result of the attempts of `test` in `part`; nothing if none of them ended. `part` needs only them and the
  /// facts of their nodes.
  [[nodiscard]] std::optional<TestShown> shown(const ExtraTest& test, const Journal& part,
                                               const EvidenceReader& evidence) const;
  /// Takes the result of an open test. Throws std::logic_error for any other test.
  void take(const std::string& test, const TestShown& shown);
  /// The most tests that may still be asked for.
  [[nodiscard]] std::size_t most_left() const;
  /// Findings so far, of each search that is due.
  [[nodiscard]] std::vector<Localised> found() const;

 private:
  struct Promise;       ///< a requirement that a step fell short of (inquiry.h)
  struct SearchRecord;  ///< one search, from its cause to its findings
  void find_due(const Results& results, const Journal& journal);
  void begin_knee(SearchRecord& inquiry, const Results& results) const;
  [[nodiscard]] static std::vector<std::string> last_nodes(const SearchRecord& inquiry);
  void order();
  void take_attempts(SearchRecord& inquiry, const Journal& journal, const EvidenceReader& evidence) const;
  void begin_ready();
  void begin(SearchRecord& inquiry);
  void next_round(SearchRecord& inquiry);
  void end(SearchRecord& inquiry);
  void feed(SearchRecord& inquiry);
  [[nodiscard]] bool is_known(const plan::Step& step, const std::string& node) const;
  [[nodiscard]] ExtraTest test_of(const SearchRecord& inquiry, Test test) const;
  [[nodiscard]] TestShown shown_by(const SearchRecord& inquiry, const plan::Step& step, const Attempt& attempt,
                                   const Journal& part, const EvidenceReader& evidence) const;
  void tell_finding(const SearchRecord& inquiry, Localised& found) const;
  void tell_knee(const SearchRecord& inquiry, Localised& found) const;
  [[nodiscard]] Localised found_by(const SearchRecord& inquiry) const;

  const plan::Plan& plan_;
  std::map<std::string, const site::Node*> nodes_;  ///< of the site, by name
  std::set<std::string> known_;                     ///< bad on their own
  /// By pairs or by a search that ended; by plane and rail, without a rail: on all.
  std::map<std::string, std::set<std::string>> accused_;
  std::vector<std::unique_ptr<SearchRecord>> inquiries_;
  /// Nodes and purpose of each test, by id.
  std::map<std::string, std::pair<std::vector<std::string>, std::string>> asked_;
};

}  // namespace assay::judge
