// child: one program run to its end, or killed with all that it started when its deadline passes.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "probes/core/units.h"

namespace assay {

/// How a child ended.
enum class ChildEnd {
  exited,   ///< without a signal
  overdue,  ///< killed at the deadline
  flooded,  ///< killed because it printed more than max_output
  stopped,  ///< killed because `stop` returned true
};

/// How a child ended, with which exit code (128 + signal when a signal ended it), and its output.
struct ChildOutcome {
  ChildEnd end = ChildEnd::exited;
  int code = 0;
  std::string output;  ///< its stdout; empty if it went into a log
};

/// How a child is run.
struct ChildOptions {
  std::string directory;              ///< its working directory; empty: this process's
  std::string log;                    ///< the file that takes stdout and stderr, made anew; empty: stdout is captured
  std::size_t max_output = 16 << 20;  ///< bytes of captured stdout; of a log, the file system's
  bool (*stop)() = nullptr;           ///< asked every 50 ms; the child is killed when it returns true
};

/// The absolute path of the first executable file `name` in PATH (unset: /usr/bin:/bin); nothing if there is none.
std::optional<std::string> find_program(std::string_view name);

/// Runs `program` (a path) with `arguments`, no shell, stdin empty, stderr this process's unless there is a log. The
/// child leads a process group of its own, which is killed whole at `deadline`, and it dies with the calling thread.
/// Returns when the child is reaped. Throws std::system_error when it cannot be started.
ChildOutcome run_child(const std::string& program, const std::vector<std::string>& arguments, Seconds deadline,
                       const ChildOptions& options = {});

}  // namespace assay
