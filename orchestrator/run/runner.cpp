// runner: the steps of the plan.
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

#include "orchestrator/judge/judge.h"

namespace assay::run {
namespace {

namespace asio = boost::asio;

constexpr std::chrono::seconds kFirstPause{1};     // before a lost node is tried again; doubled each time
constexpr std::chrono::seconds kLongestPause{16};  // so that a node that is back is seen soon
constexpr double kPowerSlack = 1e-9;               // relative; sums of watts are not exact

}  // namespace

Runner::Runner(const plan::Plan& plan, const std::vector<plan::Program>& programs, const RunOptions& options,
               judge::Journal journal, judge::JournalWriter writer, Progress& progress)
    : plan_(plan),
      programs_(programs),
      options_(options),
      progress_(progress),
      memory_(std::move(journal)),
      journal_(std::move(writer)),
      evidence_(judge::evidence_in(options.directory)),
      tokens_(io_, static_cast<std::size_t>(options.starts_at_once)),
      signals_(io_, SIGINT, SIGTERM),
      clock_(io_),
      change_(io_, Clock::time_point::max()) {
  for (const auto& node : plan.site.nodes) {
    index_[node.name] = lanes_.size();
    lanes_.push_back(Lane{.node = &node, .agent = nullptr, .queue = {}});
  }
  for (std::size_t i = 0; i < memory_.attempts.size(); ++i) attempts_[memory_.attempts[i].step].push_back(i);
  for (const auto& cell : plan.coverage) {
    if (!cell.step.empty()) cells_[cell.step].push_back(cell);
  }
  std::set<std::string_view> searched;
  for (const auto& search : plan.searches) {
    if (search.budget > 0) searched.insert(search.step);
  }
  for (const auto& step : plan.steps) {
    if (!searched.contains(step.id)) continue;
    for (const auto& node : step.nodes) lane_of(node).kept = true;
  }
  if (options.deadline)
    end_ = Clock::now() +
           std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(options.deadline->count));
}

RunEnd Runner::go() {
  for (const auto& step : plan_.steps) {
    if (!memory_.localising && wants_attempt(step)) {
      for (const auto& node : step.nodes) lane_of(node).queue.push_back(&step);
    } else {
      progress_.step_kept(step);
    }
  }
  prepare_slurm();
  open_lanes_ = lanes_.size();
  for (auto& lane : lanes_) lane.queue.empty() ? rest(lane) : begin(lane);
  wait_for_signal();
  asio::co_spawn(io_, tick(), asio::detached);
  spawn(whole());
  io_.run();
  if (failure_) std::rethrow_exception(failure_);
  if (interrupted_) return RunEnd::interrupted;
  if (!failed_.empty() || !too_late_.empty()) return RunEnd::stopped;
  journal_.run_end();
  return RunEnd::finished;
}

/// Steps, then searches, then everybody goes home.
asio::awaitable<void> Runner::whole() {
  while (open_lanes_ > 0) co_await change();
  leave_out();
  if (!stopping_ && too_late_.empty()) co_await localise();
  for (auto& lane : lanes_) {
    if (lane.agent) let_go(lane);
  }
  while (closing_ > 0) co_await change();
  if (slurm_) co_await slurm_->close();
  io_.stop();
}

