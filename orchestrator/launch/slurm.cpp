// slurm: one srun is a batch; agents are matched to batches by token and name.
#include "orchestrator/launch/slurm.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include "orchestrator/launch/child_process.h"
#include "orchestrator/launch/listener.h"
#include "orchestrator/launch/slurm_arguments.h"
#include "orchestrator/launch/ssh.h"
#include "orchestrator/wire/tls.h"

namespace assay::launch {

namespace asio = boost::asio;

namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr auto kAsTuple = asio::as_tuple(asio::use_awaitable);
constexpr auto kStragglers = 60s;  // between the first agent of an srun and the last
constexpr Seconds kAsked{10};      // for sinfo; without its answer srun is asked right away
constexpr auto kNaturalEnd = 10s;  // for srun once its agents have gone
constexpr auto kForcedEnd = 5s;    // for srun after SIGTERM
constexpr auto kLastWords = 1s;    // of srun that has ended
constexpr auto kTick = 20ms;
constexpr std::size_t kMaxLog = 16 << 10;     // of srun: warnings and a line for each node that failed
constexpr std::size_t kMaxPrinted = 4 << 20;  // of sinfo: a line for each node
constexpr int kMostRemarks = 20;              // about callers that are turned away; somebody may go on knocking
constexpr auto kGlance = 200ms;               // between two looks at an srun that may live for days
constexpr Seconds kForever{14 * 86400.0};     // for srun, which lives as long as its agents

std::unexpected<LaunchError> failed(const char* kind, std::string reason) {
  return std::unexpected(LaunchError{.kind = kind, .reason = std::move(reason)});
}

/// Reads a stream to its end, keeping the last `limit` bytes.
asio::awaitable<void> drain(asio::posix::stream_descriptor& stream, std::string& text, std::size_t limit) {
  std::array<char, 4096> buffer;
  while (true) {
    const auto [error, size] = co_await stream.async_read_some(asio::buffer(buffer), kAsTuple);
    if (error) co_return;
    text.append(buffer.data(), size);
    if (text.size() > limit) text.erase(0, text.size() - limit);
  }
}

}  // namespace

/// One srun and the agents that it was asked for.
struct SlurmLauncher::Batch {
  std::vector<std::string> nodes;  ///< that still count: those that Slurm calls unusable are taken out
  std::string token;
  std::string directory;
  std::unique_ptr<ChildProcess> child;
  std::string log;
  bool read = false;   ///< nothing more comes for the log
  bool over = false;   ///< srun has ended or never began
  std::string ending;  ///< how, for people
  Clock::time_point deadline;
  std::optional<Clock::time_point> first;       ///< when the first agent came
  std::map<std::string, wire::Stream> arrived;  ///< not handed out yet
  std::map<std::string, std::string> from;      ///< where each agent that came dialled from
  std::map<std::string, std::string> refused;   ///< nodes that cannot be had, each with the reason
  std::set<std::string> claimed;                ///< nodes that were asked for: each once
  std::set<std::string> handed;

  [[nodiscard]] bool settled() const {
    if (over || Clock::now() >= deadline || (first && Clock::now() >= *first + kStragglers)) return true;
    return std::ranges::all_of(
        nodes, [this](const std::string& node) { return from.contains(node) || refused.contains(node); });
  }
  [[nodiscard]] bool wants(const std::string& node) const { return std::ranges::find(nodes, node) != nodes.end(); }
};

/// What coroutines share with the launcher. It outlives them: they hold batches, and batches end with it.
struct SlurmLauncher::State {
  asio::any_io_executor executor;
  const site::Site& site;
  std::vector<std::string> together;
  SlurmTools tools;
  Remark remark;
  std::unique_ptr<AgentListener> listener = nullptr;
  std::vector<std::shared_ptr<Batch>> batches = {};  ///< the last one of a node is the one that counts
  std::shared_ptr<bool> closing = std::make_shared<bool>(false);
  int remarks = 0;

  std::optional<std::string> open();
  std::optional<std::string> admit(const wire::Greeting& greeting, const std::string& from, wire::Stream& stream);
  std::string turned_away(const std::string& who, const std::string& from, std::string reason);
  std::shared_ptr<Batch> batch_of(const std::string& node) const;
  void begin(const std::vector<std::string>& nodes);
  void end_sruns();
  static asio::awaitable<void> carry(std::shared_ptr<Batch> batch, SrunRequest request, site::SlurmOptions options,
                                     SlurmTools tools, Remark remark, std::shared_ptr<bool> closing);
  static asio::awaitable<void> read_logs(std::shared_ptr<Batch> batch);
  static asio::awaitable<void> leave_out_unusable(Batch& batch, const SlurmTools& tools,
                                                  const asio::any_io_executor& executor);
};

/// Listens. A reason when it cannot.
std::optional<std::string> SlurmLauncher::State::open() {
  if (listener) return std::nullopt;
  auto opened = AgentListener::open(
      executor, site.slurm.port, [this](const wire::Greeting& greeting, const std::string& from, wire::Stream& stream) {
        return admit(greeting, from, stream);
      });
  if (!opened) return opened.error();
  listener = std::move(*opened);
  return std::nullopt;
}

