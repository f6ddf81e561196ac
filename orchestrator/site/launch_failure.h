// launch_failure: why no agent answers on a node, in the words of launchers and of `assay site check`.
#pragma once

#include "probes/core/words.h"

namespace assay::site {

/// Why there is no agent on a node, or no longer one.
enum class LaunchFailure {
  unreachable,  ///< no answer
  host_key,     ///< the host that answers does not have the host key that the site pins
  refused,      ///< the node answers and refuses: the login, the directory, another agent
  protocol,     ///< the answer is not of the agent's protocol
  lost,         ///< the connection ended
};

constexpr auto words_of(LaunchFailure) { return names_as_words<LaunchFailure>(); }

}  // namespace assay::site
