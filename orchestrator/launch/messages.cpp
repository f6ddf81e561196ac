// messages: checks the messages of an agent, which are untrusted, and passes them to the coroutines that wait for them.
#include <algorithm>
#include <csignal>
#include <utility>

#include <fmt/format.h>

#include "orchestrator/files/digest.h"
#include "orchestrator/launch/connection.h"
#include "probes/core/text.h"

namespace assay::launch {
namespace {

constexpr std::size_t kMaxRunLog = 1 << 20;  // stderr of a run

void append_bounded(std::string& text, std::string_view more, std::size_t limit) {
  text.append(more.substr(0, limit - std::min(limit, text.size())));
}

/// The outcome of a run from the word of the wire, which says `signalled` of a program that a signal ended.
AttemptOutcome outcome_of(const std::string& word) {
  return word == "signalled" ? AttemptOutcome::crashed : from_word<AttemptOutcome>(word).value();
}

}  // namespace

std::optional<InputError> Connection::take_frames() {
  while (!over_) {
    auto frame = reader_.next();
    if (!frame) return frame.error();
    if (!*frame) return std::nullopt;
    auto message = wire::decode_from_agent(**frame);
    if (!message) return message.error();
    if (std::holds_alternative<wire::Welcome>(*message) == welcome_)
      return InputError{"stream", "the agent's hello is missing or repeated", ""};
    if (const auto problem = std::visit([this](auto& typed) { return take(typed); }, *message))
      return InputError{"stream", *problem, ""};
  }
  return std::nullopt;
}

std::optional<std::string> Connection::take(wire::Welcome& welcome) {
  if (welcome.protocol != wire::kProtocol)
    return fmt::format("the agent has protocol version {}; this assay has version {}", welcome.protocol,
                       wire::kProtocol);
  if (welcome.agent_sha256 != options_.agent_sha256) {
    abandon({.kind = LaunchFailure::refused,
             .reason = fmt::format("the agent on the node has SHA-256 {} instead of {}", welcome.agent_sha256,
                                   options_.agent_sha256)});
    return std::nullopt;
  }
  welcome_ = true;
  if (agent_ != nullptr) {
    agent_->facts_ = std::move(welcome.facts);
    agent_->machine_ = options_.machine;
    agent_->free_ = std::move(welcome.free);
  }
  greeted_.wake();
  return std::nullopt;
}

std::optional<std::string> Connection::take(const wire::Stored& stored) {
  const auto found = deliveries_.find(stored.sha256);
  if (found == deliveries_.end()) return "the agent stored a program that was not sent";
  delivered_.insert(stored.sha256);
  for (auto* waiter : found->second) waiter->wake();
  return std::nullopt;
}

std::optional<std::string> Connection::take(const wire::Refused& refused) {
  const LaunchError error{.kind = LaunchFailure::refused, .reason = printable(refused.reason)};
  if (const auto run = runs_.find(refused.what); run != runs_.end()) {
    run->second->waiter.wake(error);
  } else if (const auto delivery = deliveries_.find(refused.what); delivery != deliveries_.end()) {
    for (auto* waiter : delivery->second) waiter->wake(error);
  } else if (forgotten_.erase(refused.what) == 0 && !files::is_sha256(refused.what)) {
    return "the agent refused something that was not requested";
  }
  return std::nullopt;
}

std::optional<std::string> Connection::take(const wire::Data& data) {
  if (data.channel == wire::Channel::program) return "the agent sent a program";
  const auto found = runs_.find(data.id);
  if (found == runs_.end())
    return forgotten_.contains(data.id)
               ? std::nullopt
               : std::optional<std::string>("the agent sent output of a run that is not active");
  PendingRun& run = *found->second;
  if (data.channel == wire::Channel::err) {
    append_bounded(run.result.log, data.bytes, kMaxRunLog);
    return std::nullopt;
  }
  const std::uint64_t limit = run.request.limits.output.count;
  if (run.result.output.size() + data.bytes.size() > limit && !std::exchange(run.flooded, true))
    queue_.push(wire::encode(wire::Kill{data.id}));
  append_bounded(run.result.output, data.bytes, limit);
  return std::nullopt;
}

std::optional<std::string> Connection::take(const wire::Ended& ended) {
  const auto found = runs_.find(ended.id);
  if (found == runs_.end())
    return forgotten_.erase(ended.id) > 0 ? std::nullopt
                                          : std::optional<std::string>("the agent ended a run that is not active");
  PendingRun& run = *found->second;
  if ((ended.outcome == "exited" && !ended.exit_code) || (ended.outcome == "signalled" && !ended.signal))
    return "the agent ended a run without an exit code or signal";
  RunResult& result = run.result;
  result.exit_code = ended.exit_code;
  result.signal = ended.signal;
  result.elapsed_s = ended.elapsed_s;
  result.left_behind = ended.left_behind;
  result.outcome = run.flooded ? AttemptOutcome::output_limit : outcome_of(ended.outcome);
  if (result.outcome == AttemptOutcome::crashed && *ended.signal == SIGXCPU) {
    result.reason = fmt::format("reached its CPU limit of {} s", run.request.limits.cpu.count);
  } else if (result.outcome == AttemptOutcome::crashed) {
    const char* const name = sigabbrev_np(*ended.signal);
    result.reason =
        name != nullptr ? fmt::format("killed by SIG{}", name) : fmt::format("killed by signal {}", *ended.signal);
  } else if (result.outcome == AttemptOutcome::deadline) {
    result.reason = fmt::format("not finished at its deadline of {} s", run.request.deadline.count);
  } else if (result.outcome == AttemptOutcome::output_limit) {
    result.reason = fmt::format("printed more than {} bytes", run.request.limits.output.count);
  } else if (result.outcome == AttemptOutcome::memory_limit) {
    result.reason = fmt::format("used more than {} bytes of memory", run.request.limits.memory.count);
  } else if (result.outcome == AttemptOutcome::stopped) {
    result.reason = "stopped on request";
  }
  run.waiter.wake();
  return std::nullopt;
}

}  // namespace assay::launch
