// site_watch: one program on the head, stopped and started again where its record is needed.
#include "orchestrator/run/site_watch.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
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
#include "orchestrator/judge/metering/site_evidence.h"
#include "orchestrator/run/attempt.h"
#include "orchestrator/site/site_file.h"
#include "probes/core/record_reader.h"

namespace assay::run {
namespace {

namespace asio = boost::asio;

constexpr Seconds kGrace{15};             // the agent kills ten seconds after a stop
constexpr Bytes kMostMemory{1ULL << 30};  // of the program: series of 2,000 meters take a tenth of it

/// Parameters of the meters' program: the plan has the site's list of them, and the paths of their credentials.
Values parameters_of(const plan::Program& program, const plan::Plan& plan, const std::string& directory, bool guards) {
  Values asked;
  std::error_code unknown;
  if (guards && plan.site.load_test) {
    asked["guard"] = std::string("yes");
    asked["limit"] = static_cast<std::int64_t>(plan.site.load_test->limit_w);
  }
  asked[program.name == plan::kSwitchCompanion ? "switches" : "meters"] =
      std::filesystem::absolute(directory, unknown).string() + "/plan.json";
  return plan.probes.at(program.name).description.resolve(asked, plan.quick).value_or(asked);
}

// Functions that are no coroutines make values with braced parts: g++ 12 mixes up the frames of coroutines with such
// temporaries in them. Join them with g++ 13.
launch::RunRequest request_for(const plan::Program& program, std::string id, const Values& parameters) {
  const Seconds deadline{program.description.deadline_s};
  return {.id = std::move(id),
          .sha256 = program.sha256,
          .arguments = arguments_of(parameters),
          .deadline = deadline,
          .limits = {.memory = kMostMemory, .output = kMostRecord, .cpu = deadline}};
}

judge::Watch ended(const plan::Program& program, int number, const std::optional<launch::RunResult>& result) {
  return {.number = number,
          .probe = program.name,
          .outcome = result ? result->outcome : AttemptOutcome::lost,
          .reason = result ? result->reason : "it did not end when it was told to"};
}

}  // namespace

SiteWatch::SiteWatch(const std::string& probe, const plan::Plan& plan, const std::vector<plan::Program>& programs,
                     const RunOptions& options, AgentStarter& starter, RunJournal& journal)
    : plan_(plan), directory_(options.directory), starter_(starter), journal_(journal) {
  const bool of_switches = probe == plan::kSwitchCompanion;
  const bool nothing = of_switches ? plan.site.switches.empty() : plan.site.meters.empty();
  if (probe.empty() || nothing || !plan.probes.contains(probe)) return;
  const auto program = std::ranges::find(programs, probe, &plan::Program::name);
  if (program != programs.end()) program_ = &*program;
  head_.name = of_switches ? "the site's switches" : "the site's meters";
  head_.launcher = site::Launcher::local;
  head_.directory = site::default_directory();
}

bool SiteWatch::judges(const plan::Step& step) const {
  return program_ != nullptr && std::ranges::any_of(step.requirements, [&](const std::string& id) {
           const auto& requirement = *plan_.requirement(id);
           return !requirement.during.empty() && requirement.probe == program_->name;
         });
}

/// Starts the agent and gives it the program; the reason if that fails.
asio::awaitable<std::string> SiteWatch::start_agent() {
  if (agent_ == nullptr) {
    auto agent = co_await starter_.start(head_);
    if (!agent) co_return agent.error().reason;
    agent_ = std::move(*agent);
  }
  const auto delivered = co_await agent_->deliver(program_->sha256, program_->path);
  if (!delivered) {
    agent_.reset();
    co_return delivered.error().reason;
  }
  co_return "";
}

asio::awaitable<void> SiteWatch::follow(launch::Agent& agent, launch::RunRequest request,
                                        std::shared_ptr<Running> running) {
  running->result = co_await agent.run(std::move(request));
}

asio::awaitable<void> SiteWatch::begin(bool guards) {
  if (program_ == nullptr || running_ != nullptr) co_return;
  running_ = std::make_shared<Running>();
  const std::string problem = co_await start_agent();
  running_->number = journal_.begin_watch(program_->name);
  running_->id = fmt::format("{}.{}", program_->name, running_->number);
  if (!problem.empty()) {
    running_->result.emplace();  // g++ 12 mixes up the frames of coroutines with braced temporaries in them
    running_->result->outcome = AttemptOutcome::refused;
    running_->result->reason = problem;
    co_return;
  }
  auto request = request_for(*program_, running_->id, parameters_of(*program_, plan_, directory_, guards));
  const auto executor = co_await asio::this_coro::executor;
  asio::co_spawn(executor, follow(*agent_, std::move(request), running_), asio::detached);
}

std::optional<std::string> SiteWatch::trouble() const {
  if (running_ == nullptr) return "the site's meters are not read";
  if (!running_->result) return std::nullopt;
  const auto record = read_record(running_->result->output, program_->description);
  if (record) {
    const auto over = std::ranges::find(record->conditions, "over_limit", &Condition::name);
    if (over != record->conditions.end())
      if (const auto* words = std::get_if<std::string>(&over->value)) return *words;
    if (!record->end.reason.empty()) return "the site's meters are no longer read: " + record->end.reason;
  }
  return "the site's meters are no longer read: " + running_->result->reason;
}

asio::awaitable<void> SiteWatch::end() {
  if (running_ == nullptr) co_return;
  const std::shared_ptr<Running> running = running_;
  if (!running->result && agent_ != nullptr) agent_->stop(running->id);
  const auto limit = std::chrono::steady_clock::now() +
                     std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(kGrace.count));
  boost::system::error_code woken;
  while (!running->result && std::chrono::steady_clock::now() < limit) {
    asio::steady_timer slice(co_await asio::this_coro::executor, std::chrono::milliseconds(20));
    co_await slice.async_wait(asio::redirect_error(asio::use_awaitable, woken));
  }
  judge::Watch watch = ended(*program_, running->number, running->result);
  const auto keep = [&](const std::string& path, const std::string& bytes) {
    if (bytes.empty()) return;
    files::write_new_durably(directory_ + "/" + path, bytes);
    watch.evidence.push_back({.path = path, .sha256 = files::sha256(bytes), .bytes = bytes.size()});
  };
  if (running->result) {
    keep(judge::watch_record_path(watch.number, watch.probe), running->result->output);
    keep(judge::watch_log_path(watch.number, watch.probe), running->result->log);
  }
  journal_.end_watch(std::move(watch));
  if (!running->result || running->result->outcome == AttemptOutcome::lost) agent_.reset();
  running_.reset();
}

asio::awaitable<void> SiteWatch::close() {
  co_await end();
  if (agent_ == nullptr) co_return;
  co_await agent_->close();
  agent_.reset();
}

}  // namespace assay::run
