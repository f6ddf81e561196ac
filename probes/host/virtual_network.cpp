// virtual_network: the hard part of switches in software or in adapters: small packets and new connections between two
// guests, virtual functions or hosts.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <sys/socket.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "probes/core/join.h"
#include "probes/core/probe.h"
#include "probes/core/recorder.h"
#include "probes/core/rendezvous.h"
#include "probes/core/sampling.h"
#include "probes/core/sha256.h"
#include "probes/core/statistics.h"
#include "probes/host/node_work.h"
#include "probes/host/packet_flow.h"
#include "probes/host/tcp_flow.h"
#include "probes/host/tcp_path.h"
#include "probes/host/tcp_streams.h"

namespace assay::host {
namespace {

/// Answers every caller that knows the token with its number, from construction until finish().
class Answerer {
 public:
  /// `listener` outlives it.
  Answerer(const rendezvous::Descriptor& listener, const std::string& token, std::size_t threads);
  /// Connections that were answered. Rethrows an error.
  std::uint64_t finish();

 private:
  void answer_callers(const rendezvous::Descriptor& listener, const std::string& token);

  std::atomic<bool> ending_ = false;
  std::atomic<std::uint64_t> answered_ = 0;
  Crowd crowd_;
};

/// Calls an Answerer with as many threads, from construction until finish(). Connections are closed by a reset, so that
/// no port of the caller waits for stray segments and the ports never run out.
class Caller {
 public:
  Caller(const Endpoint& at, const std::string& token, std::size_t threads);
  /// Connections until now that were opened, asked, and answered with their own number. Rethrows an error: a connection
  /// that cannot be opened, or is not answered within half a minute, ends all.
  [[nodiscard]] std::uint64_t completed();
  /// Waits for the last ones. Rethrows an error.
  std::uint64_t finish();
  /// After finish(): seconds of each connection from before its socket was made to its answer, in the order of the
  /// threads; of the first of each thread, kMostTimes in all.
  [[nodiscard]] std::vector<double> times() const;

  static constexpr std::size_t kMostTimes = 100'000;

 private:
  void call(const Endpoint& at, const std::string& token, std::size_t thread);

  std::atomic<bool> ending_ = false;
  std::atomic<std::uint64_t> completed_ = 0;
  std::vector<std::vector<double>> times_;
  Crowd crowd_;
};

using rendezvous::Clock;
using rendezvous::Descriptor;

constexpr Seconds kTurn = {0.2};  // the longest an end goes unnoticed
constexpr Seconds kOpen = {30};   // a lossy network may lose a connection's first packets three times over

/// Waits until the other end has closed, at most as long as a caller may take.
void wait_for_end(const Descriptor& stream) {
  const auto until = rendezvous::after(kOpen);
  char unwanted = 0;
  while (Clock::now() < until && !stop_requested()) {
    const auto got = recv(stream.number(), &unwanted, 1, 0);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)) return;
  }
}

Answerer::Answerer(const Descriptor& listener, const std::string& token, std::size_t threads) {
  for (std::size_t i = 0; i < threads; ++i) crowd_.add([this, &listener, token] { answer_callers(listener, token); });
}

