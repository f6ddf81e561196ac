// verdict: the judgement of every planned cell, and of the whole.
#pragma once

#include <deque>
#include <expected>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "orchestrator/files/atomic_file.h"
#include "orchestrator/files/shared.h"
#include "probes/core/error.h"
#include "probes/core/fields.h"
#include "probes/core/record.h"
#include "probes/core/statistics.h"
#include "probes/core/words.h"

namespace assay::judge {

/// A list that many results of a fleet have in common.
template <class T>
using SharedList = files::Shared<std::vector<T>>;

/// The judgement of one requirement on one subject. For a lower limit L and guard band w: pass y >= L + w;
/// conditional_pass L <= y < L + w; conditional_fail L - w < y < L; fail y <= L - w. decision.h has the other
/// conditions of a pass and a fail.
enum class Outcome { pass, conditional_pass, conditional_fail, fail, inconclusive, not_measured, error };

constexpr auto words_of(Outcome) { return names_as_words<Outcome>(); }

/// The word of `outcome`.
constexpr const char* to_string(Outcome outcome) { return word_of(outcome).data(); }

/// The judgement of the whole.
enum class Overall { accepted, rejected, incomplete };

constexpr auto words_of(Overall) { return names_as_words<Overall>(); }

/// The word of `overall`.
constexpr const char* to_string(Overall overall) { return word_of(overall).data(); }

/// A demanded condition and the value seen.
struct ConditionSeen {
  std::string name;
  std::string demanded;       ///< "= true", ">= 0.9"
  std::optional<Value> seen;  ///< absent: not recorded
  bool met = false;
  bool operator==(const ConditionSeen&) const = default;
};

/// Findings in samples besides their statistic.
enum class FindingKind {
  two_states,
  trend,
  serial_correlation,
  time_cap,
  sample_cap,
  unsteady_between_runs,
  stalled,
};

constexpr auto words_of(FindingKind) { return names_as_words<FindingKind>(); }

/// One of them, and whether it makes a pass or a fail inconclusive.
struct SteadinessFinding {
  FindingKind kind = FindingKind::two_states;
  bool opens = false;
  std::string words;  ///< for people, without a full stop
};

/// An attempt that a cell is judged without, because its surroundings were not those that the requirement demands.
struct SetAside {
  int attempt = 0;
  std::string reason;  ///< one sentence
};

/// The parts of the standard uncertainty, each for the value itself.
struct UncertaintyTerms {
  double repeatability = 0;  ///< of the attempts: their deviation from each other, or `within` if that is more
  double within = 0;         ///< the part seen in the samples within the attempts
  double instrument = 0;
  double reference = 0;
};

/// One cell with the numbers that led to its outcome; all in the metric's base unit.
struct Result {
  std::string requirement;
  Subject subject;
  std::string node;  ///< if it was measured
  std::string step;  ///< empty if nothing was planned for it
  bool required = true;
  bool unchecked = false;  ///< the machine does not report the figure, and the profile then judges nothing
  Outcome outcome = Outcome::not_measured;
  std::string reason;           ///< one sentence, always
  std::string unit;             ///< empty: a condition was demanded, which is what `conditions` have, and no figure
  std::optional<double> value;  ///< the statistic judged: its mean over the attempts; of min and max the worst
  std::optional<double> with = {},
                        without = {};  ///< of a contrast, in its metric's unit: mean with the feature on, off
  std::size_t samples = 0;             ///< of all attempts that it is judged by
  int attempts = 0;                    ///< that measured or should have, those set aside among them
  std::vector<SetAside> set_aside = {};
  std::vector<double> each = {};  ///< the statistic of each attempt that it is judged by
  std::optional<Interval> interval;
  std::optional<double> bound_low = {}, bound_high = {};  ///< one-sided order-statistic bounds of all samples
  std::optional<double> uncertainty;              ///< standard uncertainty u of the value (and of a measured reference)
  std::optional<UncertaintyTerms> terms = {};     ///< its parts
  std::optional<double> between = {};             ///< standard deviation between attempts that it was computed with
  std::size_t between_steps = 0;                  ///< over which that was pooled; 0: of this cell's own attempts
  std::optional<double> degrees_of_freedom = {};  ///< of u; absent: infinite
  std::optional<double> guard_factor = {};        ///< g: the guard band is g * u
  std::optional<double> reference;                ///< the reference of a relative limit
  std::optional<double> limit_low, limit_high;    ///< L, absolute
  std::optional<double> acceptance_low, acceptance_high;  ///< A = L + w, or L - w for an upper limit
  std::optional<double> margin;        ///< distance to the nearer limit as a share of that limit; negative: missed
  std::optional<double> false_accept;  ///< probability that a unit exactly at the limit shows a value as good as this
  std::vector<SteadinessFinding> findings = {};
  SharedList<ConditionSeen> conditions;
  SharedList<std::string> evidence;  ///< paths in the run directory

