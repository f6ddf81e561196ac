// slurm: each srun is a batch; agents that connect back are matched to batches by token and node name.
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
#include "orchestrator/wire/as_tuple.h"
#include "orchestrator/wire/tls.h"

namespace assay::launch {

namespace asio = boost::asio;

namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

using wire::kAsTuple;
constexpr auto kStragglers = 60s;      // between the first agent of an srun and the last
constexpr Seconds kSinfoTimeout{10};   // for sinfo; without its answer srun is started anyway
constexpr auto kNaturalEnd = 10s;      // for srun once its agents have ended
constexpr auto kForcedEnd = 5s;        // for srun after SIGTERM
constexpr auto kSrunLogPatience = 1s;  // for the rest of srun's stderr once it has ended
constexpr auto kTick = 20ms;
constexpr std::size_t kMaxSrunLog = 16 << 10;  // of srun: warnings and a line for each node that failed
constexpr std::size_t kMaxPrinted = 4 << 20;   // of sinfo: a line for each node
constexpr int kMostRemarks = 20;               // about rejected connections, which may be many
constexpr auto kPollInterval = 200ms;          // between two polls of an srun that may run for days
constexpr Seconds kForever{14 * 86400.0};      // for srun, which lives as long as its agents

std::unexpected<LaunchError> failed(LaunchFailure kind, std::string reason) {
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
  std::vector<std::string> nodes;  ///< without those that Slurm reports as unusable
  std::string token;
  std::string directory;
  std::unique_ptr<ChildProcess> child;
  std::string log;
  bool read = false;   ///< srun's stdout and stderr have ended
  bool over = false;   ///< srun has ended or was never started
  std::string ending;  ///< how, for people
  Clock::time_point deadline;
  std::optional<Clock::time_point> first;         ///< when the first agent connected
  std::map<std::string, wire::Stream> connected;  ///< streams not yet returned by start()
  std::map<std::string, std::string> from;        ///< source address of each agent that has connected
  std::map<std::string, std::string> refused;     ///< nodes that cannot be used, each with the reason
  std::set<std::string> claimed;                  ///< nodes that start() was called for: each once
  std::set<std::string> in_use;

  [[nodiscard]] bool settled() const {
    if (over || Clock::now() >= deadline || (first && Clock::now() >= *first + kStragglers)) return true;
    return std::ranges::all_of(
        nodes, [this](const std::string& node) { return from.contains(node) || refused.contains(node); });
  }
  [[nodiscard]] bool has_node(const std::string& node) const { return std::ranges::find(nodes, node) != nodes.end(); }
};

/// Data of the launcher for the coroutine of one srun, which may outlive it.
struct SlurmLauncher::Job {
  SrunRequest request;
  site::SlurmOptions options;
  SlurmTools tools;
  Remark remark;
  std::shared_ptr<bool> closing;
};

/// Data shared by the launcher and its coroutines, which hold batches of their own and may outlive it.
struct SlurmLauncher::State {
  asio::any_io_executor executor;
  const site::Site& site;
  std::vector<std::string> together;
  SlurmTools tools;
  Remark remark;
  std::unique_ptr<AgentListener> listener = nullptr;
  std::vector<std::shared_ptr<Batch>> batches = {};  ///< the last one of a node is current
  std::shared_ptr<bool> closing = std::make_shared<bool>(false);
  int remarks = 0;

