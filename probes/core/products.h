// products: values that a probe's description computes from its parameters before it runs.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "probes/core/record.h"

namespace assay {

/// The words of `text` between characters `between`; empty ones are left out.
std::vector<std::string_view> words_in(std::string_view text, char between);

/// The product of the factors in `text`, with spaces between: a number, a parameter, "ranks" for their number,
/// "record|322957" for a parameter or, if it is 0, the number, "slots+32" for a sum of such; a factor that begins with
/// / divides, and by 0 gives 0. A parameter that is not in `parameters` or no number counts as 0.
double product_of(std::string_view text, const Values& parameters, std::size_t ranks);

/// Whether every clause of `when` holds: "operation=mixed tiers~shared", = for the value itself, ~ for one of a list
/// with commas between. An empty one always holds.
bool holds(std::string_view when, const Values& parameters);

/// Why `text` cannot be computed with a probe that has these parameters; empty if it can.
std::string product_problem(std::string_view text, const std::vector<std::string>& parameters);

/// Why `when` cannot be asked of a probe that has these parameters; empty if it can.
std::string when_problem(std::string_view when, const std::vector<std::string>& parameters);

}  // namespace assay