  /// Whether a condition was judged in place of a figure.
  [[nodiscard]] bool is_of_demand() const { return unit.empty(); }
};

/// The demanded and the seen value of `result`, which is of a demand: "one of \"off\"" and "\"on\"", all different
/// values with commas; "-" for nothing seen.
std::string demanded_text(const Result& result);
std::string seen_text(const Result& result);

/// The members of a result in verdict.json, but for `unchecked`, which old ones do not have.
template <class Io, Of<Result> R>
void fields(Io& io, R& r) {
  io("requirement", r.requirement), io("subject", r.subject), io("node", r.node), io("step", r.step);
  io("required", r.required), io("outcome", r.outcome), io("reason", r.reason), io("unit", r.unit);
  io("value", r.value), io("with", r.with), io("without", r.without), io("samples", r.samples),
      io("attempts", r.attempts), io("set_aside", r.set_aside);
  io("each", r.each), io("interval", r.interval), io("bound_low", r.bound_low), io("bound_high", r.bound_high);
  io("uncertainty", r.uncertainty), io("terms", r.terms), io("between", r.between);
  io("between_steps", r.between_steps), io("degrees_of_freedom", r.degrees_of_freedom);
  io("guard_factor", r.guard_factor), io("reference", r.reference), io("limit_low", r.limit_low);
  io("limit_high", r.limit_high), io("acceptance_low", r.acceptance_low), io("acceptance_high", r.acceptance_high);
  io("margin", r.margin), io("false_accept", r.false_accept), io("findings", r.findings);
  io("conditions", r.conditions), io("evidence", r.evidence);
}

/// Of millions: a vector would be copied as it grows, and copied again when it is handed on.
using Results = std::deque<Result>;

/// Kind of a departure from the method. attempt: one attempt of a step. not_checked: a requirement that the machine
/// reported too little for. relative_only: limits that only the machines themselves set. run: anything else.
enum class DeviationKind { run, attempt, not_checked, relative_only };

constexpr auto words_of(DeviationKind) { return names_as_words<DeviationKind>(); }

/// A departure from the method that a reader must know: an interrupted attempt, a resumed run, quick parameters.
struct Deviation {
  std::string what;
  std::string step;  ///< empty: of the whole run
  DeviationKind kind = DeviationKind::run;
  std::string said = {};  ///< kind attempt: `what` without the attempt, so that several steps have the same
};

/// Kind of a culprit.
enum class Fault { node, pair, leaf };

constexpr auto words_of(Fault) { return names_as_words<Fault>(); }

/// How an extra test ended, by control tests of the same size. broken: it did not run to its end, which counts as
/// short.
enum class TestOutcome { good, short_of_limit, broken };

constexpr auto words_of(TestOutcome) {
  using enum TestOutcome;
  return std::to_array<Word<TestOutcome>>({{good, "good"}, {short_of_limit, "short"}, {broken, "broken"}});
}

/// How far a search came.
enum class SearchState {
  found,         ///< it names the culprits
  clear,         ///< the others met the limit together; nothing is named
  common_cause,  ///< all groups of one size, or most pairs, are alike and short together; no node is accused
  undecided,     ///< it ended without naming anything
  open,          ///< the run ended before it
  not_searched,  ///< none was made; the reason is given
};

constexpr auto words_of(SearchState) { return names_as_words<SearchState>(); }

/// Culprits where nodes that work together missed a limit.
struct Culprit {
  Fault fault = Fault::node;
  std::vector<std::string> nodes;  ///< one, two, or all of the leaf
  std::string leaf;                ///< fault leaf: its name
  bool unsteady = false;           ///< some of the tests that should have shown it were good
  std::vector<std::string> tests;  ///< ids of the extra tests or steps that show it
  std::string words;               ///< one sentence, with where to look
};

/// An extra test that a search made.
struct MadeTest {
  std::string id, purpose;
  TestOutcome outcome = TestOutcome::good;
  std::size_t nodes = 0;
  std::optional<double> share;    ///< value over limit, or limit over value for an upper one; of the worst limit
  std::optional<double> control;  ///< the same of its controls, on average
};

/// Findings on the culprits of one step that fell short, or among the pairs of one requirement. It changes no outcome.
struct Localised {
  std::vector<std::string> requirements;
  std::string step;  ///< empty: seen from the planned pairs themselves
  std::string rail;  ///< whose ports were tested; empty: the nodes' own choice
  SearchState state = SearchState::undecided;
  std::string reason;                  ///< one sentence
  std::size_t budget = 0;              ///< extra tests at most, by the plan's rule for as many culprits
  std::vector<std::string> excluded;   ///< nodes that were known to be bad before, and left out
  std::vector<std::string> undecided;  ///< nodes neither accused nor seen to work together with the others
  std::vector<Culprit> culprits;
  std::vector<MadeTest> tests;  ///< in the order asked
};

/// How far a knee is known. none: all nodes keep the figure. open: the fall is of certain nodes, or the groups do not
/// show it.
enum class KneeState { none, found, open };

constexpr auto words_of(KneeState) { return names_as_words<KneeState>(); }

/// A growing group, or a test between two of them.
struct KneePoint {
  std::size_t nodes = 0;
  double value = 0;                    ///< the figure, of a sum the part of each node
  std::optional<double> limit = {};    ///< alike; nothing for the smallest group, which is the first plateau
  bool kept = false;                   ///< within the guard band of its limit
  std::optional<double> counter = {};  ///< of KneeFound::counter, a mean over the nodes
  std::string step = {};               ///< or test
};

/// The counter that rose where a figure falls out, as a mean over nodes.
struct KneeCounter {
  std::string name;
  double before = 0, at = 0;  ///< median of the attempts of groups that keep the figure; of the first that does not
  double spread = 0;          ///< deviation of those before
};

/// The knee of one figure on one rail: how many nodes keep its plateau.
struct KneeFound {
  std::string requirement, rail;
  KneeState state = KneeState::open;
  std::size_t kept = 0;                ///< the largest number of nodes seen to keep it below those that do not
  std::size_t lost = 0;                ///< the smallest that does not; 0: none
  std::string reason = {};             ///< one sentence
  std::vector<KneePoint> points = {};  ///< by rising number of nodes
  std::optional<KneeCounter> counter = {};
};

/// The verdict of one node.
struct NodeVerdict {
  std::string node;
  Overall outcome = Overall::incomplete;
  std::size_t required = 0;  ///< required cells that count for it
  std::size_t passed = 0;    ///< of them
  std::string reason;        ///< the first cell that fails, or else that is open; empty if accepted
};

/// The verdict of one run.
struct Verdict {
  std::string plan_sha256, run_id;
  std::string profile, site;
  bool simulated = false;  ///< nothing was measured, so it is never accepted or rejected
  Overall overall = Overall::incomplete;
  std::string reason;                         ///< one sentence
  Results results;                            ///< in plan order, then subject order
  std::vector<Localised> localised;           ///< pairs first, then groups, each in plan order
  std::map<std::string, std::size_t> counts;  ///< outcome word to number of results, all outcomes present
  std::vector<Deviation> deviations;
  std::vector<NodeVerdict> nodes = {};  ///< in the site's order
  std::vector<KneeFound> knees = {};    ///< in the order of profile and rails
};

/// The formats of verdict.json that are read. without_knees: assay.verdict/3. old: assay.verdict/2, also without
/// `unchecked` of a result and `kind` and `said` of a deviation.
enum class VerdictFormat { old, without_knees, current };

constexpr auto words_of(VerdictFormat) {
  using enum VerdictFormat;
  return std::to_array<Word<VerdictFormat>>(
      {{old, "assay.verdict/2"}, {without_knees, "assay.verdict/3"}, {current, "assay.verdict/4"}});
}

/// Hands over the bytes of verdict.json in pieces: sorted keys, one-space indent, final newline; no clock in it. What
/// is not UTF-8 in a text is replaced by U+FFFD.
void write_verdict(const Verdict& verdict, const files::TextSink& sink, VerdictFormat format = VerdictFormat::current);

/// The same as one text.
std::string verdict_text(const Verdict& verdict, VerdictFormat format = VerdictFormat::current);

/// Whether `text` is that, byte for byte; without a second copy of it.
bool is_text_of(const Verdict& verdict, std::string_view text, VerdictFormat format = VerdictFormat::current);

/// The format of the verdict `text`, by the value of its member `schema`, near its end because keys are sorted; current
/// if it is not known.
VerdictFormat format_of(std::string_view text);

/// Reads verdict.json back, of either format; strict.
std::expected<Verdict, InputError> read_verdict(std::string_view text, const std::string& where);

/// Exit code of `overall`: 0 accepted, 1 rejected, 3 incomplete.
int exit_code(Overall overall);

}  // namespace assay::judge
