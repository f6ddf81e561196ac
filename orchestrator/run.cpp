// run: one thread, one event loop, a coroutine for each node.
#include "orchestrator/run.h"

#include <algorithm>
#include <csignal>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <system_error>

#include <unistd.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/experimental/channel.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/uuid/random_generator.hpp>
#include <boost/uuid/uuid_io.hpp>
#include <fmt/format.h>

#include "orchestrator/attempt.h"
#include "orchestrator/judge.h"
#include "orchestrator/launch_srun.h"
#include "probes/core/utc_time.h"

namespace assay {
namespace {

namespace asio = boost::asio;
using Tokens = asio::experimental::channel<void(boost::system::error_code)>;

constexpr int kMostReconnects = 1;  // a node that goes away twice is a finding, not a hiccup

/// One node: its agent, and the steps that it still has to take part in, in the plan's order.
struct Lane {
  const Node* node = nullptr;
  std::unique_ptr<Agent> agent;
  std::deque<const Step*> queue;
  bool busy = true;  ///< its agent is being started, or runs a step
  int starts = 0;
  bool over = false;
};

/// A step runs when it is first in the queue of each of its nodes and all of them are idle. The queues hold the plan's
/// order, so the first open step of the whole plan is always first everywhere, and no two nodes can wait for each other.
class Runner {
 public:
  Runner(const Plan& plan, const std::vector<Program>& programs, const RunOptions& options, Journal journal, Progress& progress)
      : plan_(plan), programs_(programs), options_(options), progress_(progress), memory_(std::move(journal)),
        journal_(options.directory + "/journal.jsonl"), tokens_(io_, static_cast<std::size_t>(options.starts_at_once)),
        signals_(io_, SIGINT, SIGTERM), clock_(io_) {
    for (const auto& node : plan.site.nodes) {
      index_[node.name] = lanes_.size();
      lanes_.push_back(Lane{.node = &node, .agent = nullptr, .queue = {}});
    }
    for (std::size_t i = 0; i < memory_.attempts.size(); ++i) attempts_[memory_.attempts[i].step].push_back(i);
  }

  JournalWriter& journal() { return journal_; }

  /// Runs every step to its end. Throws what one of them threw.
  RunEnd go() {
    for (const auto& step : plan_.steps) {
      if (wants_attempt(step)) {
        for (const auto& node : step.nodes) lane_of(node).queue.push_back(&step);
      } else {
        progress_.step_kept(step);
      }
    }
    prepare_slurm();
    open_lanes_ = lanes_.size();
    for (auto& lane : lanes_) lane.queue.empty() ? leave(lane) : begin(lane);
    if (open_lanes_ > 0) {
      wait_for_signal();
      asio::co_spawn(io_, tick(), asio::detached);
      io_.run();
    }
    if (failure_) std::rethrow_exception(failure_);
    if (stopping_) return RunEnd::interrupted;
    journal_.run_end();
    return RunEnd::finished;
  }

 private:
  Lane& lane_of(const std::string& node) { return lanes_[index_.at(node)]; }

  /// The nodes of launcher slurm that have something to do are started together.
  void prepare_slurm() {
    std::vector<std::string> nodes;
    for (const auto& lane : lanes_) {
      if (lane.node->launcher == Launcher::slurm && !lane.queue.empty()) nodes.push_back(lane.node->name);
    }
    if (nodes.empty()) return;
    SlurmTools tools{.agent = options_.agent};
    slurm_ = std::make_unique<SlurmLauncher>(io_.get_executor(), plan_.site, std::move(nodes), std::move(tools),
                                             [this](const std::string& who, const std::string& what) { progress_.node(who, what); });
  }

  void spawn(asio::awaitable<void> work) {
    asio::co_spawn(io_, std::move(work), [this](const std::exception_ptr& failure) {
      if (!failure) return;
      if (!failure_) failure_ = failure;
      io_.stop();
    });
  }

  void wait_for_signal() {
    signals_.async_wait([this](const boost::system::error_code& error, int) {
      if (error) return;
      if (stopping_) return io_.stop();  // agents kill their trees when their streams close
      stopping_ = true;
      progress_.node("all nodes", "interrupted: running steps end, no more start; once more stops now");
      for (auto& lane : lanes_) advance(lane);
      wait_for_signal();
    });
  }

