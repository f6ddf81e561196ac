// level: one metric of class level, night after night: residuals, scores and charts of all its series.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "orchestrator/drift/policy.h"
#include "orchestrator/drift/report.h"

namespace assay::drift {

/// Days since 1970-01-01.
using Day = std::int32_t;
inline constexpr Day kNever = std::numeric_limits<Day>::min() / 2;
/// The date of a day.
inline Date date_of(Day day) { return Date{std::chrono::days{day}}; }

inline constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

/// Mean and sum of squared deviations of `n` visits.
struct Reference {
  double mean = 0, squares = 0, n = 0;
  void add(double y);
};

/// Visits before a series has charts; until the warm-up of the policy is over their flags are only watched.
inline constexpr int kVisitsForCharts = 5;

/// Visits whose figures are kept to estimate the size of a shift.
inline constexpr std::size_t kRecent = 32;

/// State of one series. All figures are logarithms without the cohort's shift; smaller is worse.
struct SeriesState {
  Reference now, at_small, at_large;  ///< the reference; and as it was before each chart left 0
  Reference all;                      ///< every visit since the unit began anew, those of held references too
  double least = std::numeric_limits<double>::infinity();
  double c_small = 0, c_large = 0;
  double last_residual = 0;         ///< cut to the winsor limit
  float products = 0, squares = 0;  ///< of residuals of consecutive nights, and of the earlier ones, in variances
  Day last_day = kNever;
  Day onset_small = 0, onset_large = 0;            ///< first visit since the chart was 0
  std::uint32_t since_small = 0, since_large = 0;  ///< visits since then
  std::uint32_t bad = 0;                           ///< bit 0: the last visit had a bad score, and so on
  std::uint32_t cohort = kNone;                    ///< of the last visit
  std::uint32_t inflated = 0;                      ///< visits left with a wider variance after a change of cohort
  std::uint32_t held = 0;                          ///< visits since a flag's onset; 0: none, the reference moves
  std::uint32_t visits = 0;                        ///< in `recent`, at most kRecent count
  std::array<float, kRecent> recent = {};          ///< figures of the last visits, a ring
  double anchor = 0;                               ///< they are relative to it
  std::uint32_t accepted = 0;                      ///< 1: as it is, not compared with the others
};

/// State of a cohort.
struct CohortState {
  double shift = 0;     ///< of the last night
  double variance = 0;  ///< typical one of its series
  double nu0 = 0;       ///< its weight, in degrees of freedom
};

/// Correlation of residuals from one night to the next.
struct Serial {
  double rho = 0;    ///< the median over the series, which a few faulty ones do not move
  double pairs = 0;  ///< of consecutive nights behind it, about
};

/// The share to be taken out of the residuals of a metric: its `own` correlation, with that of all metrics (`usual`) in
/// place of pairs that it has not yet, one standard error on the safe side; 0 to 0.9. 0 until `usual` has enough.
double serial_correlation(const Serial& own, const Serial& usual);

/// Tonight's figure of a slot.
struct LevelInput {
  std::uint32_t slot = 0, cohort = 0;
  double value = 0;       ///< base unit
  double partner = 0;     ///< of a figure of two units: the other one's part of its logarithm (excess())
  bool no_cliff = false;  ///< the unit was moved tonight
  double accepted = 0;    ///< the figure of the signed acceptance; 0: none
};

/// A fresh test: of tonight.
struct LevelRetest {
  std::uint32_t slot = 0, cohort = 0;
  double value = 0;
  double partner = 0;  ///< as in LevelInput
  double y = 0;        ///< out: its logarithm without the cohort's shift; NaN where the value has none
};

/// A flag that a rule raises tonight.
struct Raised {
  std::uint32_t slot = 0;
  Rule rule = Rule::small_shift;
  Day onset = 0;
  bool learning = false;                 ///< raised before the warm-up was over
  double effect = 0, low = 0, high = 0;  ///< logarithm of the ratio, with its 95 % interval
  Arithmetic numbers;
};

/// A unit that fell below all of its history tonight: fresh tests decide.
struct CliffCandidate {
  std::uint32_t slot = 0;
  double T = 0, effect = 0;
};

/// Tonight's figure of a series whose reference is held, or that charts are kept for.
struct Followed {
  std::uint32_t slot = 0;
  double y = 0, effect = 0;
  bool charts_clear = false;  ///< both charts are at 0
};

/// Results of a night.
struct LevelOutput {
  std::vector<Raised> raised;
  std::vector<CliffCandidate> cliffs;
  std::vector<Followed> followed;                              ///< of flagged series
  std::vector<std::pair<std::uint32_t, const char*>> refused;  ///< slots that cannot be judged, and why
  std::map<std::uint32_t, std::vector<double>> levels;         ///< by cohort: x - m of every judged unit
  std::map<std::uint32_t, std::vector<double>> accepted;       ///< by cohort: x - that of the acceptance
};

/// Limits of tonight.
struct LevelLimits {
  double h_small = 0, h_large = 0;
  int cliff_history = 0;
  Serial usual = {};  ///< of all metrics, up to last night
};

/// All series of one metric. Slots are in the order of the units' ids.
class LevelMetric {
 public:
  LevelMetric() = default;
  LevelMetric(const Policy& policy, bool lower_is_better, double min_effect);

