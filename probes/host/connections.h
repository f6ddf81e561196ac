// connections: TCP connections that are opened, asked, answered and closed again, as many as go, one after another on
// each of several threads.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "probes/core/rendezvous.h"
#include "probes/host/tcp_flow.h"
#include "probes/host/tcp_streams.h"

namespace assay::host {

/// Answers every caller that knows the token with its number, from construction until finish().
class Answerer {
 public:
  /// `listener` outlives it.
  Answerer(const rendezvous::Descriptor& listener, const std::string& token, std::size_t threads);
  /// Connections that were answered. Rethrows an error.
  std::uint64_t finish();

 private:
  void answer_callers(const rendezvous::Descriptor& listener, const std::string& token);

  std::atomic<bool> ending_ = false;
  std::atomic<std::uint64_t> answered_ = 0;
  Crowd crowd_;
};

/// Calls an Answerer with as many threads, from construction until finish(). Connections are closed by a reset, so that
/// no port of the caller waits for stray segments and the ports never run out.
class Caller {
 public:
  Caller(const Endpoint& at, const std::string& token, std::size_t threads);
  /// Connections until now that were opened, asked, and answered with their own number. Rethrows an error: a connection
  /// that cannot be opened, or is not answered within half a minute, ends all.
  [[nodiscard]] std::uint64_t completed();
  /// Waits for the last ones. Rethrows an error.
  std::uint64_t finish();
  /// After finish(): seconds of each connection from before its socket was made to its answer, in the order of the
  /// threads; of the first of each thread, kMostTimes in all.
  [[nodiscard]] std::vector<double> times() const;

  static constexpr std::size_t kMostTimes = 100'000;

 private:
  void call(const Endpoint& at, const std::string& token, std::size_t thread);

  std::atomic<bool> ending_ = false;
  std::atomic<std::uint64_t> completed_ = 0;
  std::vector<std::vector<double>> times_;
  Crowd crowd_;
};

}  // namespace assay::host