void Answerer::answer_callers(const Descriptor& listener, const std::string& token) {
  while (!ending_ && !crowd_.abandoned()) {
    if (stop_requested()) throw std::runtime_error("stopped while connections were opened");
    const auto [stream, number] = accept_stream(listener, token, rendezvous::after(kTurn));
    if (!stream) continue;
    std::array<std::byte, sizeof number> answer;
    std::memcpy(answer.data(), &number, sizeof number);
    if (send(stream.number(), answer.data(), answer.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(answer.size()))
      continue;  // its caller has gone, and says why
    ++answered_;
    wait_for_end(stream);
  }
}

std::uint64_t Answerer::finish() {
  ending_ = true;
  crowd_.join();
  return answered_;
}

Caller::Caller(const Endpoint& at, const std::string& token, std::size_t threads) : times_(threads) {
  for (std::size_t i = 0; i < threads; ++i) crowd_.add([this, at, token, i] { call(at, token, i); });
}

void Caller::call(const Endpoint& at, const std::string& token, std::size_t thread) {
  const linger reset = {.l_onoff = 1, .l_linger = 0};
  std::atomic<std::uint64_t> counted = 0;
  const std::size_t most = kMostTimes / times_.size();
  for (std::uint32_t number = 0; !ending_ && !crowd_.abandoned(); ++number) {
    const auto begin = Clock::now();
    const Descriptor stream = dial_stream(at, token, number, rendezvous::after(kOpen));
    std::array<std::byte, sizeof number> answer;
    receive_all(stream.number(), answer, crowd_.abandoned(), counted);
    const std::chrono::duration<double> taken = Clock::now() - begin;
    if (std::memcmp(answer.data(), &number, sizeof number) != 0)
      throw std::runtime_error(
          fmt::format("connection {} of {} port {} was answered as another", number, at.host, at.port));
    ++completed_;
    if (times_[thread].size() < most) times_[thread].push_back(taken.count());
    (void)setsockopt(stream.number(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset);  // else it closes in the usual way
  }
}

std::uint64_t Caller::completed() {
  crowd_.check();
  return completed_.load(std::memory_order_relaxed);
}

std::uint64_t Caller::finish() {
  ending_ = true;
  crowd_.join();
  return completed_;
}

std::vector<double> Caller::times() const {
  std::vector<double> all;
  for (const auto& some : times_) all.insert(all.end(), some.begin(), some.end());
  return all;
}

constexpr double kInstrument = 1e-3;      // a window's ends are known to some 50 us of 100 ms
constexpr double kTimeInstrument = 5e-3;  // two clock readings of some 30 ns in 10 us and more
constexpr Seconds kOpenPatience = {30};
constexpr Seconds kSlack = {1};                      // the windows of one rank begin after the packets of the other
constexpr Seconds kDrain = {60};                     // beyond sampling: the last connection, over a lossy network
constexpr std::chrono::milliseconds kUnderWay{300};  // what was sent has come by then, or never
constexpr std::int64_t kMostFlows = 64;
constexpr std::uint64_t kHeaders = 48;  // B of IPv6 and UDP, of a packet
constexpr std::size_t kMark = 8;        // B

constexpr Parameter kParameters[] = {
    kPathParameter,
    kInterfaceParameter,
    parameter("flows", "1", "4",
              "flows of packets, and connections that are open at the same time, with a thread at each end"),
    parameter("size", "B", "18B",
              "payload of one packet, at least 16 B; 18 B fill the smallest Ethernet frame over IPv4"),
    parameter("window", "s", "100ms", "time over which one sample is taken"),
    kOffloadCounters,
};
constexpr Metric kOwnMetrics[] = {
    forward(higher("forward_packet_rate", "1/s", "packets that rank 1 receives from rank 0, where path is fabric",
                   Recorded::if_asked, kInstrument)),
    backward(higher("backward_packet_rate", "1/s", "packets that rank 0 receives from rank 1, where path is fabric",
                    Recorded::if_asked, kInstrument)),
    neither("lost_share", "1",
            "packets sent that did not come out of the other rank's sockets, one sample for each of the phases of "
            "packets; senders are not held back",
            Recorded::rank_0),
    higher("connection_rate", "1/s",
           "connections that rank 0 opens to rank 1, asks, gets answered and closes, where path is fabric",
           Recorded::if_asked, kInstrument),
    lower("connection_time", "s",
          "time of one of these from opening to its answer, every one a sample, where path is fabric",
          Recorded::if_asked, kTimeInstrument),
    lower("connection_time_p999", "s", "99.9th percentile of these samples, where path is fabric", Recorded::if_asked,
          kTimeInstrument),
    higher("loopback_packet_rate", "1/s", "packets between two processes of one machine, where path is loopback",
           Recorded::if_asked, kInstrument),
    higher("loopback_connection_rate", "1/s", "connections between them, where path is loopback", Recorded::if_asked,
           kInstrument),
    lower("loopback_connection_time", "s", "time of one of these, where path is loopback", Recorded::if_asked,
          kTimeInstrument),
};
constexpr auto kMetrics = join(kOwnMetrics, kWorkMetrics);
constexpr ConditionSpec kOwnConditions[] = {
    {.name = "flows", .meaning = "Flows of packets, and connections that were open at the same time."},
};
constexpr auto kConditions = join(kPathConditions, kOwnConditions, kWorkConditions);
constexpr ProbeSpec kSpec{
    .name = "virtual_network",
    .scope = Scope::pair,
    .sampled = true,
    .measures =
        "Packet rate and new connections between two guests, virtual functions or hosts, and their cost in processors.",
    .method =
        "In the phases of packets one rank sends small UDP datagrams on every flow as fast as its kernel takes them, "
        "with no segmentation offload, so that each is one packet for every switch on the way; the other counts those "
        "that come out of its sockets whole and with the step's mark. Forward comes before backward. Then rank 0 opens "
        "TCP connections to rank 1, asks on each, is answered with the connection's own number, and resets it: as many "
        "at a time as there are flows, each followed by the next. A sample of a rate is one window by the wall clock, "
        "until steady and known. Times are of every connection of the phase, at most the first 100,000; "
        "use statistic median, p99 or max. Processors at work are those of /proc/stat over each phase. offloaded_share "
        "is of the phases of packets, whose flows stay: the first packets of a connection pass software anywhere. "
        "Payload rate and latency of the same path are measured by host_tcp_bandwidth and host_tcp_latency. Two ranks "
        "on one machine are an error unless path=loopback, which has metrics of its own.",
    .source =
        "RFC 2544 for frames of 64 B and their rate, though senders are not held back here; ovs-benchmark(1) for the "
        "rate and time at which flows are set up; the Linux commit 69ae6ad2ff37, ovs-vswitchd(8) and tc(8) of "
        "iproute2 for the counters of forwarding by hardware.",
    .needs = "Two nodes that reach each other on the rendezvous port, and by UDP and TCP on free ports",
    .typical = {20},
    .deadline = {300},
    .parameters = kParameters,
    .metrics = kMetrics,
    .conditions = kConditions,
};

/// The longest time of all windows of a phase on a node that is not starved.
Seconds longest_of(const SamplingPlan& plan, Seconds window) {
  return {plan.warmup_limit.count + plan.time_limit.count + static_cast<double>(plan.min_samples) * window.count +
          kSlack.count};
}

/// The phases of a pair; both ranks do the same in the same order.
class Phases {
 public:
  Phases(const Parameters& given, const Placement& placement, Rendezvous& group, const PathFacts& facts)
      : group_(group),
        token_(placement.token),
        facts_(facts),
        plan_(sampling_plan(given)),
        size_(given.bytes("size")),
        window_(given.seconds("window")),
        flows_(static_cast<std::size_t>(given.count("flows"))),
        work_(given.text("offload_counters")),
        sockets_(open_packet_flows(group, facts.address, facts.peer_address, flows_)) {}

  /// Packets a second from rank `source` to the other.
  Sampling packets(int source) {
    const std::string mark = hmac_sha256(token_, fmt::format("packets of {}", source)).substr(0, kMark);
    const bool sends = group_.rank() == source;
    std::optional<PacketReceiver> receiver;
    std::optional<PacketSender> sender;
    work_.begin();
    if (!sends) receiver.emplace(sockets_, size_, mark);
    group_.barrier();
    std::this_thread::sleep_for(kUnderWay);  // the end of the barrier reaches the other rank before a flood does
    const auto until = rendezvous::after(longest_of(plan_, window_));
    if (sends) sender.emplace(sockets_, size_, mark, until);
    const Sampling mine = receiver ? rates_of([&] { return receiver->received(); }) : Sampling{};
    if (receiver && rendezvous::Clock::now() > until)
      throw std::runtime_error("the windows of packets took longer than packets were sent: the node is too busy");
    if (std::ranges::count(mine.samples, 0.0) > 0)
      throw std::runtime_error(
          "no packet came in a whole window\nhint: let UDP between the nodes pass their firewalls, or stop other work");
    const auto said = group_.all_gather(words_of(mine));
    work_.end();
    const std::uint64_t sent = sender ? sender->finish() : 0;
    group_.barrier();
    if (receiver) std::this_thread::sleep_for(kUnderWay);
    count_losses(source, sent, receiver ? receiver->finish() : 0);
    return windows_in(said[static_cast<std::size_t>(1 - source)]);
  }

  /// Connections a second and their times, on rank 0.
  Sampling connections(std::vector<double>& times) {
    const Endpoint own{.host = facts_.address, .port = 0};
    const bool calls = group_.rank() == 0;
    const auto listener = calls ? rendezvous::Descriptor{} : listen_for_streams(own);
    const auto ports = group_.all_gather(std::to_string(calls ? 0 : port_of(listener)));
    std::optional<Answerer> answerer;
    std::optional<Caller> caller;
    Sampling rates;
    work_.begin();
    if (!calls) answerer.emplace(listener, token_, flows_);
    group_.barrier();
    if (calls) {
      caller.emplace(Endpoint{.host = facts_.peer_address, .port = static_cast<std::uint16_t>(std::stoi(ports[1]))},
                     token_, flows_);
      rates = rates_of([&] { return caller->completed(); });
    }
    group_.barrier();
    work_.end();
    const std::uint64_t completed = caller ? caller->finish() : 0;
    group_.barrier();
    const std::uint64_t answered = answerer ? answerer->finish() : 0;
    const auto counts = group_.all_gather(std::to_string(calls ? completed : answered));
    if (counts[0] != counts[1])
      throw std::runtime_error(
          fmt::format("rank 0 had {} connections answered and rank 1 answered {}", counts[0], counts[1]));
    work_.settle(group_, 0, false);
    if (caller) times = caller->times();
    return rates;
  }

  void record(Recorder& record, const Subject& subject) const {
    work_.record(record, group_.rank(), subject);
    if (group_.rank() == 0)
      record.measurement("lost_share", {.samples = lost_shares_, .warmup = {}, .stopped = "fixed"}, subject);
  }

 private:
  Sampling rates_of(const std::function<std::uint64_t()>& count) const {
    Windows windows(count, window_);
    return sample(plan_, [&] { return windows.next(); });
  }

  void count_losses(int source, std::uint64_t sent, std::uint64_t received) {
    const auto said = group_.all_gather(std::to_string(group_.rank() == source ? sent : received));
    const auto of_source = std::stoull(said[static_cast<std::size_t>(source)]);
    const auto of_target = std::stoull(said[static_cast<std::size_t>(1 - source)]);
    if (of_target == 0)
      throw std::runtime_error(
          fmt::format("of {} packets that rank {} sent none came\nhint: let UDP between the nodes pass their firewalls",
                      of_source, source));
    if (of_target > of_source)
      throw std::runtime_error(
          fmt::format("rank {} sent {} packets and {} came: some came twice", source, of_source, of_target));
    lost_shares_.push_back(static_cast<double>(of_source - of_target) / static_cast<double>(of_source));
    work_.settle(group_, of_target * size_.count);
  }

  Rendezvous& group_;
  std::string token_;
  PathFacts facts_;
  SamplingPlan plan_;
  Bytes size_;
  Seconds window_;
  std::size_t flows_;
  WorkOfPhases work_;
  Streams sockets_;
  std::vector<double> lost_shares_;
};

void check(const Parameters& given) {
  (void)given.count("flows", 1, kMostFlows);
  if (const auto size = given.bytes("size").count; size < kLeastDatagram || size > UINT16_MAX)
    throw BadParameter(fmt::format("size: {} B is not from {} B to {} B", size, kLeastDatagram, UINT16_MAX));
  const double window = given.seconds("window").count;
  if (window < 0.01 || window > 10) throw BadParameter(fmt::format("window: {:g} s is not from 10 ms to 10 s", window));
}

void converse(const Parameters& given, const Placement& placement, Rendezvous& group, Recorder& record) {
  const Streams stream = open_streams(placement, group, 1, kOpenPatience);
  record_path(given, group, stream, record);
  record.condition("flows", given.count("flows"));
  const PathFacts facts = path_of(stream.front().number());
  if (facts.mtu && static_cast<std::int64_t>(given.bytes("size").count + kHeaders) > *facts.mtu)
    throw BadParameter(fmt::format("size: {} B and {} B of headers are no single packet where the largest has {} B",
                                   given.bytes("size").count, kHeaders, *facts.mtu));
  const Subject subject = pair_subject(group);
  Phases phases(given, placement, group, facts);
  const bool loopback = given.text("path") == "loopback";
  const auto take = [&](const char* metric, const Sampling& taken) {
    if (placement.rank == 0) record.measurement(metric, taken, subject);
  };
  take(loopback ? "loopback_packet_rate" : "forward_packet_rate", phases.packets(0));
  if (!loopback) take("backward_packet_rate", phases.packets(1));
  std::vector<double> times;
  take(loopback ? "loopback_connection_rate" : "connection_rate", phases.connections(times));
  take(loopback ? "loopback_connection_time" : "connection_time", {.samples = times, .warmup = {}, .stopped = "fixed"});
  if (placement.rank == 0 && !loopback) record.measurement("connection_time_p999", percentile(times, 0.999), subject);
  phases.record(record, subject);
}

void measure(const Parameters& given, const Placement& placement, Recorder& record) {
  check(given);
  demand_pair(placement);
  const Seconds longest = longest_of(sampling_plan(given), given.seconds("window"));
  work_together(placement, {.exchange = {longest.count + kDrain.count}},
                [&](Rendezvous& group) { converse(given, placement, group, record); });
}

}  // namespace
}  // namespace assay::host

int main(int argc, char** argv) { return assay::probe_main(argc, argv, assay::host::kSpec, assay::host::measure); }
