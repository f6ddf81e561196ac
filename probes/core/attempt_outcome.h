// attempt_outcome: how one attempt of a probe ended, in the words of the agent's client, the journal and the verdict.
#pragma once

#include "probes/core/words.h"

namespace assay {

/// An attempt as seen by the orchestrator; the probe's own result is in its record.
enum class AttemptOutcome {
  exited,        ///< the probe exited; its record says how
  crashed,       ///< it died, or its exit code and its record contradict each other
  deadline,      ///< killed at the step's deadline
  output_limit,  ///< killed: it printed too much
  memory_limit,  ///< killed: its processes used too much memory
  stopped,       ///< ended on request, as a companion is when its step is over
  lost,          ///< the node or its agent went away
  refused,       ///< the agent did not run it
  interrupted,   ///< the run was killed while it ran; never written, read from an attempt without an end
};

constexpr auto words_of(AttemptOutcome) { return names_as_words<AttemptOutcome>(); }

}  // namespace assay
