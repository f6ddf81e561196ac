// Edges: those of a step between nodes, timed without disturbing each other; a slow one is named and neither of its
// ends.
#include <algorithm>
#include <array>
#include <chrono>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <gtest/gtest.h>

#include "probes/core/descriptor.h"
#include "probes/gloo/addresses.h"
#include "probes/gloo/mesh.h"
#include "workloads/train/engine/edge_times.h"

namespace assay::train {
namespace {

TEST(Edges, are_rings_and_pipelines_between_nodes_once_each) {
  EXPECT_EQ(edges_of({.dp = 4}, 1), (std::vector<Edge>{{0, 1}, {0, 3}, {1, 2}, {2, 3}}));
  EXPECT_EQ(edges_of({.tp = 2, .dp = 2}, 2), (std::vector<Edge>{{0, 2}, {1, 3}}));
  EXPECT_EQ(edges_of({.pp = 3}, 1), (std::vector<Edge>{{0, 1}, {1, 2}}));
  EXPECT_EQ(edges_of({.pp = 3, .virtual_stages = 2}, 1), (std::vector<Edge>{{0, 1}, {0, 2}, {1, 2}}));
  EXPECT_TRUE(edges_of({.tp = 2, .dp = 2}, 4).empty());
}

TEST(Edges, of_a_stage_share_no_node) {
  const auto edges = edges_of({.tp = 2, .pp = 2, .dp = 4}, 2);
  std::size_t all = 0;
  for (const auto& stage : stages_of(edges, 2)) {
    std::vector<std::int64_t> nodes;
    for (const std::size_t edge : stage) nodes.insert(nodes.end(), {edges[edge].one / 2, edges[edge].other / 2});
    std::ranges::sort(nodes);
    EXPECT_EQ(std::ranges::adjacent_find(nodes), nodes.end());
    all += stage.size();
  }
  EXPECT_EQ(all, edges.size());
}

TEST(Edges, have_shares_of_the_median_of_the_others) {
  EXPECT_EQ(edge_shares({1, 1, 20, 1}), (std::vector<double>{1, 1, 20, 1}));
  EXPECT_FALSE(edge_shares({1}));
}

/// Passes on what two sockets say, each chunk so much later; until both are closed.
class Relay {
 public:
  Relay(sockaddr_in target, std::chrono::milliseconds delay) : target_(target), delay_(delay) {
    listener_ = Descriptor(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in own = {};
    own.sin_family = AF_INET;
    own.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    std::uint16_t port = kFirstPort;
    while (own.sin_port = htons(port), bind(listener_.number(), reinterpret_cast<sockaddr*>(&own), sizeof own) != 0) {
      if ((port += kStep) > kLastPort) throw std::runtime_error("no free port");
    }
    if (listen(listener_.number(), 1) != 0) throw std::runtime_error("no listening socket");
    port_ = own.sin_port;
    thread_ = std::thread([this] { live(); });
  }
  ~Relay() { thread_.join(); }
  [[nodiscard]] in_port_t port() const { return port_; }

 private:
  // Of two ends that know each other, Gloo dials from the one whose port is the larger number in network byte order.
  // These are smaller than all that the kernel gives: their low byte is 0, and their high byte below 128.
  static constexpr std::uint16_t kFirstPort = 82 * 256, kLastPort = 124 * 256, kStep = 256;

  void live() {
    pollfd caller = {.fd = listener_.number(), .events = POLLIN, .revents = 0};
    constexpr int kLimit_ms = 30'000;
    if (poll(&caller, 1, kLimit_ms) <= 0) return;
    const Descriptor near(accept(listener_.number(), nullptr, nullptr));
    const Descriptor far(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (connect(far.number(), reinterpret_cast<const sockaddr*>(&target_), sizeof target_) != 0) return;
    const std::array ends = {near.number(), far.number()};
    std::vector<char> chunk(1 << 20);
    while (true) {
      std::array<pollfd, 2> both = {pollfd{.fd = ends[0], .events = POLLIN, .revents = 0},
                                    pollfd{.fd = ends[1], .events = POLLIN, .revents = 0}};
      if (poll(both.data(), both.size(), kLimit_ms) <= 0) return;
      std::this_thread::sleep_for(delay_);
      for (std::size_t i = 0; i < both.size(); ++i) {
        if (both[i].revents == 0) continue;
        const ssize_t got = recv(ends[i], chunk.data(), chunk.size(), 0);
        if (got <= 0) return;
        if (send(ends[1 - i], chunk.data(), static_cast<std::size_t>(got), MSG_NOSIGNAL) != got) return;
      }
    }
  }

  sockaddr_in target_;
  std::chrono::milliseconds delay_;
  Descriptor listener_;
  in_port_t port_ = 0;
  std::thread thread_;
};

/// Where the socket address is in what Gloo says of one end of a connection.
sockaddr_in* address_in(std::string& end) { return reinterpret_cast<sockaddr_in*>(end.data()); }

constexpr int kRanks = 4;

/// The edges' times of four ranks in a ring, of which 1 and 2 are connected by a relay.
std::vector<double> times_with_a_relay(std::chrono::milliseconds delay) {
  std::vector<std::unique_ptr<gloo::Mesh>> meshes;
  for (int rank = 0; rank < kRanks; ++rank) meshes.push_back(std::make_unique<gloo::Mesh>("127.0.0.1", rank, kRanks));
  std::vector<std::vector<std::string>> ends;
  for (const auto& mesh : meshes) ends.push_back(mesh->ends());
  std::string &one = ends[1].at(gloo::end_towards(1, 2)), &two = ends[2].at(gloo::end_towards(2, 1));
  const bool one_is_dialled = address_in(one)->sin_port < address_in(two)->sin_port;  // in network byte order
  sockaddr_in* const dialled = address_in(one_is_dialled ? one : two);
  Relay relay(*dialled, delay);
  dialled->sin_port = relay.port();
  const auto edges = edges_of({.dp = kRanks}, 1);
  const auto stages = stages_of(edges, 1);
  std::vector<std::future<std::vector<std::pair<std::size_t, double>>>> running;
  for (int rank = 0; rank < kRanks; ++rank) {
    running.push_back(std::async(std::launch::async, [&, rank] {
      std::vector<std::string> theirs;
      for (int other = 0; other < kRanks; ++other) {
        if (other != rank) theirs.push_back(ends[static_cast<std::size_t>(other)].at(gloo::end_towards(other, rank)));
      }
      gloo::Mesh& mesh = *meshes[static_cast<std::size_t>(rank)];
      mesh.connect(theirs);
      return edge_times(mesh, rank, edges, stages, 3);
    }));
  }
  std::vector<double> times(edges.size(), 0);
  for (auto& leg : running) {
    for (const auto& [edge, time_s] : leg.get()) times[edge] = time_s;
  }
  meshes.clear();
  return times;
}

TEST(EdgeTimes, name_the_edge_that_a_relay_delays_by_20_ms) {
  const auto times = times_with_a_relay(std::chrono::milliseconds(20));
  const auto shares = edge_shares(times).value();
  const auto edges = edges_of({.dp = kRanks}, 1);
  const auto slowest = std::ranges::max_element(shares) - shares.begin();
  EXPECT_EQ(edges.at(static_cast<std::size_t>(slowest)), (Edge{1, 2}));
  EXPECT_GE(times.at(static_cast<std::size_t>(slowest)), 0.040);
}

}  // namespace
}  // namespace assay::train
