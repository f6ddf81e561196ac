// attempt: delivers programs, runs all ranks, writes their evidence.
#include "orchestrator/run/attempt.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "orchestrator/files/atomic_file.h"
#include "orchestrator/files/digest.h"
#include "orchestrator/judge/evidence/evidence.h"
#include "orchestrator/run/all_of.h"
#include "orchestrator/wire/tls.h"
#include "probes/core/record_reader.h"

namespace assay::run {
namespace {

namespace asio = boost::asio;

constexpr double kMemoryShare = 0.95;
constexpr Seconds kCompanionGrace{10};  // to notice SIGTERM and write its record
constexpr Seconds kCompanionSlack{60};  // beyond the step's deadline; the agent's stop comes long before

/// A companion that samples during the probe, and its result once it has ended.
struct Companion {
  std::string name;
  std::string run_id;
  std::optional<launch::RunResult> result;
};

/// One rank of the attempt. When the agent refused the probe, it has a result before it ran.
struct Rank {
  launch::Agent* agent = nullptr;
  std::string node;
  std::vector<std::shared_ptr<Companion>> companions;
  std::optional<launch::RunResult> result;
};

const plan::Program* program_of(const std::vector<plan::Program>& programs, const std::string& name) {
  const auto found = std::ranges::find(programs, name, &plan::Program::name);
  return found == programs.end() ? nullptr : &*found;
}

/// Limits of a probe: nearly the node's memory, so that a runaway is killed before the kernel picks a victim, and every
/// CPU until the deadline.
launch::RunLimits limits_on(const nlohmann::json& node, Seconds deadline) {
  // Facts of a node are checked when they are read (problem_of_facts): both are whole numbers from 1 up.
  const auto memory = static_cast<double>(node.value("memory", std::int64_t{1} << 40));
  const auto cpus = static_cast<double>(node.value("cpus", std::int64_t{1}));
  return {.memory = {static_cast<std::uint64_t>(kMemoryShare * memory)},
          .output = kMostRecord,
          .cpu = {deadline.count * cpus + 1}};
}

std::string no_build(const std::string& probe, const std::string& machine) {
  return fmt::format("the probe {} of the plan has no build for {}", probe, machine);
}

/// The build of `program` for the agent's machine, which the plan must have; nullopt when there is none. Programs of
/// tests tell no machines.
std::optional<plan::Build> build_for(const plan::Plan& plan, const launch::Agent& agent, const plan::Program& program) {
  if (program.builds.empty()) return plan::Build{.sha256 = program.sha256, .path = program.path};
  const auto found = program.builds.find(agent.machine());
  if (found == program.builds.end()) return std::nullopt;
  const auto& planned = plan.probes.at(program.name);
  const auto of_machine = planned.builds.find(agent.machine());
  const bool in_plan = planned.builds.empty()
                           ? found->second.sha256 == planned.sha256
                           : of_machine != planned.builds.end() && found->second.sha256 == of_machine->second;
  return in_plan ? std::optional(found->second) : std::nullopt;
}

launch::RunRequest request_for(const launch::Agent& agent, const plan::Build& build, std::string id,
                               const Values& parameters, Seconds deadline) {
  return {.id = std::move(id),
          .sha256 = build.sha256,
          .arguments = arguments_of(parameters),
          .deadline = deadline,
          .limits = limits_on(agent.facts(), deadline)};
}

asio::awaitable<void> follow(launch::Agent& agent, launch::RunRequest request, std::shared_ptr<Companion> companion) {
  companion->result = co_await agent.run(std::move(request));
}

/// Stops `companion` and waits until it has its result or the grace period is over.
asio::awaitable<void> stop_companion(launch::Agent& agent, Companion& companion) {
  agent.stop(companion.run_id);
  const auto limit = std::chrono::steady_clock::now() + std::chrono::duration_cast<std::chrono::nanoseconds>(
                                                            std::chrono::duration<double>(kCompanionGrace.count));
  boost::system::error_code woken;
  while (!companion.result && std::chrono::steady_clock::now() < limit) {
    asio::steady_timer slice(co_await asio::this_coro::executor, std::chrono::milliseconds(20));
    co_await slice.async_wait(asio::redirect_error(asio::use_awaitable, woken));
  }
}

/// Common state of all ranks of one attempt.
struct AttemptContext {
  const plan::Plan& plan;
  const plan::Step& step;
  int number;
  const std::vector<plan::Program>& programs;
  std::string rendezvous, token;  ///< empty for a single rank
  std::string challenge = {};     ///< empty: none

