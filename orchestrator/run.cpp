// run: one thread, one event loop, a coroutine for each node.
#include "orchestrator/run.h"

#include <algorithm>
#include <csignal>
#include <memory>
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
#include "probes/core/utc_time.h"

namespace assay {
namespace {

namespace asio = boost::asio;
using Tokens = asio::experimental::channel<void(boost::system::error_code)>;

constexpr int kMostReconnects = 1;  // a node that goes away twice is a finding, not a hiccup

class Runner {
 public:
  Runner(const Plan& plan, const std::vector<Program>& programs, const RunOptions& options, Journal journal, Progress& progress)
      : plan_(plan), programs_(programs), options_(options), progress_(progress), memory_(std::move(journal)),
        journal_(options.directory + "/journal.jsonl"), tokens_(io_, static_cast<std::size_t>(options.starts_at_once)),
        signals_(io_, SIGINT, SIGTERM), clock_(io_) {
    for (const auto& step : plan.steps) steps_[step.nodes.front()].push_back(&step);
  }

  JournalWriter& journal() { return journal_; }

  /// Runs every node's lane to its end. Throws what a lane threw.
  RunEnd go() {
    lanes_ = plan_.site.nodes.size();
    for (const auto& node : plan_.site.nodes) {
      asio::co_spawn(io_, lane(node), [this](const std::exception_ptr& failure) { lane_ended(failure); });
    }
    wait_for_signal();
    asio::co_spawn(io_, tick(), asio::detached);
    io_.run();
    if (failure_) std::rethrow_exception(failure_);
    if (stopping_) return RunEnd::interrupted;
    journal_.run_end();
    return RunEnd::finished;
  }

 private:
  void lane_ended(const std::exception_ptr& failure) {
    if (failure && !failure_) failure_ = failure;
    if (failure || --lanes_ == 0) io_.stop();
  }

  void wait_for_signal() {
    signals_.async_wait([this](const boost::system::error_code& error, int) {
      if (error) return;
      if (stopping_) return io_.stop();  // agents kill their trees when their streams close
      stopping_ = true;
      progress_.node("all nodes", "interrupted: running steps end, no more start; once more stops now");
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
    for (const Attempt* attempt : memory_.of(step.id)) {
      if (attempt->outcome == "interrupted") continue;
      ++ended;
      if (attempt->outcome != "exited") return false;
    }
    if (ended == 0) return true;
    if (ended >= static_cast<std::size_t>(step.looks)) return false;
    return another_look_decides(plan_, step, memory_, evidence_in(options_.directory));
  }

  asio::awaitable<void> lane(const Node& node) {
    std::vector<const Step*> open;
    for (const Step* step : steps_[node.name]) {
      if (wants_attempt(*step)) {
        open.push_back(step);
      } else {
        progress_.step_kept(*step);
      }
    }
    std::size_t next = 0;
    for (int start = 0; start <= kMostReconnects && next < open.size() && !stopping_; ++start) {
      const auto agent = co_await start_agent(node);
      if (!agent) co_return;
      next = co_await run_steps(*agent, open, next);
      if (next == open.size() || stopping_) {
        co_await agent->close();
      } else {
        node_down(node.name, "the connection was lost in step " + open[next]->id);
      }
    }
  }

  /// Runs the steps from `next` in order until the end, a stop, or the loss of the agent; returns the first still open.
  asio::awaitable<std::size_t> run_steps(Agent& agent, const std::vector<const Step*>& open, std::size_t next) {
    for (; next < open.size() && !stopping_; ++next) {
      while (!stopping_ && wants_attempt(*open[next])) {
        const bool lost = co_await attempt(agent, *open[next]);
        if (lost) co_return next;
      }
    }
    co_return next;
  }

  /// One attempt, journalled; true when the agent was lost in it.
  asio::awaitable<bool> attempt(Agent& agent, const Step& step) {
    const int number = static_cast<int>(memory_.of(step.id).size()) + 1;
    journal_.attempt_begin(step.id, number, step.nodes.front());
    progress_.step_begin(step, number);
    Attempt done = co_await run_attempt(agent, plan_, step, number, programs_, options_.directory);
    journal_.attempt_end(done);
    progress_.step_end(step, number, done.outcome, done.reason);
    const bool lost = done.outcome == "lost";
    memory_.attempts.push_back(std::move(done));
    co_return lost;
  }

  asio::awaitable<std::unique_ptr<Agent>> start_agent(const Node& node) {
    boost::system::error_code closed;
    co_await tokens_.async_send({}, asio::redirect_error(asio::use_awaitable, closed));
    if (stopping_) co_return nullptr;
    progress_.node(node.name, "starting the agent");
    // g++ 12 destroys a braced temporary in a co_await twice; delete the name with g++ 13.
    const LaunchOptions launch{.agent = options_.agent};
    auto agent = co_await Agent::start(node, plan_.site, launch);
    tokens_.try_receive([](const boost::system::error_code&) {});
    if (!agent) {
      node_down(node.name, agent.error().reason);
      co_return nullptr;
    }
    memory_.node_facts[node.name] = (*agent)->facts();
    journal_.node_up(node.name, (*agent)->facts());
    progress_.node(node.name, "ready");
    co_return std::move(*agent);
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
  std::map<std::string, std::vector<const Step*>> steps_;
  asio::io_context io_{1};
  Tokens tokens_;  ///< one is held while an agent is being started
  asio::signal_set signals_;
  asio::steady_timer clock_;
  std::size_t lanes_ = 0;
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
