// connect_back: the connection of an agent that srun started to the assay that waits for it.
#pragma once

#include <expected>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>

#include "orchestrator/wire/stream.h"
#include "probes/core/units.h"

namespace assay::node {

/// Where assay listens, and how it is authenticated.
struct ConnectBackOptions {
  std::vector<std::string> endpoints;  ///< "10.0.0.1:4711" or "[fd00::1]:4711", numeric; tried in turn
  std::string pin;                     ///< SHA-256 of the certificate that assay made for this run
  Seconds patience{120};               ///< until assay has taken the connection; its answer may take ten minutes more
};

/// Reads the token from stdin (one line; arguments and environment can be read by other users of a node), connects to
/// the endpoints in turn until one holds the pinned key, sends token and node name, and waits until it is accepted.
/// The node's name is SLURMD_NODENAME, or else the host name. Runs `context` meanwhile. The error is a reason.
std::expected<wire::Stream, std::string> connect_back(boost::asio::io_context& context,
                                                      const ConnectBackOptions& options);

}  // namespace assay::node
