// shown: a comparison for terminals, programs and browsers.
#pragma once

#include <cstddef>
#include <string>
#include <utility>

#include "reports/compare/comparison.h"

namespace assay::compare {

/// The figures of A and B in one scale; `none` for one that is missing.
std::pair<std::string, std::string> value_words(const RequirementPair& pair, const char* none);
/// "-3.01 %" or "-4 ns": of the two figures that are shown, B less A; "-" if one is missing.
std::string change_words(const RequirementPair& pair);
/// "+3.1 %", "-4e-09 s" or "—": the shift that a test found.
std::string shift_words(const RankTest& test, const std::string& unit);
/// "+2.0 to +4.1 %"; "—" if there is none.
std::string interval_words(const RankTest& test, const std::string& unit);
/// "not shown": a finding for people.
std::string finding_words(Finding finding);

/// Outcomes that are not the same in both runs: those that got worse first.
std::vector<std::pair<const RequirementPair*, const CellPair*>> changed_outcomes(const Comparison& all);

/// Two columns of the runs compared, the notes, a line for each requirement, changes of outcome, and what the words
/// mean. `width`: columns of the terminal, 0 for no end.
std::string comparison_table(const Comparison& all, const Side& a, const Side& b, std::size_t width);

/// assay.comparison/1: every requirement and every cell.
std::string comparison_json(const Comparison& all, const Side& a, const Side& b);

/// The same as a page that loads nothing, with a figure for each requirement.
std::string comparison_page(const Comparison& all, const Side& a, const Side& b);

}  // namespace assay::compare