  std::vector<SeriesState> states;               ///< by slot
  std::map<std::uint32_t, CohortState> cohorts;  ///< by number
  Serial serial;                                 ///< up to last night

  /// Takes `inputs`, at most one for each slot, and `retests`, both in ascending order of slots; fills in `y` of those.
  /// Every flag that it returns must be held.
  LevelOutput night(Day day, std::span<const LevelInput> inputs, std::span<LevelRetest> retests,
                    const LevelLimits& limits);
  /// The reference of a flag of `rule` on `slot` from tonight on.
  void hold(std::uint32_t slot, Rule rule);
  /// Continues with the held reference; the charts begin at 0. After a repair (`repaired`) the visits of the fault
  /// count no more.
  void release(std::uint32_t slot, bool repaired = false);
  /// Forgets everything of the series; `accepted`: its next level is right, however low.
  void reset(std::uint32_t slot, bool accepted) { states[slot] = {.accepted = accepted ? 1U : 0U}; }
  /// The logarithm of a figure, smaller is worse; NaN if it has none.
  [[nodiscard]] double figure(double value) const;
  /// The median of all references; nothing if there are too few.
  [[nodiscard]] std::optional<double> typical() const;
  /// How far `slot` is over `typical`, as of last night: its usual level, and its fault if it has a flag. A figure of
  /// two units is one's own without the other one's part.
  [[nodiscard]] double excess(std::uint32_t slot, std::optional<double> typical) const;

 private:
  struct Seen;
  struct Tonight;
  [[nodiscard]] std::vector<std::vector<Seen>> seen_by_cohort(std::span<const LevelInput> inputs, LevelOutput& out);
  void find_shift(std::span<Seen> seen, std::uint32_t cohort);
  void find_variance(std::span<Seen> seen, std::uint32_t cohort, double rho);
  void find_scores(std::span<Seen> seen, const Tonight& tonight, std::uint32_t cohort);
  void rank(std::span<Seen> seen);
  void compare_with_fleet(std::span<Seen> seen, std::uint32_t cohort);
  void take(Seen& one, const Tonight& tonight, LevelOutput& out);
  void move_charts(SeriesState& state, double z, Day day);
  void follow(Seen& one, Day day, LevelOutput& out);
  bool raise(const Seen& one, const Tonight& tonight, LevelOutput& out);
  [[nodiscard]] Raised flag_of(const Seen& one, const Tonight& tonight, Rule rule) const;
  void learn(const Seen& one, Day day);
  void find_serial();
  [[nodiscard]] double variance(const SeriesState& state, const CohortState& cohort, double rho) const;

  Policy policy_;
  double sign_ = 1, min_effect_ = 0;
  std::map<std::size_t, std::vector<double>> ranks_;  ///< by number of peers, the last few
};

}  // namespace assay::drift
