// child: Boost.Process v2 with one io_context, its own deadline timer, and a pipe that is read while it runs.
#include "orchestrator/files/child.h"

#include <chrono>
#include <cstdlib>
#include <sstream>
#include <type_traits>

#include <unistd.h>

#include <boost/optional.hpp>  // Boost 1.81: process/v2 uses it without including it; delete with 1.82

#include <fmt/format.h>
#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/readable_pipe.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/process/v2/process.hpp>
#include <boost/process/v2/stdio.hpp>

namespace assay::files {

namespace asio = boost::asio;
namespace process = boost::process::v2;

std::expected<ChildResult, InputError> run_child(const std::string& program, const std::vector<std::string>& arguments,
                                                 Seconds deadline, std::size_t max_output) {
  asio::io_context io;
  asio::readable_pipe output(io);
  ChildResult result;
  bool late = false;
  bool flooded = false;
  try {
    process::process child(io, program, arguments, process::process_stdio{nullptr, output, {}});
    asio::steady_timer timer(
        io, std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(deadline.count)));
    const auto kill = [&] {
      boost::system::error_code ignored;  // the child may have ended by itself a moment ago
      child.terminate(ignored);
      output.close(ignored);
    };
    timer.async_wait([&](const boost::system::error_code& error) {
      if (error) return;
      late = true;
      kill();
    });
    asio::async_read(output, asio::dynamic_buffer(result.output, max_output + 1),
                     [&](const boost::system::error_code&, std::size_t) {
                       if (result.output.size() <= max_output) return;
                       flooded = true;
                       kill();
                     });
    child.async_wait([&](const boost::system::error_code&, int code) {
      result.exit_code = code;
      timer.cancel();
    });
    io.run();
  } catch (const boost::system::system_error& error) {
    return std::unexpected(InputError{program, fmt::format("cannot be started: {}", error.code().message()),
                                      "check that it is installed and executable"});
  }
  if (late)
    return std::unexpected(
        InputError{program, fmt::format("did not end within {:g} s and was killed", deadline.count), ""});
  if (flooded)
    return std::unexpected(
        InputError{program, fmt::format("printed more than {} bytes and was killed", max_output), ""});
  return result;
}

// By hand, because environment.hpp of Boost 1.81 does not compile; delete with 1.82.
std::string find_in_path(const std::string& name) {
  const char* const path = std::getenv("PATH");
  std::istringstream directories(path == nullptr ? "/usr/bin:/bin" : path);
  for (std::string directory; std::getline(directories, directory, ':');) {
    const std::string file = directory + "/" + name;
    if (directory.starts_with('/') && ::access(file.c_str(), X_OK) == 0) return file;
  }
  return {};
}

}  // namespace assay::files
