// interruption: what counts as an interruption of a load of hours.
#pragma once

#include "probes/core/words.h"

namespace assay {

/// How work was interrupted: a rank's process ended, a rank did not answer, or it reported an error.
enum class Interruption { ended, silent, error };

constexpr auto words_of(Interruption) { return names_as_words<Interruption>(); }

/// Their number.
inline constexpr std::size_t kInterruptions = words_of(Interruption{}).size();

}  // namespace assay
