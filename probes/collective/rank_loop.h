// rank_loop: the side of a rank: a process that its leader starts and asks, line by line.
#pragma once

#include <functional>
#include <string>

#include <nlohmann/json.hpp>

namespace assay::collective {

/// Ties this process to the leader that started it: it is killed when that one ends. False when `leader`, a process id
/// as text, is not this process' parent (any more).
bool tie_to_leader(const std::string& leader);

/// Answers every line of standard input, a request as JSON, with a line of JSON on standard output, until the input
/// ends. Other output to standard output meanwhile goes to standard error. An exception of `answer` becomes {"error":
/// what}, and so does a reason of leave_stuck; with "waits", where the rank waits for others. Throws std::system_error
/// when the leader takes no answer.
void answer_leader(const std::function<nlohmann::json(const nlohmann::json&)>& answer);

}  // namespace assay::collective
