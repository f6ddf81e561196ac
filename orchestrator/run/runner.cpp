// runner: the steps of the plan, from the first agent started to the last one ended.
#include "orchestrator/run/runner.h"

#include <algorithm>
#include <csignal>
#include <utility>

#include <fmt/format.h>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "orchestrator/judge/cells/stability_looks.h"
#include "orchestrator/plan/metered.h"
#include "orchestrator/run/tpm_credential.h"

namespace assay::run {

namespace asio = boost::asio;

Runner::Runner(const plan::Plan& plan, const std::vector<plan::Program>& programs, const RunOptions& options,
               RunJournal& journal, Progress& progress)
    : plan_(plan),
      passes_(plan),
      programs_(programs),
      options_(options),
      progress_(progress),
      journal_(journal),
      admission_(plan.site.power_cap_w, options.deadline),
      starter_(io_, plan.site, options, progress),
      meters_(plan::site_companion(plan.profile), plan, programs, options, starter_, journal_),
      switches_(plan::switch_companion(plan.profile), plan, programs, options, starter_, journal_),
      signals_(io_, SIGINT, SIGTERM),
      clock_(io_),
      change_(io_, asio::steady_timer::time_point::max()) {
  for (const auto& node : plan.site.nodes) {
    index_[node.name] = node_work_.size();
    node_work_.push_back(NodeWork{.agent = NodeAgent(node, starter_, journal_)});
  }
}

std::expected<RunEnd, InputError> Runner::go() {
  show_kept();
  keep_agents();
  queue_turns();
  demand_space();
  prepare_slurm();
  wait_for_signal();
  asio::co_spawn(io_, tick(), asio::detached);
  spawn(run_all());
  io_.run();
  if (failure_) std::rethrow_exception(failure_);
  if (no_space_) return std::unexpected(*no_space_);
  if (interrupted_) return RunEnd::interrupted;
  if (!failed_.empty() || !too_late_.empty() || !too_large_.empty()) return RunEnd::stopped;
  journal_.end_run();
  return RunEnd::finished;
}

/// Steps, then those that are measured again, then searches, then the end of every agent.
asio::awaitable<void> Runner::run_all() {
  const auto goes_on = [this] { return !stopping_ && too_late_.empty(); };
  co_await meters_.begin();
  co_await switches_.begin();
  co_await run_stage();
  judge::Results results;
  if (goes_on() && follows()) results = judged();
  if (goes_on() && begin_second_stage(results)) {
    co_await run_stage();
    if (goes_on()) results = judged();
  }
  journal_left_out();
  if (goes_on()) co_await localise(results);
  for (auto& lane : node_work_) {
    if (lane.agent.get() != nullptr) close_agent(lane);
  }
  while (closing_ > 0) co_await change();
  co_await meters_.close();
  co_await switches_.close();
  co_await starter_.close();
  io_.stop();
}

/// The nodes of launcher slurm that have something to do are started together.
void Runner::prepare_slurm() {
  std::vector<std::string> nodes;
  for (const auto& lane : node_work_) {
    const site::Node& node = lane.agent.node();
    if (node.launcher == site::Launcher::slurm && (!lane.queue.empty() || lane.kept)) nodes.push_back(node.name);
  }
  if (!nodes.empty()) starter_.use_slurm(std::move(nodes));
}

/// Waits until changed() is called.
asio::awaitable<void> Runner::change() {
  boost::system::error_code woken;
  co_await change_.async_wait(asio::redirect_error(asio::use_awaitable, woken));
}

void Runner::spawn(asio::awaitable<void> work) {
  asio::co_spawn(io_, std::move(work), [this](const std::exception_ptr& failure) {
    if (!failure) return;
    if (!failure_) failure_ = failure;
    io_.stop();
  });
}

void Runner::wait_for_signal() {
  signals_.async_wait([this](const boost::system::error_code& error, int) {
    if (error) return;
    if (interrupted_) return io_.stop();  // agents kill their trees when their streams close
    stopping_ = interrupted_ = true;
    journal_.interrupt();
    if (options_.kill_at_signal) return io_.stop();
    progress_.node("all nodes",
                   "interrupted by you: running steps finish, no more steps start; once more stops at once");
    advance_all();
    changed();
    wait_for_signal();
  });
}

asio::awaitable<void> Runner::tick() {
  boost::system::error_code error;
  while (!error) {
    clock_.expires_after(std::chrono::seconds(1));
    co_await clock_.async_wait(asio::redirect_error(asio::use_awaitable, error));
    progress_.tick();
  }
}

void Runner::begin(NodeWork& lane) {
  lane.busy = true;
  spawn(start_agent(lane));
}

/// Starts the lane's agent, then the lane's next step.
asio::awaitable<void> Runner::start_agent(NodeWork& lane) {
  co_await lane.agent.start(stopping_);
  const bool live = lane.agent.get() != nullptr;
  lane.busy = false;
  if (lane.resting) {
    lane.gone = !live;
    changed();
  } else if (live) {
    advance(lane);
  } else if (stopping_) {
    rest(lane);
  } else {
    give_up(lane);
  }
  if (waits_for_agents_ && --starting_ == 0) begin_steps();
}

/// Starts the lane's next step when it can run; lets the lane rest when there is none.
void Runner::advance(NodeWork& lane) {
  if (lane.resting || lane.busy || (waits_for_agents_ && !stopping_)) return;
  const auto next_of = [this](NodeWork& one) -> const plan::Step* {
    while (!one.queue.empty() && dropped_.contains(one.queue.front())) one.queue.pop_front();
    return one.queue.empty() ? nullptr : one.queue.front();
  };
  const plan::Step* step = next_of(lane);
  while (step != nullptr && !admission_.fits_time(*step)) {
    too_late_.push_back(step->id);
    drop(*step);
    step = next_of(lane);
  }
  if (step == nullptr || stopping_) return rest(lane);
  for (const auto& node : step->nodes) {
    NodeWork& other = work_of(node);
    if (other.busy || other.resting || next_of(other) != step) return;
  }
  if (!admission_.fits_power(*step) || !admission_.fits_others(*step)) {
    waits_for_others_ = true;
    return;
  }
  for (const auto& node : step->nodes) work_of(node).busy = true;
  admission_.begin(*step);
  spawn(perform(*step));
}

void Runner::advance_all() {
  for (auto& lane : node_work_) advance(lane);
}

/// One attempt of the step; then its nodes are free for their next steps.
asio::awaitable<void> Runner::perform(const plan::Step& step) {
  const std::string no_purpose;
  const std::vector<std::string> lost = co_await attempt(step, no_purpose);
  admission_.end(step);
  stop_at_failure(step);
  stop_at_one_cause();
  if (judge::is_of_stability(plan_, step)) stop_at_crossing();
  if (journal_.wanted(step) == 0 && std::ranges::count(work_of(step.nodes.front()).queue, &step) > 1) drop(step);
  release(step, lost);
}

/// The step's nodes start their next steps, and so do the nodes that waited for its power or its end.
void Runner::release(const plan::Step& step, const std::vector<std::string>& lost) {
  for (const auto& node : step.nodes) {
    NodeWork& lane = work_of(node);
    lane.queue.pop_front();
    lane.busy = false;
  }
  for (const auto& node : step.nodes) {
    NodeWork& lane = work_of(node);
    if (std::ranges::find(lost, node) == lost.end()) {
      advance(lane);
      continue;
    }
    lane.agent.lose("the connection was lost in step " + step.id);
    if (lane.queue.empty() || stopping_) {
      rest(lane);
    } else if (lane.agent.may_restart()) {
      begin(lane);
    } else {
      give_up(lane);
    }
  }
  if (std::exchange(waits_for_others_, false) || stopping_) advance_all();
}

/// One attempt, journalled; returns the nodes that were lost in it. An extra test has a purpose.
asio::awaitable<std::vector<std::string>> Runner::attempt(const plan::Step& step, const std::string& purpose) {
  std::vector<launch::Agent*> agents;
  for (const auto& node : step.nodes) agents.push_back(work_of(node).agent.get());
  const bool loads_all = step.probe == plan::kLoadProbe;
  if (loads_all) {  // it gets a watch of its own, which ends when a meter is over its limit
    co_await meters_.end();
    co_await meters_.begin(true);
  }
  AttemptInputs inputs{.plan = plan_, .programs = programs_, .directory = options_.directory};
  TpmCredential credential;
  const bool asks = plan::asks_hardware(step.probe) && purpose.empty();
  if (asks && step.probe == plan::kIdentityProbe) {
    const std::string keys = co_await keys_of_tpm(*agents.front(), inputs, step);
    credential = credential_for(keys, plan_.probes.at(step.probe).description);
  }
  const int number = journal_.begin_attempt(step, purpose, asks ? &credential.secret_sha256 : nullptr);
  if (asks) inputs.challenge = fmt::format("{}:{}", journal_.nonce_of(step), credential.file);
  if (loads_all) inputs.stop = [this] { return meters_.trouble(); };
  AttemptEnd end = co_await run_attempt(std::move(agents), inputs, step, number);
  if (!purpose.empty()) {
    end.attempt.nodes = step.nodes;
    end.attempt.purpose = purpose;
  }
  // Evidence for the step's figures of meters must be on disk when the attempt ends, as its own evidence is.
  const bool metered = loads_all || (purpose.empty() && meters_.judges(step));
  const bool switched = purpose.empty() && switches_.judges(step);
  if (metered) co_await meters_.end();
  if (switched) co_await switches_.end();
  journal_.end_attempt(step, std::move(end.attempt), end.measured);
  if (metered) co_await meters_.begin();
  if (switched) co_await switches_.begin();
  co_return end.lost;
}

/// The step gets no further attempt in this stage; its nodes skip it.
void Runner::drop(const plan::Step& step) {
  if (!dropped_.insert(&step).second) return;
  progress_.step_dropped(step);
  for (const auto& node : step.nodes) {
    if (NodeWork& lane = work_of(node); !lane.busy) asio::post(io_, [this, &lane] { advance(lane); });
  }
}

/// Drops every step that needs the lane's node; nodes that waited for it start their next steps.
void Runner::give_up(NodeWork& lane) {
  lane.gone = true;
  for (const plan::Step* step : lane.queue) drop(*step);
  lane.queue.clear();
  rest(lane);
}

/// The lane's steps are over: its agent is ended, unless it may be needed once more.
void Runner::rest(NodeWork& lane) {
  lane.resting = true;
  lane.busy = false;
  if (lane.agent.get() != nullptr && (!lane.kept || stopping_)) close_agent(lane);
  --open_lanes_;
  changed();
}

void Runner::close_agent(NodeWork& lane) {
  ++closing_;
  spawn(closed(lane.agent.close()));
}

/// Waits for the end of an agent.
asio::awaitable<void> Runner::closed(asio::awaitable<void> closing) {
  co_await std::move(closing);
  --closing_;
  changed();
}

/// With stop_on_fail: nothing more starts once a required cell of the step has failed, and no planned attempt is left
/// that could change that.
void Runner::stop_at_failure(const plan::Step& step) {
  if (!options_.stop_on_fail || stopping_) return;
  const auto results = journal_.results_of(step);
  const auto failed = std::ranges::find_if(results, [&](const judge::Result& one) {
    const bool last = journal_.stage() == plan::Stage::second || step.more_attempts == 0 ||
                      plan_.requirement(one.requirement)->more_attempts == 0;
    return one.required && one.outcome == judge::Outcome::fail && last;
  });
  if (failed == results.end()) return;
  stopping_ = true;
  failed_ =
      fmt::format("{} on {} failed, and the run was to stop at the first failure", failed->requirement, failed->node);
  progress_.node("all nodes", failed_);
}

/// Where attempts on half of the nodes break one after the other for one cause, the others will, too: the run stops,
/// and its user looks before resuming it. One broken node of many stops nothing.
void Runner::stop_at_one_cause() {
  constexpr int kMost = 5;
  const SameCause& seen = journal_.same_cause();
  if (seen.attempts < kMost || 2 * seen.nodes.size() < node_work_.size() || stopping_ || options_.resume) return;
  const bool more = std::ranges::any_of(
      plan_.steps, [&](const plan::Step& step) { return journal_.wanted(step) > 0 && !dropped_.contains(&step); });
  if (!more) return;
  stopping_ = true;
  failed_ = fmt::format("{} attempts in a row broke for one cause: {}", seen.attempts, seen.cause);
  progress_.node("all nodes", failed_);
}

/// Journals which steps did not start, and why.
void Runner::journal_left_out() {
  if (!too_late_.empty()) journal_.leave_out("the run's deadline was too near for it", too_late_);
  for (const auto& [reason, steps] : too_large_) journal_.leave_out(reason, steps);
  if (failed_.empty()) return;
  std::vector<std::string> steps;
  for (const auto& step : plan_.steps) {
    if (journal_.wanted(step) > 0 && !dropped_.contains(&step)) steps.push_back(step.id);
  }
  if (!steps.empty()) journal_.leave_out(failed_, steps);
}

}  // namespace assay::run
