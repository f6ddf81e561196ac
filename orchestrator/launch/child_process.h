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
/// for a password. It gets SIGTERM when we are killed, because an srun in Slurm's queue would not notice. Destroying it
/// asks it to end (closed streams, SIGTERM), so that an agent cleans up what it has begun, and kills it after 2 s.
class ChildProcess {
 public:
  /// Starts argv[0] (looked up in PATH unless it has a slash) with argv and our environment. The error is a reason.
  static std::expected<std::unique_ptr<ChildProcess>, std::string> start(const boost::asio::any_io_executor& executor,
                                                                         const std::vector<std::string>& argv);
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  boost::asio::posix::stream_descriptor in;   ///< write here; may be moved away
  boost::asio::posix::stream_descriptor out;  ///< read here; may be moved away
  boost::asio::posix::stream_descriptor err;  ///< and here

  /// SIGTERM; harmless when it has ended.
  void ask_to_end();
  /// Waits for its end, at most `patience`, and kills it then; looks every `tick`. Its exit code; nothing when it was
  /// killed.
  boost::asio::awaitable<std::optional<int>> finish(Seconds patience,
                                                    std::chrono::milliseconds tick = std::chrono::milliseconds(10));

 private:
  struct Handle;  // Boost.Process stays in one source file
  explicit ChildProcess(const boost::asio::any_io_executor& executor);
  std::unique_ptr<Handle> handle_;
};

}  // namespace assay::launch
