// shade: the distance of a result from its acceptance limit, as one of a few classes for a matrix.
#pragma once

#include <optional>
#include <string>

#include "orchestrator/judge/verdict.h"

namespace assay::figures {

/// From good to bad; the last three are no figure, and are drawn with strokes so that no colour or grey is taken for
/// good.
enum class Shade {
  pass_wide,
  pass_middle,
  pass_narrow,
  guard_band,
  fail_near,
  fail_far,
  inconclusive,
  not_measured,
  error
};

/// Every shade, in the order of a legend.
inline constexpr Shade kShades[] = {Shade::pass_wide,    Shade::pass_middle,  Shade::pass_narrow,
                                    Shade::guard_band,   Shade::fail_near,    Shade::fail_far,
                                    Shade::inconclusive, Shade::not_measured, Shade::error};

/// Distance of the value to the nearer acceptance limit as a share of that side's limit, negative when it is missed;
/// absent without a value, and where a limit is 0.
std::optional<double> acceptance_margin(const judge::Result& result);

/// The class of `result`: its outcome, and for pass and fail how far (5 % and 20 % beyond, 10 % short).
Shade shade_of(const judge::Result& result);

/// The class in the style sheet: "s-pass_wide".
std::string shade_class(Shade shade);

/// What a legend says of `shade`; `margins` is whether the results have a distance at all.
std::string shade_words(Shade shade, bool margins);

/// Whether `a` is worse than `b`, which decides what a cell shows that stands for several results: error, fail,
/// conditional fail, inconclusive, not measured, conditional pass, pass; among equals the smaller distance to the
/// acceptance limit.
bool is_worse(const judge::Result& a, const judge::Result& b);

}  // namespace assay::figures
