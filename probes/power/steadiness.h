// steadiness: whether temperatures, clocks and power of a loaded machine have stopped moving. Pure: numbers with their
// times in, a mark or the reason why there is none out.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <string>

namespace assay::power {

/// The quantity of a series; decides how much it may move. temperature in degC, clock in Hz, power in W.
enum class SteadyKind { temperature, clock, power };

/// How much a series may move and still be steady. The limits are proposals of this project, not of a document.
struct SteadyLimits {
  double window_s = 600;              ///< the time over which a slope is taken
  double temperature_k_s = 0.1 / 60;  ///< 0.1 K a minute
  double power_share = 0.005;         ///< of its mean, over the window
  double clock_share = 0.005;         ///< of its mean, over the window
  double surely = 3;                  ///< standard errors by which a slope must be known
};

/// The limits of a rehearsal over seconds: 1 K and 1 % in the window. Sensors have steps of 1 K, and means of 0.4 s
/// scatter by 0.3 % on a GPU at its power limit, so that no slope of 0.5 % in 8 s can be known.
constexpr SteadyLimits rehearsal_limits(double window_s) {
  return {.window_s = window_s, .temperature_k_s = 1 / window_s, .power_share = 0.01, .clock_share = 0.01};
}

/// The slope of one series over the last window, with its standard error, both a second.
struct SteadySlope {
  double slope = 0, error = 0, mean = 0;
  bool staircase = false;  ///< a few steps of one sign, each large for the allowed movement: no slope is known
};

/// Several series of one machine. Each look asks whether all of them are steady.
class Steadiness {
 public:
  explicit Steadiness(const SteadyLimits& limits) : limits_(limits) {}

  /// Takes one reading of the series `name`; `at_s` rises from one reading of a series to the next.
  void add(const std::string& name, SteadyKind kind, double at_s, double value);
  /// Why the machine is not known to be steady at `now_s`: a series whose slope may be over its limit, by three
  /// standard errors, or one with less than nine tenths of a window. Empty: it is steady.
  [[nodiscard]] std::string unsteady(double now_s) const;
  /// Why the machine surely moves at `now_s`: a series whose slope is over its limit by three standard errors. Empty:
  /// nothing shows that it does.
  [[nodiscard]] std::string moving(double now_s) const;

 private:
  struct Point {
    double at_s = 0, value = 0;
  };
  struct Series {
    SteadyKind kind = SteadyKind::temperature;
    std::deque<Point> points;
  };
  [[nodiscard]] std::optional<SteadySlope> slope_in(const Series& series, double now_s) const;
  [[nodiscard]] double limit_of(const Series& series, double mean) const;
  [[nodiscard]] std::string words(const std::string& name, const Series& series, const SteadySlope& slope) const;

  SteadyLimits limits_;
  std::map<std::string, Series, std::less<>> series_;
};

/// When a load is steady, and when enough was seen after it.
class SteadyMark {
 public:
  /// `hold_s` is how long the machine is watched after its mark.
  SteadyMark(const SteadyLimits& limits, double hold_s) : limits_(limits), hold_s_(hold_s) {}

  /// Looks at `series` at `now_s`. A mark is set when nothing moves; it is withdrawn when, a window or more after it,
  /// something surely moves, as it does when warm coolant comes back late.
  void look(const Steadiness& series, double now_s);
  /// When the machine became steady, in the times of the readings; nothing while it is not.
  [[nodiscard]] std::optional<double> at_s() const { return mark_s_; }
  /// Whether it has been steady for the whole of `hold_s`.
  [[nodiscard]] bool held(double now_s) const { return mark_s_ && now_s - *mark_s_ >= hold_s_; }
  /// How many marks were withdrawn.
  [[nodiscard]] int withdrawn() const { return withdrawn_; }
  /// Why it is not steady, by the last look; empty if steady.
  [[nodiscard]] const std::string& why_not() const { return why_not_; }

 private:
  SteadyLimits limits_;
  double hold_s_;
  std::optional<double> mark_s_;
  int withdrawn_ = 0;
  std::string why_not_ = "nothing was read yet";
};

}  // namespace assay::power
