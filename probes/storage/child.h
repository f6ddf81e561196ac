// child: one program run to its end, or killed with all it started when its deadline passes.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "probes/core/units.h"

namespace assay {

/// How a child ended.
enum class ChildEnd {
  exited,   ///< by itself; `code` is its exit code, or 128 and the signal
  overdue,  ///< killed at the deadline
  stopped,  ///< killed because this probe was told to stop
};

/// How a child ended and with which exit code.
struct ChildOutcome {
  ChildEnd end = ChildEnd::exited;
  int code = 0;
};

/// The absolute path of `name` on PATH; nothing when no executable file of that name is there.
std::optional<std::string> find_program(std::string_view name);

/// Runs `program` with `arguments` in `directory`, standard input empty, standard output and error into the file `log`
/// (absolute; made anew). The child leads a process group of its own, which is killed whole at `deadline` and on
/// stop_requested(), and dies with the calling thread. Returns when the child is reaped. Throws std::system_error when
/// it cannot be started.
ChildOutcome run_child(const std::string& program, const std::vector<std::string>& arguments,
                       const std::string& directory, const std::string& log, Seconds deadline);

}  // namespace assay