/// The nodes of launcher slurm that have something to do are started together.
void Runner::prepare_slurm() {
  std::vector<std::string> nodes;
  for (const auto& lane : lanes_) {
    if (lane.node->launcher == site::Launcher::slurm && (!lane.queue.empty() || lane.kept))
      nodes.push_back(lane.node->name);
  }
  if (nodes.empty()) return;
  launch::SlurmTools tools{.agent = options_.agent};
  slurm_ = std::make_unique<launch::SlurmLauncher>(
      io_.get_executor(), plan_.site, std::move(nodes), std::move(tools),
      [this](const std::string& who, const std::string& what) { progress_.node(who, what); });
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
    progress_.node("all nodes", "interrupted: running steps end, no more start; once more stops now");
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

/// What the judge needs of a step: its attempts, and what its nodes said of themselves.
judge::Journal Runner::part_of(const plan::Step& step) const {
  judge::Journal part;
  if (const auto mine = attempts_.find(step.id); mine != attempts_.end()) {
    for (const std::size_t index : mine->second) part.attempts.push_back(memory_.attempts[index]);
  }
  for (const auto& node : step.nodes) {
    if (const auto facts = memory_.node_facts.find(node); facts != memory_.node_facts.end())
      part.node_facts.insert(*facts);
  }
  return part;
}

std::vector<judge::Result> Runner::results_of(const plan::Step& step) {
  return judge::judge_step(plan_, step, cells_[step.id], part_of(step), evidence_);
}

/// Whether one more attempt of `step` belongs to the plan, from what the journal holds.
bool Runner::wants_attempt(const plan::Step& step) {
  std::size_t ended = 0;
  for (const std::size_t index : attempts_[step.id]) {
    const judge::Attempt& attempt = memory_.attempts[index];
    if (attempt.outcome == AttemptOutcome::interrupted) continue;
    ++ended;
    if (attempt.outcome != AttemptOutcome::exited) return false;
  }
  if (ended == 0) return true;
  return ended < static_cast<std::size_t>(step.looks) && judge::another_look_decides(results_of(step));
}

void Runner::begin(Lane& lane) {
  lane.busy = true;
  spawn(start_agent(lane));
}

/// Starts the lane's agent; one that was there before is tried again for a while.
asio::awaitable<void> Runner::start_agent(Lane& lane) {
  const bool again = ++lane.starts > 1;
  const auto patience = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                           std::chrono::duration<double>(again ? options_.patience.count : 0));
  std::chrono::seconds pause = kFirstPause;
  boost::system::error_code woken;
  while (!stopping_) {
    const bool last = Clock::now() + pause >= patience;
    if (co_await try_agent(lane, last) || last) break;
    asio::steady_timer timer(io_, pause);
    pause = std::min(2 * pause, kLongestPause);
    co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, woken));
  }
  lane.busy = false;
  if (lane.resting) {
    lane.gone = !lane.agent;
    changed();
  } else if (lane.agent) {
    advance(lane);
  } else if (stopping_) {
    rest(lane);
  } else {
    give_up(lane);
  }
}

/// One try; whether the agent is there. What went wrong is journalled when it was the last.
asio::awaitable<bool> Runner::try_agent(Lane& lane, bool last) {
  boost::system::error_code closed;
  co_await tokens_.async_send({}, asio::redirect_error(asio::use_awaitable, closed));
  const std::string& name = lane.node->name;
  progress_.node(name, "starting the agent");
  // g++ 12 destroys a braced temporary in a co_await twice; delete the name with g++ 13.
  const launch::LaunchOptions launch{.agent = options_.agent, .slurm = slurm_.get()};
  auto agent = co_await launch::Agent::start(*lane.node, plan_.site, launch);
  tokens_.try_receive([](const boost::system::error_code&) {});
  if (!agent) {
    if (last) node_down(name, agent.error().reason);
    co_return false;
  }
  lane.agent = std::move(*agent);
  memory_.node_facts[name] = lane.agent->facts();
  journal_.node_up(name, lane.agent->facts());
  progress_.node(name, "ready");
  co_return true;
}

/// Starts the lane's next step when it can run; lets the lane rest when there is none.
void Runner::advance(Lane& lane) {
  if (lane.resting || lane.busy) return;
  const auto next_of = [this](Lane& one) -> const plan::Step* {
    while (!one.queue.empty() && dropped_.contains(one.queue.front())) one.queue.pop_front();
    return one.queue.empty() ? nullptr : one.queue.front();
  };
  const plan::Step* step = next_of(lane);
  while (step != nullptr && !fits_time(*step)) {
    too_late_.push_back(step->id);
    drop(*step);
    step = next_of(lane);
  }
  if (step == nullptr || stopping_) return rest(lane);
  for (const auto& node : step->nodes) {
    Lane& other = lane_of(node);
    if (other.busy || other.resting || next_of(other) != step) return;
  }
  if (!fits_power(*step) || !fits_others(*step)) {
    waits_for_others_ = true;
    return;
  }
  for (const auto& node : step->nodes) lane_of(node).busy = true;
  power_w_ += step->power_w;
  ++running_;
  alone_ = step->alone;
  spawn(perform(*step));
}

void Runner::advance_all() {
  for (auto& lane : lanes_) advance(lane);
}

/// Every attempt that the step is due, then its nodes go on.
asio::awaitable<void> Runner::perform(const plan::Step& step) {
  std::vector<std::string> lost;
  const std::string no_purpose;
  do {
    lost = co_await attempt(step, no_purpose);
  } while (!stopping_ && lost.empty() && wants_attempt(step) && fits_time(step));
  power_w_ -= step.power_w;
  --running_;
  alone_ = false;
  stop_at_failure(step);
  after(step, lost);
}

/// The step's nodes go on, and whoever waited for its power or its end.
void Runner::after(const plan::Step& step, const std::vector<std::string>& lost) {
  for (const auto& node : step.nodes) {
    Lane& lane = lane_of(node);
    lane.queue.pop_front();
    lane.busy = false;
  }
  for (const auto& node : step.nodes) {
    Lane& lane = lane_of(node);
    if (std::ranges::find(lost, node) == lost.end()) {
      advance(lane);
      continue;
    }
    lane.agent.reset();
    node_down(node, "the connection was lost in step " + step.id);
    if (lane.queue.empty() || stopping_) {
      rest(lane);
    } else if (lane.starts <= kMostReconnects) {
      begin(lane);
    } else {
      give_up(lane);
    }
  }
  if (std::exchange(waits_for_others_, false) || stopping_) advance_all();
}

