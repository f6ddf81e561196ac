// child_process: a child process with pipes to its three streams.
#pragma once

#include <chrono>
#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>

#include "probes/core/units.h"

namespace assay::launch {

/// A child process in a session of its own: a terminal's Ctrl-C reaches assay only, and ssh finds no terminal to ask
/// for a password. The kernel sends it SIGTERM when this process dies, which an srun in Slurm's queue would not notice.
/// Destroying it closes its streams and sends SIGTERM, so that an agent can clean up, and kills it after 2 s.
class ChildProcess {
 public:
  /// Starts argv[0] (looked up in PATH unless it has a slash) with argv and our environment. The error is a reason.
  static std::expected<std::unique_ptr<ChildProcess>, std::string> start(const boost::asio::any_io_executor& executor,
                                                                         const std::vector<std::string>& argv);
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  boost::asio::posix::stream_descriptor in;   ///< its stdin; may be moved from
  boost::asio::posix::stream_descriptor out;  ///< its stdout; may be moved from
  boost::asio::posix::stream_descriptor err;  ///< its stderr

  /// Sends SIGTERM; does nothing if it has ended.
  void ask_to_end();
  /// Waits for its end, at most `patience`, then kills it; polls every `tick`. Returns its exit code; nothing if a
  /// signal ended it.
  boost::asio::awaitable<std::optional<int>> finish(Seconds patience,
                                                    std::chrono::milliseconds tick = std::chrono::milliseconds(10));

 private:
  struct Handle;  // Boost.Process stays in one source file
  explicit ChildProcess(const boost::asio::any_io_executor& executor);
  std::unique_ptr<Handle> handle_;
};

}  // namespace assay::launch