  std::optional<std::string> open();
  std::optional<std::string> admit(const wire::Greeting& greeting, const std::string& from, wire::Stream& stream);
  std::string reject(const std::string& who, const std::string& from, std::string reason);
  std::shared_ptr<Batch> batch_of(const std::string& node) const;
  void begin(const std::vector<std::string>& nodes);
  void end_sruns();
  static asio::awaitable<void> run_srun(std::shared_ptr<Batch> batch, Job job);
  static asio::awaitable<void> read_logs(std::shared_ptr<Batch> batch);
  static asio::awaitable<void> leave_out_unusable(Batch& batch, const SlurmTools& tools,
                                                  const asio::any_io_executor& executor);
};

/// Opens the listener on the first call. Returns the reason when it cannot.
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

std::string SlurmLauncher::State::reject(const std::string& who, const std::string& from, std::string reason) {
  if (remarks++ < kMostRemarks) remark(who, fmt::format("rejected a connection from {}: {}", from, reason));
  return reason;
}

std::optional<std::string> SlurmLauncher::State::admit(const wire::Greeting& greeting, const std::string& from,
                                                       wire::Stream& stream) {
  const auto found =
      std::ranges::find_if(batches, [&](const auto& batch) { return wire::same_secret(batch->token, greeting.token); });
  if (found == batches.end()) return reject("srun", from, "the token does not belong to this run");
  Batch& batch = **found;
  const std::string& node = greeting.node;
  if (!batch.has_node(node)) return reject(node, from, fmt::format("this srun starts no agent on {}", node));
  if (const auto earlier = batch.from.find(node); earlier != batch.from.end()) {
    if (batch.connected.erase(node) > 0) {
      batch.refused[node] = fmt::format("two agents claim to be {}, one from {} and one from {}: neither is accepted",
                                        node, earlier->second, from);
    }
    return reject(node, from, fmt::format("an agent on {} has already used this token", node));
  }
  if (batch.over || Clock::now() >= batch.deadline) return reject(node, from, "it came after the time limit");
  batch.from[node] = from;
  if (!batch.first) batch.first = Clock::now();
  batch.connected.emplace(node, std::move(stream));
  return std::nullopt;
}

std::shared_ptr<SlurmLauncher::Batch> SlurmLauncher::State::batch_of(const std::string& node) const {
  const auto found = std::ranges::find_if(batches.rbegin(), batches.rend(), [&](const auto& batch) {
    return batch->has_node(node) || batch->refused.contains(node);
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
  const auto endpoints = listen_endpoints(site.slurm.address, listener->port());
  if (!endpoints || batch->token.empty()) {
    batch->over = true;
    batch->ending = endpoints ? "no random numbers for a token" : endpoints.error();
    return;
  }
  Job job{.request = {.agent = tools.agent,
                      .nodes = nodes,
                      .directory = batch->directory,
                      .endpoints = *endpoints,
                      .pin = listener->pin(),
                      .inside = std::getenv("SLURM_JOB_ID") != nullptr},
          .options = site.slurm,
          .tools = tools,
          .remark = remark,
          .closing = closing};
  asio::co_spawn(executor, run_srun(batch, std::move(job)), asio::detached);
}

void SlurmLauncher::State::end_sruns() {
  for (const auto& batch : batches) {
    if (!batch->over && batch->child) batch->child->ask_to_end();
  }
}

/// A node that Slurm reports as down would make the whole srun fail.
asio::awaitable<void> SlurmLauncher::State::leave_out_unusable(Batch& batch, const SlurmTools& tools,
                                                               const asio::any_io_executor& executor) {
  std::vector<std::string> argv = sinfo_arguments(batch.nodes);
  argv.insert(argv.begin(), tools.sinfo);
  auto child = ChildProcess::start(executor, argv);
  if (!child) co_return;  // srun will report the same problem
  std::string printed;
  std::string log;
  using namespace asio::experimental::awaitable_operators;
  asio::steady_timer limit(executor, std::chrono::seconds(static_cast<int>(kSinfoTimeout.count)));
  co_await ((drain((*child)->out, printed, kMaxPrinted) && drain((*child)->err, log, kMaxSrunLog)) ||
            limit.async_wait(asio::use_awaitable));
  for (const auto& [node, state] : unusable_nodes(printed)) {
    if (std::erase(batch.nodes, node) > 0) batch.refused[node] = fmt::format("Slurm reports {} as {}", node, state);
  }
}

asio::awaitable<void> SlurmLauncher::State::run_srun(std::shared_ptr<Batch> batch, Job job) {
  const auto executor = co_await asio::this_coro::executor;
  co_await leave_out_unusable(*batch, job.tools, executor);
  job.request.nodes = batch->nodes;
  std::expected<std::unique_ptr<ChildProcess>, std::string> child =
      std::unexpected("Slurm reports every one of these nodes as unusable");
  if (!job.request.nodes.empty() && !*job.closing) {
    const auto argv = srun_arguments(job.request, job.options, job.tools.srun);
    child = argv ? ChildProcess::start(executor, *argv) : std::unexpected(argv.error());
  }
  if (!child) {
    batch->ending = child.error();
    batch->over = true;
    co_return;
  }
  batch->child = std::move(*child);
  const std::string line = batch->token + "\n";
  // A pipe takes a line at once. It stays open: if it were closed, srun would close the agents' stdin.
  (void)co_await asio::async_write(batch->child->in, asio::buffer(line),
                                   kAsTuple);  // finish() below reports an srun that died at once
  asio::co_spawn(executor, read_logs(batch), asio::detached);
  const auto code = co_await batch->child->finish(kForever, kPollInterval);
  // Its last lines may still be in the pipe, which a child of srun may hold open.
  asio::steady_timer timer(executor);
  for (const auto end = Clock::now() + kSrunLogPatience; !batch->read && Clock::now() < end;) {
    timer.expires_after(kTick);
    (void)co_await timer.async_wait(kAsTuple);
  }
  boost::system::error_code ignored;  // both have usually ended
  (void)batch->child->out.cancel(ignored);
  (void)batch->child->err.cancel(ignored);
  const std::string last = last_line(batch->log);
  batch->ending = fmt::format("srun {}{}", code ? fmt::format("ended with exit code {}", *code) : "was killed",
                              last.empty() ? "" : ": " + last);
  batch->over = true;
  if (!*job.closing && !batch->in_use.empty() && code != 0) job.remark("srun", batch->ending);
}

/// Reads srun's stderr; stdout, which is empty, is read so that srun never blocks on it.
asio::awaitable<void> SlurmLauncher::State::read_logs(std::shared_ptr<Batch> batch) {
  using namespace asio::experimental::awaitable_operators;
  std::string nothing;
  co_await (drain(batch->child->out, nothing, kMaxSrunLog) && drain(batch->child->err, batch->log, kMaxSrunLog));
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
  if (const auto problem = state_->open()) co_return failed(LaunchFailure::refused, *problem);
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
    co_return failed(LaunchFailure::refused, reason->second);
  const auto connected = batch->connected.find(node.name);
  if (connected == batch->connected.end()) {
    const std::string said = last_line(batch->log);
    co_return failed(LaunchFailure::unreachable,
                     batch->over ? fmt::format("no agent connected back from {}: {}", node.name, batch->ending)
                                 : fmt::format("no agent connected back from {} in time{}", node.name,
                                               said.empty() ? "" : "; srun: " + said));
  }
  wire::Stream stream = std::move(connected->second);
  batch->connected.erase(connected);
  batch->in_use.insert(node.name);
  (void)co_await stream.write(wire::kGreetingAccepted);  // a broken stream is found by the next read
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
  bool natural = true;  // every agent connected, and all of them end now
  for (const auto& batch : state_->batches) {
    batch->connected.clear();  // agents that were never used
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
