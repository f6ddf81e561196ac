// chance: shortfalls that a whole fleet shows by chance, or that are too small to matter, reject nothing.
#pragma once

#include "orchestrator/judge/verdict.h"

namespace assay::judge {

/// Share of the failures of one requirement that may be by chance.
inline constexpr double kFalseDiscoveries = 0.05;
/// A shortfall below this share of the limit decides nothing, however well it is known.
inline constexpr double kSmallestEffect = 0.01;

/// Turns every `fail` that may be by chance into a conditional_fail with the reason. A failure is kept when it survives
/// the step-up procedure of Benjamini and Hochberg (1995) at kFalseDiscoveries over all subjects of its requirement,
/// and the value misses the limit by at least kSmallestEffect of it and three standard uncertainties of its attempts.
/// The probability of a figure that bad at the limit is 1 - false_accept. Figures without uncertainty, such as counts
/// of errors, are not a matter of chance: they stay.
void hold_against_chance(Results& results);

}  // namespace assay::judge
