// shell: the frame of every page of nights.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "orchestrator/drift/report.h"

namespace assay::nightly {

/// A whole page with `title` (escaped) and `body`, which is HTML. It loads nothing. Over simulated figures a banner and
/// a mark across the page say so.
std::string page_of(std::string_view title, bool simulated, const std::string& body);

/// The flags of a report as a table, the worst first; empty if there is none.
std::string flags_table(const std::vector<const drift::Flag*>& flags);

/// Flags by how much they matter: confirmed ones first, then by the size of the change.
std::vector<const drift::Flag*> by_weight(const std::vector<drift::Flag>& flags);

/// "reset (remapping_pending): A reset … (NVIDIA …; table of 2026-11-27)"; "not known" without a row.
std::string action_words(const drift::Flag& flag, drift::Date today);

/// "-3.2 % (-4.1 to -2.3 %)", of a count "4 events".
std::string change_words(const drift::Flag& flag);

}  // namespace assay::nightly
