// attempt: deliver, run, collect.
#include "orchestrator/attempt.h"

#include <algorithm>
#include <chrono>
#include <memory>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <fmt/format.h>

#include "orchestrator/digest.h"
#include "orchestrator/durable.h"
#include "orchestrator/evidence.h"
#include "probes/core/record_reader.h"

namespace assay {
namespace {

namespace asio = boost::asio;

constexpr double kMemoryShare = 0.95;
constexpr Bytes kMostOutput{64 << 20};       // the reader's own limit for a record
constexpr Seconds kCompanionGrace{10};       // to notice SIGTERM and write its record
constexpr Seconds kCompanionSlack{60};       // beyond the step's deadline; the agent's stop comes long before

/// A companion that samples beside the probe, and its result once it is there.
struct Companion {
  std::string name;
  std::string run_id;
  std::optional<RunResult> result;
};

const Program* program_of(const std::vector<Program>& programs, const std::string& name) {
  const auto found = std::ranges::find(programs, name, &Program::name);
  return found == programs.end() ? nullptr : &*found;
}

/// What a probe may use: nearly the node's memory, so that a runaway is killed before the kernel picks a victim, and
/// every CPU until the deadline.
RunLimits limits_on(const nlohmann::json& node, Seconds deadline) {
  const auto memory = static_cast<double>(node.value("memory", std::int64_t{1} << 40));
  const auto cpus = static_cast<double>(node.value("cpus", std::int64_t{1}));
  return {.memory = {static_cast<std::uint64_t>(kMemoryShare * memory)}, .output = kMostOutput, .cpu = {deadline.count * cpus + 1}};
}

RunRequest request_for(const Agent& agent, const Program& program, std::string id, const Values& parameters, Seconds deadline) {
  return {.id = std::move(id), .sha256 = program.sha256, .arguments = arguments_of(parameters), .deadline = deadline,
          .limits = limits_on(agent.facts(), deadline)};
}

/// Delivers a program; the reason when the agent does not take it.
asio::awaitable<std::optional<LaunchError>> deliver(Agent& agent, const Program& program) {
  const auto delivered = co_await agent.deliver(program.sha256, program.path);
  if (delivered) co_return std::nullopt;
  co_return delivered.error();
}

asio::awaitable<void> follow(Agent& agent, RunRequest request, std::shared_ptr<Companion> companion) {
  companion->result = co_await agent.run(std::move(request));
}

asio::awaitable<std::vector<std::shared_ptr<Companion>>> start_companions(Agent& agent, const Plan& plan, const Step& step, int number,
                                                                          const std::vector<Program>& programs) {
  std::vector<std::shared_ptr<Companion>> started;
  const auto executor = co_await asio::this_coro::executor;
  for (const auto& name : step.companions) {
    const Program& program = *program_of(programs, name);
    if (co_await deliver(agent, program)) continue;  // the probe's own delivery meets and reports the same fault
    const auto parameters = plan.probes.at(name).description.resolve({}, plan.quick);
    if (!parameters) continue;  // planning resolved the same defaults before
    auto companion = std::make_shared<Companion>(name, fmt::format("{}.{}.{}", step.id, number, name), std::nullopt);
    auto request = request_for(agent, program, companion->run_id, *parameters, {step.deadline_s + kCompanionSlack.count});
    asio::co_spawn(executor, follow(agent, std::move(request), companion), asio::detached);
    started.push_back(std::move(companion));
  }
  co_return started;
}

/// Waits until `companion` has its result or the grace is over.
asio::awaitable<void> end_of(Agent& agent, Companion& companion) {
  agent.stop(companion.run_id);
  const auto limit = std::chrono::steady_clock::now() + std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(kCompanionGrace.count));
  boost::system::error_code woken;
  while (!companion.result && std::chrono::steady_clock::now() < limit) {
    asio::steady_timer slice(co_await asio::this_coro::executor, std::chrono::milliseconds(20));
    co_await slice.async_wait(asio::redirect_error(asio::use_awaitable, woken));
  }
}

void keep(Attempt& attempt, const std::string& directory, const std::string& path, const std::string& bytes) {
  write_new_durably(directory + "/" + path, bytes);
  attempt.evidence.push_back({.path = path, .sha256 = sha256(bytes), .bytes = bytes.size()});
}

/// A probe's exit code says the same as the end of its record: 0 complete, 1 error, 77 skip. Anything else means that it
/// died in a way that it could not put into its record, or after it.
bool agrees(int exit_code, const RunResult& result, const Description& probe) {
  const auto record = read_record(result.output, probe);
  if (!record) return exit_code == kExitComplete || exit_code == kExitError || exit_code == kExitSkip;  // the judge says what is wrong
  switch (record->end.status) {
    case Status::complete: return exit_code == kExitComplete;
    case Status::error: return exit_code == kExitError;
    case Status::skip: return exit_code == kExitSkip;
  }
  return false;
}

void take_outcome(Attempt& attempt, const RunResult& result, const Description& probe) {
  attempt.outcome = result.outcome;
  attempt.reason = result.reason;
  if (result.outcome != "exited") return;
  if (result.left_behind > 0) attempt.reason = fmt::format("{} processes outlived the probe and were killed", result.left_behind);
  if (agrees(result.exit_code.value_or(-1), result, probe)) return;
  attempt.outcome = "crashed";
  attempt.reason = fmt::format("exit code {}, which is not what the record says", result.exit_code.value_or(-1));
}

}  // namespace

std::vector<std::string> arguments_of(const Values& parameters) {
  std::vector<std::string> arguments;
  for (const auto& [name, value] : parameters) {
    std::string flag = name;
    std::ranges::replace(flag, '_', '-');
    std::string text;
    if (const auto* seconds = std::get_if<double>(&value)) {
      text = fmt::format("{:.9f}", *seconds);  // never an exponent, which durations do not have
    } else if (const auto* word = std::get_if<std::string>(&value)) {
      text = *word;
    } else {
      text = to_json(value).dump();
    }
    arguments.push_back(fmt::format("--{}={}", flag, text));
  }
  return arguments;
}

asio::awaitable<Attempt> run_attempt(Agent& agent, const Plan& plan, const Step& step, int number,
                                     const std::vector<Program>& programs, const std::string& directory) {
  Attempt attempt{.step = step.id, .number = number, .node = step.nodes.front(), .outcome = "refused", .reason = "",
                  .begin = "", .end = "", .evidence = {}};
  const Program& program = *program_of(programs, step.probe);
  if (const auto error = co_await deliver(agent, program)) {
    attempt.outcome = error->kind == "lost" ? "lost" : "refused";
    attempt.reason = error->reason;
    co_return attempt;
  }
  const auto companions = co_await start_companions(agent, plan, step, number, programs);
  const RunResult result = co_await agent.run(request_for(agent, program, fmt::format("{}.{}", step.id, number), step.parameters, {step.deadline_s}));
  for (const auto& companion : companions) co_await end_of(agent, *companion);

  take_outcome(attempt, result, program.description);
  if (!result.output.empty()) keep(attempt, directory, record_path(step.id, number), result.output);
  if (!result.log.empty()) keep(attempt, directory, log_path(step.id, number), result.log);
  for (const auto& companion : companions) {
    if (!companion->result) continue;
    if (!companion->result->output.empty()) keep(attempt, directory, record_path(step.id, number, companion->name), companion->result->output);
    if (!companion->result->log.empty()) keep(attempt, directory, log_path(step.id, number, companion->name), companion->result->log);
  }
  co_return attempt;
}

}  // namespace assay