std::string SlurmLauncher::State::turned_away(const std::string& who, const std::string& from, std::string reason) {
  if (remarks++ < kMostRemarks) remark(who, fmt::format("turned away a caller from {}: {}", from, reason));
  return reason;
}

std::optional<std::string> SlurmLauncher::State::admit(const wire::Greeting& greeting, const std::string& from,
                                                       wire::Stream& stream) {
  const auto found =
      std::ranges::find_if(batches, [&](const auto& batch) { return wire::same_secret(batch->token, greeting.token); });
  if (found == batches.end()) return turned_away("srun", from, "the token is not one of this run");
  Batch& batch = **found;
  const std::string& node = greeting.node;
  if (!batch.wants(node)) return turned_away(node, from, fmt::format("srun was not asked for an agent on {}", node));
  if (const auto earlier = batch.from.find(node); earlier != batch.from.end()) {
    if (batch.arrived.erase(node) > 0) {
      batch.refused[node] =
          fmt::format("two agents say that they are {}, one from {} and one from {}: neither is trusted", node,
                      earlier->second, from);
    }
    return turned_away(node, from, fmt::format("an agent of {} has used this token already", node));
  }
  if (batch.over || Clock::now() >= batch.deadline) return turned_away(node, from, "too late");
  batch.from[node] = from;
  if (!batch.first) batch.first = Clock::now();
  batch.arrived.emplace(node, std::move(stream));
  return std::nullopt;
}

std::shared_ptr<SlurmLauncher::Batch> SlurmLauncher::State::batch_of(const std::string& node) const {
  const auto found = std::ranges::find_if(batches.rbegin(), batches.rend(), [&](const auto& batch) {
    return batch->wants(node) || batch->refused.contains(node);
  });
  return found == batches.rend() ? nullptr : *found;
}

/// Starts an srun for `nodes`, which share a directory.
void SlurmLauncher::State::begin(const std::vector<std::string>& nodes) {
  auto batch = std::make_shared<Batch>();
  batch->nodes = nodes;
  batch->directory = site.node(nodes.front())->directory;
  batch->token = wire::random_hexadecimal(wire::kTokenBytes);
  batch->deadline =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(site.slurm.wait.count));
  batches.push_back(batch);
  const auto homes = listen_endpoints(site.slurm.address, listener->port());
  if (!homes || batch->token.empty()) {
    batch->over = true;
    batch->ending = homes ? "no random numbers for a token" : homes.error();
    return;
  }
  SrunRequest request{.agent = tools.agent,
                      .nodes = nodes,
                      .directory = batch->directory,
                      .homes = *homes,
                      .pin = listener->pin(),
                      .inside = std::getenv("SLURM_JOB_ID") != nullptr};
  asio::co_spawn(executor, carry(batch, std::move(request), site.slurm, tools, remark, closing), asio::detached);
}

void SlurmLauncher::State::end_sruns() {
  for (const auto& batch : batches) {
    if (!batch->over && batch->child) batch->child->ask_to_end();
  }
}

/// Nodes that Slurm calls down would take the whole srun with them.
asio::awaitable<void> SlurmLauncher::State::leave_out_unusable(Batch& batch, const SlurmTools& tools,
                                                               const asio::any_io_executor& executor) {
  std::vector<std::string> argv = sinfo_arguments(batch.nodes);
  argv.insert(argv.begin(), tools.sinfo);
  auto child = ChildProcess::start(executor, argv);
  if (!child) co_return;  // srun will say the same
  std::string printed;
  std::string log;
  using namespace asio::experimental::awaitable_operators;
  asio::steady_timer limit(executor, std::chrono::seconds(static_cast<int>(kAsked.count)));
  co_await ((drain((*child)->out, printed, kMaxPrinted) && drain((*child)->err, log, kMaxLog)) ||
            limit.async_wait(asio::use_awaitable));
  for (const auto& [node, state] : unusable_nodes(printed)) {
    if (std::erase(batch.nodes, node) > 0) batch.refused[node] = fmt::format("Slurm says that {} is {}", node, state);
  }
}