  asio::awaitable<void> tick() {
    boost::system::error_code error;
    while (!error) {
      clock_.expires_after(std::chrono::seconds(1));
      co_await clock_.async_wait(asio::redirect_error(asio::use_awaitable, error));
      progress_.tick();
    }
  }

  /// Whether one more attempt of `step` belongs to the plan, from what the journal holds.
  bool wants_attempt(const Step& step) {
    std::size_t ended = 0;
    for (const std::size_t index : attempts_[step.id]) {
      const Attempt& attempt = memory_.attempts[index];
      if (attempt.outcome == "interrupted") continue;
      ++ended;
      if (attempt.outcome != "exited") return false;
    }
    if (ended == 0) return true;
    if (ended >= static_cast<std::size_t>(step.looks)) return false;
    return another_look_decides(plan_, step, memory_, evidence_in(options_.directory));
  }

  void begin(Lane& lane) {
    lane.busy = true;
    ++lane.starts;
    spawn(start_agent(lane));
  }

  asio::awaitable<void> start_agent(Lane& lane) {
    boost::system::error_code closed;
    co_await tokens_.async_send({}, asio::redirect_error(asio::use_awaitable, closed));
    if (!stopping_) {
      progress_.node(lane.node->name, "starting the agent");
      // g++ 12 destroys a braced temporary in a co_await twice; delete the name with g++ 13.
      const LaunchOptions launch{.agent = options_.agent, .slurm = slurm_.get()};
      auto agent = co_await Agent::start(*lane.node, plan_.site, launch);
      if (agent) {
        lane.agent = std::move(*agent);
        memory_.node_facts[lane.node->name] = lane.agent->facts();
        journal_.node_up(lane.node->name, lane.agent->facts());
        progress_.node(lane.node->name, "ready");
      } else {
        node_down(lane.node->name, agent.error().reason);
      }
    }
    tokens_.try_receive([](const boost::system::error_code&) {});
    lane.busy = false;
    if (lane.agent) {
      advance(lane);
    } else {
      give_up(lane);
    }
  }

  /// Starts the lane's next step when it can run; closes the agent when there is none.
  void advance(Lane& lane) {
    if (lane.over || lane.busy) return;
    while (!lane.queue.empty() && dropped_.contains(lane.queue.front())) lane.queue.pop_front();
    if (lane.queue.empty() || stopping_) return leave(lane);
    const Step& step = *lane.queue.front();
    for (const auto& node : step.nodes) {
      Lane& other = lane_of(node);
      while (!other.queue.empty() && dropped_.contains(other.queue.front())) other.queue.pop_front();
      if (other.busy || other.over || other.queue.empty() || other.queue.front() != &step) return;
    }
    for (const auto& node : step.nodes) lane_of(node).busy = true;
    spawn(perform(step));
  }

  /// Every attempt that the step is due, then its nodes go on.
  asio::awaitable<void> perform(const Step& step) {
    std::vector<std::string> lost;
    while (!stopping_ && lost.empty() && wants_attempt(step)) lost = co_await attempt(step);
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
      if (lane.starts <= kMostReconnects && !lane.queue.empty() && !stopping_) {
        begin(lane);
      } else {
        give_up(lane);
      }
    }
  }

  /// One attempt, journalled; the nodes that were lost in it.
  asio::awaitable<std::vector<std::string>> attempt(const Step& step) {
    const int number = static_cast<int>(attempts_[step.id].size()) + 1;
    std::vector<Agent*> agents;
    for (const auto& node : step.nodes) agents.push_back(lane_of(node).agent.get());
    journal_.attempt_begin(step.id, number, step.nodes.front());
    progress_.step_begin(step, number);
    AttemptEnd end = co_await run_attempt(std::move(agents), plan_, step, number, programs_, options_.directory);
    journal_.attempt_end(end.attempt);
    progress_.step_end(step, number, end.attempt.outcome, end.attempt.reason);
    attempts_[step.id].push_back(memory_.attempts.size());
    memory_.attempts.push_back(std::move(end.attempt));
    co_return end.lost;
  }

  /// Drops every step that needs the lane's node, and lets the nodes that waited for it go on.
  void give_up(Lane& lane) {
    std::set<std::string> partners;
    for (const Step* step : lane.queue) {
      if (dropped_.insert(step).second) partners.insert(step->nodes.begin(), step->nodes.end());
    }
    lane.queue.clear();
    leave(lane);
    for (const auto& partner : partners) advance(lane_of(partner));
  }