  [[nodiscard]] const plan::Program& program() const { return *program_of(programs, step.probe); }
};

/// Delivers the probe and starts the companions. When the probe is refused, the reason is the rank's result.
asio::awaitable<void> prepare(const AttemptContext& context, Rank& rank) {
  const auto build = build_for(context.plan, *rank.agent, context.program());
  if (!build) {
    rank.result.emplace();
    rank.result->outcome = AttemptOutcome::refused;
    rank.result->reason = no_build(context.step.probe, rank.agent->machine());
    co_return;
  }
  const auto delivered = co_await rank.agent->deliver(build->sha256, build->path);
  if (!delivered) {
    rank.result.emplace();  // g++ 12 mixes up the frames of coroutines with braced temporaries in them
    rank.result->outcome =
        delivered.error().kind == site::LaunchFailure::lost ? AttemptOutcome::lost : AttemptOutcome::refused;
    rank.result->reason = delivered.error().reason;
    co_return;
  }
  const auto executor = co_await asio::this_coro::executor;
  for (const auto& name : context.step.companions) {
    const auto beside = build_for(context.plan, *rank.agent, *program_of(context.programs, name));
    if (!beside) continue;  // its samples are then missing in the record, which the judgement sees
    const auto taken = co_await rank.agent->deliver(beside->sha256, beside->path);
    if (!taken) continue;  // the probe's own run reports the same fault
    const auto parameters = context.plan.probes.at(name).description.resolve({}, context.plan.quick);
    if (!parameters) continue;  // planning resolved the same defaults before
    auto companion =
        std::make_shared<Companion>(name, fmt::format("{}.{}.{}", context.step.id, context.number, name), std::nullopt);
    auto request = request_for(*rank.agent, *beside, companion->run_id, *parameters,
                               {context.step.deadline_s + kCompanionSlack.count});
    asio::co_spawn(executor, follow(*rank.agent, std::move(request), companion), asio::detached);
    rank.companions.push_back(std::move(companion));
  }
}

/// `work` on one rank; its error is that rank's result, and ends no other node's run.
asio::awaitable<void> guarded(asio::awaitable<void> work, Rank& rank) {
  try {
    co_await std::move(work);
  } catch (const std::exception& error) {
    rank.result.emplace();
    rank.result->outcome = AttemptOutcome::lost;
    rank.result->reason = std::string("unexpected error: ") + error.what();
  }
}

asio::awaitable<void> run_rank(const AttemptContext& context, Rank& rank, std::size_t number, std::size_t world) {
  const auto build = build_for(context.plan, *rank.agent, context.program());
  if (!build) co_return;  // prepare() has said so, and no rank runs
  launch::RunRequest request =
      request_for(*rank.agent, *build, fmt::format("{}.{}", context.step.id, context.number),
                  plan::parameters_of(context.plan.site, context.step, number), {context.step.deadline_s});
  if (world > 1) {
    for (auto& flag :
         {fmt::format("--rank={}", number), fmt::format("--world={}", world), "--rendezvous=" + context.rendezvous})
      request.arguments.push_back(flag);
    request.token = context.token;
  }
  if (!context.challenge.empty()) request.arguments.push_back("--challenge=" + context.challenge);
  rank.result = co_await rank.agent->run(std::move(request));
}

void write_evidence(judge::Attempt& attempt, const std::string& directory, const std::string& path,
                    const std::string& bytes) {
  files::write_new_durably(directory + "/" + path, bytes);
  attempt.evidence.push_back({.path = path, .sha256 = files::sha256(bytes), .bytes = bytes.size()});
}

/// Whether a probe's exit code agrees with the end of its record: 0 complete, 1 error, 77 skip. When it does not, the
/// probe ended in a way that its record cannot show.
bool agrees(int exit_code, const launch::RunResult& result, const Description& probe) {
  const auto record = read_record(result.output, probe);
  if (!record)
    return exit_code == kExitComplete || exit_code == kExitError ||
           exit_code == kExitSkip;  // the judge reports the error
  switch (record->end.status) {
    case Status::complete:
      return exit_code == kExitComplete;
    case Status::error:
      return exit_code == kExitError;
    case Status::skip:
      return exit_code == kExitSkip;
  }
  return false;
}

/// Outcome and reason of one rank.
std::pair<AttemptOutcome, std::string> outcome_of(const launch::RunResult& result, const Description& probe) {
  if (result.outcome != AttemptOutcome::exited) return {result.outcome, result.reason};
  std::string reason = result.reason;
  if (result.left_behind > 0)
    reason = fmt::format("{} processes outlived the probe and were killed", result.left_behind);
  if (agrees(result.exit_code.value_or(-1), result, probe)) return {AttemptOutcome::exited, reason};
  return {AttemptOutcome::crashed,
          fmt::format("exit code {} contradicts the end of the record", result.exit_code.value_or(-1))};
}

/// The most severe outcome of all ranks: when one rank dies, the time-outs and errors of the others follow from it.
void take_outcomes(judge::Attempt& attempt, const std::vector<Rank>& ranks, const Description& probe) {
  using enum AttemptOutcome;
  constexpr std::array kMostSevereFirst = {lost,         refused,  crashed, output_limit,
                                           memory_limit, deadline, stopped, exited};
  const auto weight = [&](AttemptOutcome outcome) {
    return std::ranges::find(kMostSevereFirst, outcome) - kMostSevereFirst.begin();
  };
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (!ranks[i].result) continue;  // it did not start, because another rank could not
    auto [outcome, reason] = outcome_of(*ranks[i].result, probe);
    if (ranks.size() > 1 && (outcome != exited || !reason.empty()))
      reason = fmt::format("rank {} on {}: {}", i, ranks[i].node, reason);
    if (weight(outcome) >= weight(attempt.outcome)) continue;  // interrupted, as at the beginning, is last
    attempt.outcome = outcome;
    attempt.reason = std::move(reason);
  }
}

void write_evidence_of(judge::Attempt& attempt, const std::string& directory, int number, const Rank& rank) {
  const auto both = [&](const launch::RunResult& result, const std::string& companion) {
    if (!result.output.empty())
      write_evidence(attempt, directory, judge::record_path(attempt.step, attempt.number, number, companion),
                     result.output);
    if (!result.log.empty())
      write_evidence(attempt, directory, judge::log_path(attempt.step, attempt.number, number, companion), result.log);
  };
  if (rank.result) both(*rank.result, "");
  for (const auto& companion : rank.companions) {
    if (companion->result) both(*companion->result, companion->name);
  }
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
    // "--flag=" with an empty value would take the next argument as its value.
    if (text.empty()) {
      arguments.insert(arguments.end(), {"--" + flag, ""});
    } else {
      arguments.push_back(fmt::format("--{}={}", flag, text));
    }
  }
  return arguments;
}