asio::awaitable<void> SlurmLauncher::State::carry(std::shared_ptr<Batch> batch, SrunRequest request,
                                                  site::SlurmOptions options, SlurmTools tools, Remark remark,
                                                  std::shared_ptr<bool> closing) {
  const auto executor = co_await asio::this_coro::executor;
  co_await leave_out_unusable(*batch, tools, executor);
  request.nodes = batch->nodes;
  std::expected<std::unique_ptr<ChildProcess>, std::string> child =
      std::unexpected("Slurm can start nothing on any of these nodes");
  if (!request.nodes.empty() && !*closing) {
    const auto argv = srun_arguments(request, options, tools.srun);
    child = argv ? ChildProcess::start(executor, *argv) : std::unexpected(argv.error());
  }
  if (!child) {
    batch->ending = child.error();
    batch->over = true;
    co_return;
  }
  batch->child = std::move(*child);
  const std::string line = batch->token + "\n";
  // A pipe takes a line at once. It stays open: at its end srun would tell the agents that their stdin has ended.
  (void)co_await asio::async_write(batch->child->in, asio::buffer(line),
                                   kAsTuple);  // srun that died at once says so below
  asio::co_spawn(executor, read_logs(batch), asio::detached);
  const auto code = co_await batch->child->finish(kForever, kGlance);
  // Its last words may still be in the pipe, and somebody it started may hold that open.
  asio::steady_timer timer(executor);
  for (const auto end = Clock::now() + kLastWords; !batch->read && Clock::now() < end;) {
    timer.expires_after(kTick);
    (void)co_await timer.async_wait(kAsTuple);
  }
  boost::system::error_code ignored;  // they have usually ended
  (void)batch->child->out.cancel(ignored);
  (void)batch->child->err.cancel(ignored);
  const std::string last = last_line(batch->log);
  batch->ending = fmt::format("srun {}{}", code ? fmt::format("ended with exit code {}", *code) : "was killed",
                              last.empty() ? "" : ": " + last);
  batch->over = true;
  if (!*closing && !batch->handed.empty() && code != 0) remark("srun", batch->ending);
}

/// What srun says on stderr; on stdout it says nothing, but nobody may have to wait for that.
asio::awaitable<void> SlurmLauncher::State::read_logs(std::shared_ptr<Batch> batch) {
  using namespace asio::experimental::awaitable_operators;
  std::string nothing;
  co_await (drain(batch->child->out, nothing, kMaxLog) && drain(batch->child->err, batch->log, kMaxLog));
  batch->read = true;
}

SlurmLauncher::SlurmLauncher(const asio::any_io_executor& executor, const site::Site& site,
                             std::vector<std::string> nodes, SlurmTools tools, Remark remark)
    : state_(std::make_unique<State>(State{.executor = executor,
                                           .site = site,
                                           .together = std::move(nodes),
                                           .tools = std::move(tools),
                                           .remark = std::move(remark)})) {}

SlurmLauncher::~SlurmLauncher() {
  *state_->closing = true;
  state_->end_sruns();
}

asio::awaitable<std::expected<wire::Stream, LaunchError>> SlurmLauncher::start(const site::Node& node) {
  if (const auto problem = state_->open()) co_return failed("refused", *problem);
  auto batch = state_->batch_of(node.name);
  if (!batch || batch->claimed.contains(node.name)) {
    std::vector<std::string> nodes = {node.name};
    if (!batch) {
      for (const auto& other : state_->together) {
        if (other != node.name && state_->site.node(other)->directory == node.directory) nodes.push_back(other);
      }
    }
    state_->begin(nodes);
    batch = state_->batches.back();
  }
  batch->claimed.insert(node.name);
  asio::steady_timer timer(state_->executor);
  while (!batch->settled()) {
    timer.expires_after(kTick);
    (void)co_await timer.async_wait(kAsTuple);
  }
  if (const auto reason = batch->refused.find(node.name); reason != batch->refused.end())
    co_return failed("refused", reason->second);
  const auto arrived = batch->arrived.find(node.name);
  if (arrived == batch->arrived.end()) {
    const std::string said = last_line(batch->log);
    co_return failed("unreachable", batch->over
                                        ? fmt::format("no agent dialled in from {}: {}", node.name, batch->ending)
                                        : fmt::format("no agent dialled in from {} in time{}", node.name,
                                                      said.empty() ? "" : "; srun says: " + said));
  }
  wire::Stream stream = std::move(arrived->second);
  batch->arrived.erase(arrived);
  batch->handed.insert(node.name);
  (void)co_await stream.write(wire::kDialWelcome);  // a broken stream is seen by who reads from it
  co_return std::move(stream);
}

bool SlurmLauncher::can_start_alone(const std::string& node) const {
  const auto batch = state_->batch_of(node);
  return batch && batch->over && !batch->refused.contains(node) && batch->nodes.size() > 1;
}

asio::awaitable<void> SlurmLauncher::close() {
  *state_->closing = true;
  state_->listener.reset();
  asio::steady_timer timer(state_->executor);
  const auto running = [this] {
    return std::ranges::any_of(state_->batches, [](const auto& batch) { return !batch->over && batch->child; });
  };
  bool natural = true;  // every agent has come, and has gone or goes now
  for (const auto& batch : state_->batches) {
    batch->arrived.clear();  // who was never called upon
    natural = natural &&
              std::ranges::all_of(batch->nodes, [&](const std::string& node) { return batch->from.contains(node); });
  }
  for (const auto& patience :
       {natural ? Clock::duration(kNaturalEnd) : Clock::duration::zero(), Clock::duration(kForcedEnd)}) {
    for (const auto end = Clock::now() + patience; running() && Clock::now() < end;) {
      timer.expires_after(kTick);
      (void)co_await timer.async_wait(kAsTuple);
    }
    if (running()) state_->end_sruns();
  }
}

}  // namespace assay::launch
