// listener: TLS listener for agents that Slurm starts and that connect back.
#pragma once

#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/any_io_executor.hpp>

#include "orchestrator/wire/protocol.h"
#include "orchestrator/wire/stream.h"

namespace assay::launch {

/// Listens for agents with a TLS key of its own, reads their greetings and hands over the accepted streams. A
/// connection that says nothing within 3 s, or is without TLS handshake and greeting within 10 s, is closed; so is one
/// that sends anything else, without an answer. When too many wait, those of the address with the most go first
/// (callers.h). Destroying it closes every connection that has not been admitted.
class AgentListener {
 public:
  /// Decides on a greeting from the address `from`: takes the stream over, or leaves it and returns the reason.
  using Admit = std::function<std::optional<std::string>(const wire::Greeting& greeting, const std::string& from,
                                                         wire::Stream& stream)>;

  /// Listens on every address of this machine, on `port` or, when it is 0, on a free one. The error is a reason.
  static std::expected<std::unique_ptr<AgentListener>, std::string> open(const boost::asio::any_io_executor& executor,
                                                                         int port, Admit admit);
  ~AgentListener();
  AgentListener(const AgentListener&) = delete;
  AgentListener& operator=(const AgentListener&) = delete;

  /// SHA-256 of its certificate.
  [[nodiscard]] const std::string& pin() const;
  /// Its address.
  [[nodiscard]] int port() const;

 private:
  struct State;
  explicit AgentListener(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;  // shared with its coroutines, which may end after it
};

/// "ADDRESS:PORT" for every address at which `name` (a host name or a numeric address) is reached, or, when it is
/// empty, for every address of this machine, loopback only when there is no other. At most eight. The error is a
/// reason.
std::expected<std::vector<std::string>, std::string> listen_endpoints(const std::string& name, int port);

}  // namespace assay::launch
