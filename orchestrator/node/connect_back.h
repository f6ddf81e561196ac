// connect_back: how an agent that srun started finds its way home.
#pragma once

#include <expected>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>

#include "orchestrator/wire/stream.h"
#include "probes/core/units.h"

namespace assay::node {

/// Where assay listens, and how to know it.
struct DialOptions {
  std::vector<std::string> homes;  ///< "10.0.0.1:4711" or "[fd00::1]:4711", numeric; tried in turn
  std::string pin;                 ///< SHA-256 of the certificate that assay made for this run
  Seconds patience{120};           ///< until assay has taken the call; its welcome may take ten minutes more
};

/// Reads the token from stdin (one line; it is neither in the arguments nor in the environment, which others on a node
/// may read), dials each home until one holds the pinned key, says token and node name, and waits for the welcome.
/// The node's name is SLURMD_NODENAME, or else the host name. Runs `context` meanwhile. The error says what was tried.
std::expected<wire::Stream, std::string> dial_home(boost::asio::io_context& context, const DialOptions& options);

}  // namespace assay::node
