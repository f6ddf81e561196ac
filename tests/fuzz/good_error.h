// good_error: what every error of a reader must be.
#pragma once

#include <cstdlib>
#include <string>

#include "probes/core/text.h"

namespace assay {

/// Whether `read` has a value; aborts where its error says nothing, or shows of the input what a terminal obeys.
template <class Read>
bool is_good(const Read& read) {
  if (read) return true;
  const std::string shown = read.error().text();
  if (read.error().what.empty() || has_controls(shown) || harmless_page(shown) != shown) std::abort();
  return false;
}

}  // namespace assay
