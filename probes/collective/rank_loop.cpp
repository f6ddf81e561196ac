// rank_loop: requests in, answers out. A failure is an answer; only the leader decides on it.
#include "probes/collective/rank_loop.h"

#include <cerrno>
#include <csignal>
#include <exception>
#include <iostream>
#include <system_error>

#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "probes/core/json_io.h"
#include "probes/core/leaving.h"

namespace assay::collective {
namespace {

using nlohmann::json;

/// Answers go to the former standard output; other output there, such as a plug-in of a library, goes to standard
/// error.
int take_answers_away() {
  const int answers = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  if (answers < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
    throw std::system_error(errno, std::generic_category(), "dup");
  return answers;
}

void say(int answers, const json& answer) {
  const std::string line = answer.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
  for (std::size_t done = 0; done < line.size();) {
    const ssize_t written = write(answers, line.data() + done, line.size() - done);
    if (written < 0 && errno != EINTR) throw std::system_error(errno, std::generic_category(), "the leader is gone");
    if (written > 0) done += static_cast<std::size_t>(written);
  }
}

}  // namespace

bool tie_to_leader(const std::string& leader) {
  return prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && std::to_string(getppid()) == leader;
}

void answer_leader(const std::function<json(const json&)>& answer) {
  const int answers = take_answers_away();
  before_leaving([answers](const std::string& reason, bool waits) {
    say(answers, waits ? json{{"error", reason}, {"waits", true}} : json{{"error", reason}});
  });
  for (std::string line; std::getline(std::cin, line);) {
    json said;
    try {
      said = answer(parse_json_or_throw(line, "request"));
    } catch (const std::exception& error) {
      said = {{"error", error.what()}};
    }
    say(answers, said);
  }
}

}  // namespace assay::collective