namespace {

/// Asks `inputs.stop` until the attempt is `over`; when it has a reason, every rank is told to end, and it is returned.
asio::awaitable<void> stop_in_time(const AttemptInputs& inputs, const std::vector<Rank>& ranks, std::string run_id,
                                   const bool& over, std::string& reason) {
  boost::system::error_code woken;
  while (!over && reason.empty()) {
    if (const auto why = inputs.stop()) {
      reason = *why;
      for (const auto& rank : ranks) rank.agent->stop(run_id);
      co_return;
    }
    asio::steady_timer slice(co_await asio::this_coro::executor, std::chrono::milliseconds(50));
    co_await slice.async_wait(asio::redirect_error(asio::use_awaitable, woken));
  }
}

/// `work`, after which one less is `left`; the attempt is over with the last.
asio::awaitable<void> counted(asio::awaitable<void> work, std::size_t& left, bool& over) {
  co_await std::move(work);
  over = --left == 0;
}

}  // namespace

asio::awaitable<AttemptEnd> run_attempt(std::vector<launch::Agent*> agents, const AttemptInputs& inputs,
                                        const plan::Step& step, int number) {
  const bool alone = agents.size() == 1;
  std::string stopped;  // why all ranks had to end
  const AttemptContext context{.plan = inputs.plan,
                               .step = step,
                               .number = number,
                               .programs = inputs.programs,
                               .rendezvous = alone ? "" : rendezvous_endpoint(inputs.plan, step),
                               .token = alone ? "" : rendezvous_token(),
                               .challenge = inputs.challenge};
  std::vector<Rank> ranks;
  for (std::size_t i = 0; i < agents.size(); ++i) ranks.push_back({.agent = agents[i], .node = step.nodes[i]});
  const auto prepare_one = [&](std::size_t i) { return guarded(prepare(context, ranks[i]), ranks[i]); };
  co_await side_by_side(ranks.size(), prepare_one);
  // A rank that cannot start would leave the others waiting for it.
  if (std::ranges::all_of(ranks, [](const Rank& rank) { return !rank.result; })) {
    bool over = false;
    std::size_t left = ranks.size();
    const auto run_one = [&](std::size_t i) -> asio::awaitable<void> {
      if (i == ranks.size()) return stop_in_time(inputs, ranks, fmt::format("{}.{}", step.id, number), over, stopped);
      return counted(guarded(run_rank(context, ranks[i], i, ranks.size()), ranks[i]), left, over);
    };
    co_await side_by_side(ranks.size() + (inputs.stop ? 1 : 0), run_one);
  }
  for (const auto& rank : ranks) {
    for (const auto& companion : rank.companions) co_await stop_companion(*rank.agent, *companion);
  }
  AttemptEnd end{.attempt = {.step = step.id, .number = number, .node = step.nodes.front()}};
  for (const auto& rank : ranks) {
    if (rank.result && rank.result->outcome == AttemptOutcome::lost) end.lost.push_back(rank.node);
  }
  take_outcomes(end.attempt, ranks, context.program().description);
  if (!stopped.empty() && end.attempt.outcome != AttemptOutcome::lost) {
    end.attempt.outcome = AttemptOutcome::stopped;
    end.attempt.reason = stopped;
  }
  end.measured = std::ranges::all_of(ranks, [](const Rank& rank) {
    return rank.result && rank.result->outcome == AttemptOutcome::exited && rank.result->exit_code == kExitComplete;
  });
  for (std::size_t i = 0; i < ranks.size(); ++i)
    write_evidence_of(end.attempt, inputs.directory, static_cast<int>(i), ranks[i]);
  co_return end;
}