/// One attempt, journalled; the nodes that were lost in it. An extra test has a purpose.
asio::awaitable<std::vector<std::string>> Runner::attempt(const plan::Step& step, const std::string& purpose) {
  const int number = static_cast<int>(attempts_[step.id].size()) + 1;
  std::vector<launch::Agent*> agents;
  for (const auto& node : step.nodes) agents.push_back(lane_of(node).agent.get());
  if (purpose.empty()) {
    journal_.attempt_begin(step.id, number, step.nodes.front());
  } else {
    journal_.test_begin({.step = step.id,
                         .number = number,
                         .node = step.nodes.front(),
                         .reason = "",
                         .begin = "",
                         .end = "",
                         .evidence = {},
                         .nodes = step.nodes,
                         .purpose = purpose});
  }
  progress_.step_begin(step, number);
  AttemptEnd end = co_await run_attempt(std::move(agents), plan_, step, number, programs_, options_.directory);
  if (!purpose.empty()) {
    end.attempt.nodes = step.nodes;
    end.attempt.purpose = purpose;
  }
  journal_.attempt_end(end.attempt);
  progress_.step_end(step, number, end.attempt.outcome, end.attempt.reason);
  attempts_[step.id].push_back(memory_.attempts.size());
  memory_.attempts.push_back(std::move(end.attempt));
  co_return end.lost;
}

/// The step never starts; its nodes pass it over.
void Runner::drop(const plan::Step& step) {
  if (!dropped_.insert(&step).second) return;
  progress_.step_dropped(step);
  for (const auto& node : step.nodes) {
    if (Lane& lane = lane_of(node); !lane.busy) asio::post(io_, [this, &lane] { advance(lane); });
  }
}

/// Drops every step that needs the lane's node, and lets the nodes that waited for it go on.
void Runner::give_up(Lane& lane) {
  lane.gone = true;
  for (const plan::Step* step : lane.queue) drop(*step);
  lane.queue.clear();
  rest(lane);
}

/// The lane's steps are over: its agent is sent home, unless a search may want it.
void Runner::rest(Lane& lane) {
  lane.resting = true;
  lane.busy = false;
  if (lane.agent && (!lane.kept || stopping_)) let_go(lane);
  --open_lanes_;
  changed();
}

/// Sends the lane's agent home.
void Runner::let_go(Lane& lane) {
  ++closing_;
  spawn(close(std::move(lane.agent)));
}

asio::awaitable<void> Runner::close(std::unique_ptr<launch::Agent> agent) {
  co_await agent->close();
  --closing_;
  changed();
}

void Runner::node_down(const std::string& node, const std::string& reason) {
  memory_.node_events.push_back({.node = node, .time = "", .reason = reason});
  journal_.node_down(node, reason);
  progress_.node(node, reason);
}

bool Runner::fits_power(const plan::Step& step) const {
  return !plan_.site.power_cap_w || power_w_ + step.power_w <= *plan_.site.power_cap_w * (1 + kPowerSlack);
}

/// Whether nothing runs that `step`, or its neighbour, must not share the network with.
bool Runner::fits_others(const plan::Step& step) const { return !alone_ && (!step.alone || running_ == 0); }

bool Runner::fits_time(const plan::Step& step) const {
  return end_ == Clock::time_point::max() ||
         Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(step.typical_s)) <=
             end_;
}

/// With stop_on_fail: nothing more starts once a required cell of the step has failed.
void Runner::stop_at_failure(const plan::Step& step) {
  if (!options_.stop_on_fail || stopping_) return;
  const auto results = results_of(step);
  const auto failed = std::ranges::find_if(
      results, [](const judge::Result& one) { return one.required && one.outcome == judge::Outcome::fail; });
  if (failed == results.end()) return;
  stopping_ = true;
  failed_ =
      fmt::format("{} on {} failed, and the run was to stop at the first failure", failed->requirement, failed->node);
  progress_.node("all nodes", failed_);
}

/// Journals which steps did not start, and why.
void Runner::leave_out() {
  if (!too_late_.empty()) journal_.steps_left_out("the run's deadline was too near for it", too_late_);
  if (failed_.empty()) return;
  std::vector<std::string> steps;
  for (const auto& step : plan_.steps) {
    if (attempts_[step.id].empty() && !dropped_.contains(&step)) steps.push_back(step.id);
  }
  if (!steps.empty()) journal_.steps_left_out(failed_, steps);
}

}  // namespace assay::run
