// shade: the distance of a result from its acceptance limit, as one of a few classes.
#include "reports/figures/shade.h"

namespace assay::figures {
namespace {

constexpr double kWide = 0.20;
constexpr double kNarrow = 0.05;
constexpr double kFar = -0.10;

}  // namespace

Shade shade_of(const judge::Result& result) {
  const auto margin = acceptance_margin(result);
  switch (result.outcome) {
    case judge::Outcome::pass:
      return !margin || *margin >= kWide ? Shade::pass_wide
             : *margin >= kNarrow        ? Shade::pass_middle
                                         : Shade::pass_narrow;
    case judge::Outcome::conditional_pass:
      return result.margin && *result.margin >= -kFar ? Shade::open_pass : Shade::guard_band;
    case judge::Outcome::conditional_fail:
      return result.margin && *result.margin <= kFar ? Shade::open_fail : Shade::guard_band;
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

std::string shade_words(Shade shade, bool margins) {
  switch (shade) {
    case Shade::pass_wide:
      return margins ? "pass by 20 % or more" : "pass";
    case Shade::pass_middle:
      return "pass by 5 to 20 %";
    case Shade::pass_narrow:
      return "pass by less than 5 %";
    case Shade::guard_band:
      return margins ? "undecided, limit is near" : "undecided";
    case Shade::open_pass:
      return "undecided, meets limit";
    case Shade::open_fail:
      return "undecided, misses limit";
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

}  // namespace assay::figures