asio::awaitable<std::string> keys_of_tpm(launch::Agent& agent, const AttemptInputs& inputs, const plan::Step& step) {
  const auto build = build_for(inputs.plan, agent, *program_of(inputs.programs, step.probe));
  if (!build) co_return "";
  const auto delivered = co_await agent.deliver(build->sha256, build->path);
  if (!delivered) co_return "";
  launch::RunRequest request =
      request_for(agent, *build, step.id + ".keys", plan::parameters_of(inputs.plan.site, step, 0), {step.deadline_s});
  const launch::RunResult result = co_await agent.run(std::move(request));
  co_return result.output;
}

std::string rendezvous_endpoint(const plan::Plan& plan, const plan::Step& step) {
  const site::Node& first = *plan.site.node(step.nodes.front());
  const site::Port* const port_in_plane = step.plane.empty() ? nullptr : site::port_of(first, step.plane, step.rail);
  const std::string& host =
      port_in_plane == nullptr || port_in_plane->address.empty() ? first.rendezvous : port_in_plane->address;
  const auto ordinal = std::strtoul(step.id.c_str(), nullptr, 10);  // "0012-…": reads up to the hyphen
  const auto port = static_cast<unsigned long>(kFirstRendezvousPort) + ordinal % kRendezvousPorts;
  return fmt::format("{}:{}", host.find(':') == std::string::npos ? host : "[" + host + "]", port);
}

std::string rendezvous_token() {
  constexpr std::size_t kTokenBytes = 32;
  auto token = wire::random_hexadecimal(kTokenBytes);
  if (token.empty()) throw std::runtime_error("no random numbers from the system for a token");
  return token;
}

}  // namespace assay::run