  /// The lane has no more to do: its agent is sent home.
  void leave(Lane& lane) {
    lane.over = true;
    lane.busy = false;
    spawn(close(lane));
  }

  asio::awaitable<void> close(Lane& lane) {
    if (lane.agent) co_await lane.agent->close();
    lane.agent.reset();
    if (--open_lanes_ > 0) co_return;
    if (slurm_) co_await slurm_->close();
    io_.stop();
  }

  void node_down(const std::string& node, const std::string& reason) {
    memory_.node_events.push_back({.node = node, .time = "", .reason = reason});
    journal_.node_down(node, reason);
    progress_.node(node, reason);
  }

  const Plan& plan_;
  const std::vector<Program>& programs_;
  const RunOptions& options_;
  Progress& progress_;
  Journal memory_;  ///< what the journal on disk says
  JournalWriter journal_;
  std::map<std::string, std::vector<std::size_t>> attempts_;  ///< of each step, by index in memory_
  std::map<std::string, std::size_t> index_;                  ///< of each node's lane
  asio::io_context io_{1};
  std::vector<Lane> lanes_;
  std::unique_ptr<SlurmLauncher> slurm_;  ///< null when no node of the plan needs it
  std::set<const Step*> dropped_;  ///< steps that lost a node before they began
  Tokens tokens_;                  ///< one is held while an agent is being started
  asio::signal_set signals_;
  asio::steady_timer clock_;
  std::size_t open_lanes_ = 0;
  bool stopping_ = false;
  std::exception_ptr failure_;
};

/// The probes at hand must be the very ones that were planned.
std::optional<InputError> check_programs(const Plan& plan, const std::vector<Program>& programs) {
  for (const auto& [name, planned] : plan.probes) {
    const auto found = std::ranges::find(programs, name, &Program::name);
    if (found == programs.end()) return InputError{name, "was planned and is not part of this build", "plan again"};
    if (found->sha256 != planned.sha256) return InputError{found->path, "is not the binary that was planned", "plan again, or use the build that planned"};
  }
  return std::nullopt;
}

/// What the run directory already holds; empty for a fresh run.
std::expected<Journal, InputError> earlier(const std::string& directory, const std::string& plan_sha256, bool resume) {
  const std::string path = directory + "/journal.jsonl";
  if (!resume) {
    if (::access(path.c_str(), F_OK) == 0) return std::unexpected(InputError{directory, "holds a run already", "use --resume to go on with it, or another --out"});
    return Journal{};
  }
  const auto text = read_file(path);
  if (!text) return std::unexpected(text.error());
  if (text->find('\n') == std::string::npos) return Journal{};  // killed before its first line was whole
  auto journal = read_journal(*text, path);
  if (journal && journal->plan_sha256 != plan_sha256) return std::unexpected(InputError{directory, "the journal belongs to another plan", "restore plan.json"});
  return journal;
}

}  // namespace

std::expected<RunEnd, InputError> run(const Plan& plan, const std::string& plan_sha256,
                                      const std::vector<Program>& programs, const RunOptions& options, Progress& progress) {
  if (plan.simulation) {
    return std::unexpected(InputError{options.directory + "/plan.json", "is the plan of a simulation, and nothing is measured by it",
                                      "plan the site that is to be measured with `assay plan`"});
  }
  if (auto problem = check_programs(plan, programs)) return std::unexpected(*problem);
  auto journal = earlier(options.directory, plan_sha256, options.resume);
  if (!journal) return std::unexpected(journal.error());
  if (journal->finished) return RunEnd::finished;
  try {
    const bool fresh = journal->run_id.empty();
    Runner runner(plan, programs, options, std::move(*journal), progress);
    if (fresh) {
      runner.journal().run_begin(boost::uuids::to_string(boost::uuids::random_generator()()), plan_sha256);
    } else {
      runner.journal().run_resume();
    }
    return runner.go();
  } catch (const std::system_error& error) {
    return std::unexpected(InputError{options.directory, fmt::format("evidence cannot be written: {}", error.what()),
                                      "free space or permissions, then `assay run --resume`: nothing finished is lost"});
  }
}

}  // namespace assay
