// shade: the distance of a result from its acceptance limit, as one of a few classes for a matrix.
#pragma once

#include <string>

#include "orchestrator/judge/overall/ranking.h"
#include "probes/core/words.h"

namespace assay::figures {

/// From good to bad, the order of a legend; an undecided figure is near its limit, or 10 % or more from it; the last
/// three are no figure, and are drawn with strokes so that no colour or grey is taken for good.
enum class Shade {
  pass_wide,
  pass_middle,
  pass_narrow,
  guard_band,
  open_pass,
  open_fail,
  fail_near,
  fail_far,
  inconclusive,
  not_measured,
  error
};

constexpr auto words_of(Shade) { return names_as_words<Shade>(); }

using judge::acceptance_margin;
using judge::is_worse;

/// The class of `result`: its outcome, and how far: of a pass from the acceptance limit (5 % and 20 %), of failed and
/// undecided results from the limit (10 %), however wide the guard band is.
Shade shade_of(const judge::Result& result);

/// Text of a legend for `shade`; `margins` is whether the results have a distance at all.
std::string shade_words(Shade shade, bool margins);

}  // namespace assay::figures
