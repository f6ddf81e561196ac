// child: the errors of a helper program that did not run to its end.
#include "orchestrator/files/child.h"

#include <system_error>

#include <fmt/format.h>

#include "probes/core/child.h"

namespace assay::files {

std::expected<ChildResult, InputError> run_child(const std::string& program, const std::vector<std::string>& arguments,
                                                 Seconds deadline, std::size_t max_output) {
  try {
    ChildOutcome outcome = assay::run_child(program, arguments, deadline, {.max_output = max_output});
    if (outcome.end == ChildEnd::overdue)
      return std::unexpected(
          InputError{program, fmt::format("did not end within {:g} s and was killed", deadline.count), ""});
    if (outcome.end == ChildEnd::flooded)
      return std::unexpected(
          InputError{program, fmt::format("printed more than {} bytes and was killed", max_output), ""});
    return ChildResult{.output = std::move(outcome.output), .exit_code = outcome.code};
  } catch (const std::system_error& error) {
    return std::unexpected(InputError{program, fmt::format("cannot be started: {}", error.code().message()),
                                      "check that it is installed and executable"});
  }
}

std::string find_in_path(const std::string& name) { return find_program(name).value_or(""); }

}  // namespace assay::files
