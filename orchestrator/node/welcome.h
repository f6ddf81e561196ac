// welcome: an agent's facts of itself, its host and the storages of the request.
#pragma once

#include <string>

#include "orchestrator/wire/protocol.h"

namespace assay::node {

/// The answer to `hello` of an agent whose runs begin below `directory`. Takes up to some ten seconds where a directory
/// of the hello does not answer; that one is left out.
wire::Welcome welcome_to(const wire::Hello& hello, const std::string& directory);

}  // namespace assay::node
