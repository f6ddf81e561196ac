// shade: the distance of a result from its acceptance limit, as one of a few classes.
#include "reports/figures/shade.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace assay::figures {
namespace {

constexpr double kWide = 0.20;
constexpr double kNarrow = 0.05;
constexpr double kFar = -0.10;

/// A failure that is known comes before what is not known, and that before anything good.
int severity(judge::Outcome outcome) {
  switch (outcome) {
    case judge::Outcome::pass:
      return 0;
    case judge::Outcome::conditional_pass:
      return 1;
    case judge::Outcome::not_measured:
      return 2;
    case judge::Outcome::inconclusive:
      return 3;
    case judge::Outcome::conditional_fail:
      return 4;
    case judge::Outcome::fail:
      return 5;
    case judge::Outcome::error:
      return 6;
  }
  return 6;
}

}  // namespace

std::optional<double> acceptance_margin(const judge::Result& result) {
  if (!result.value) return std::nullopt;
  std::optional<double> nearest;
  const auto side = [&](const std::optional<double>& limit, const std::optional<double>& acceptance, double sign) {
    if (!limit || !acceptance) return true;
    if (*limit == 0) return false;
    const double distance = sign * (*result.value - *acceptance) / std::abs(*limit);
    nearest = std::min(nearest.value_or(distance), distance);
    return true;
  };
  if (!side(result.limit_low, result.acceptance_low, 1) || !side(result.limit_high, result.acceptance_high, -1))
    return std::nullopt;
  return nearest;
}

Shade shade_of(const judge::Result& result) {
  const auto margin = acceptance_margin(result);
  switch (result.outcome) {
    case judge::Outcome::pass:
      return !margin || *margin >= kWide ? Shade::pass_wide
             : *margin >= kNarrow        ? Shade::pass_middle
                                         : Shade::pass_narrow;
    case judge::Outcome::conditional_pass:
    case judge::Outcome::conditional_fail:
      return Shade::guard_band;
    case judge::Outcome::fail:
      return margin && *margin > kFar ? Shade::fail_near : Shade::fail_far;
    case judge::Outcome::inconclusive:
      return Shade::inconclusive;
    case judge::Outcome::not_measured:
      return Shade::not_measured;
    case judge::Outcome::error:
      return Shade::error;
  }
  return Shade::error;
}

std::string shade_class(Shade shade) {
  switch (shade) {
    case Shade::pass_wide:
      return "s-pass_wide";
    case Shade::pass_middle:
      return "s-pass_middle";
    case Shade::pass_narrow:
      return "s-pass_narrow";
    case Shade::guard_band:
      return "s-guard_band";
    case Shade::fail_near:
      return "s-fail_near";
    case Shade::fail_far:
      return "s-fail_far";
    case Shade::inconclusive:
      return "s-inconclusive";
    case Shade::not_measured:
      return "s-not_measured";
    case Shade::error:
      return "s-error";
  }
  return "s-error";
}

std::string shade_words(Shade shade, bool margins) {
  switch (shade) {
    case Shade::pass_wide:
      return margins ? "pass by 20 % or more" : "pass";
    case Shade::pass_middle:
      return "pass by 5 to 20 %";
    case Shade::pass_narrow:
      return "pass by less than 5 %";
    case Shade::guard_band:
      return "within the guard band";
    case Shade::fail_near:
      return "fail by less than 10 %";
    case Shade::fail_far:
      return margins ? "fail by 10 % or more" : "fail";
    case Shade::inconclusive:
      return "inconclusive";
    case Shade::not_measured:
      return "not measured";
    case Shade::error:
      return "error";
  }
  return "error";
}

bool is_worse(const judge::Result& a, const judge::Result& b) {
  if (a.outcome != b.outcome) return severity(a.outcome) > severity(b.outcome);
  constexpr double kNone = std::numeric_limits<double>::infinity();
  return acceptance_margin(a).value_or(kNone) < acceptance_margin(b).value_or(kNone);
}

}  // namespace assay::figures
