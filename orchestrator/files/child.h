// child: a short-lived helper program on this machine, run to its end with a deadline.
#pragma once

#include <expected>
#include <string>
#include <vector>

#include "probes/core/error.h"
#include "probes/core/units.h"

namespace assay::files {

/// Output of a child and its end.
struct ChildResult {
  std::string output;  ///< stdout; stderr goes to ours
  int exit_code = 0;   ///< 128 + signal when it died of one
};

/// Runs `program` (a path) with `arguments` as probes/core/child.h does. Errors: it cannot be started, it printed more
/// than `max_output` bytes, it did not end by `deadline` and was killed.
std::expected<ChildResult, InputError> run_child(const std::string& program, const std::vector<std::string>& arguments,
                                                 Seconds deadline, std::size_t max_output = 16 << 20);

/// find_program's path; empty if there is none.
std::string find_in_path(const std::string& name);

}  // namespace assay::files
