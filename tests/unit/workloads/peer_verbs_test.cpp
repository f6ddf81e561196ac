// Copies between the memories of ranks by RDMA writes, over a libibverbs that moves memory of one process, whose
// threads are the ranks.
#include <array>
#include <cstdlib>
#include <numeric>
#include <sstream>

#include <gtest/gtest.h>

#include "probes/core/recorder.h"
#include "probes/verbs/session.h"
#include "tests/unit/paths.h"
#include "tests/unit/verbs/verbs_tree.h"
#include "workloads/cluster_checkpoint/checkpoint_tiers.h"
#include "workloads/storage/shared/direct_file.h"

namespace assay::cluster_checkpoint {
namespace {

constexpr int kWorld = 3;
constexpr std::uint64_t kLarge = (1 << 20) + 4096;  // two messages, the last a short one

/// Shards of a rank: unlike in size and number.
std::vector<CheckpointShard> shards_of(int rank) {
  std::vector<CheckpointShard> shards;
  std::uint64_t offset = 0;
  for (int i = 0; i < 4 + rank; ++i) {
    const std::uint64_t size = i == 1 ? kLarge : 8192;
    shards.push_back({.number = static_cast<std::uint64_t>(i), .size = size, .offset = offset});
    offset += size;
  }
  return shards;
}

std::byte byte_of(int rank, std::size_t at) {
  return static_cast<std::byte>((static_cast<std::size_t>(rank) * 131 + at * 7 + at / 4096) % 251);
}

/// Bytes of `memory` that are not what `rank` had.
std::size_t wrong_bytes(std::span<const std::byte> memory, int rank) {
  const std::size_t size = payload_of(shards_of(rank));
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < size; ++i) wrong += memory[i] == byte_of(rank, i) ? 0 : 1;
  return wrong;
}

/// What one rank has.
struct Node {
  int rank;
  cluster_storage::DirectMemory state, incoming;

  explicit Node(int number)
      : rank(number),
        state(payload_of(shards_of(kWorld - 1)) + kPeerTail),
        incoming(payload_of(shards_of(kWorld - 1)) + kPeerTail) {
    for (std::size_t i = 0; i < state.bytes().size(); ++i) state.bytes()[i] = byte_of(rank, i);
  }
  [[nodiscard]] int after(int distance) const { return (rank + distance) % kWorld; }
};

class peer_verbs : public testing::Test {
 protected:
  peer_verbs() {
    setenv("ASSAY_LIBRARY_PATH", build_file("tests/fakes/verbs").c_str(), 1);
    unsetenv("ASSAY_FAKE_VERBS");
  }
  ~peer_verbs() override {
    unsetenv("ASSAY_LIBRARY_PATH");
    unsetenv("ASSAY_FAKE_VERBS");
  }
  void with_port() { verbs::add_port(tree_, {.device = "fake0"}); }
  static void fault(const char* name) { setenv("ASSAY_FAKE_VERBS", name, 1); }

  /// Runs `part` on every rank; what the first that failed threw, or "done".
  static std::string on_ranks(const std::function<void(Rendezvous&)>& part) {
    std::ostringstream out;
    const ProbeSpec spec{.name = "p", .measures = "M.", .method = "M.", .source = "S."};
    Recorder record(out, spec, {.probe = "p", .revision = 1, .parameters = {}, .host = {{"name", std::string("n")}}});
    std::string said = "done";
    try {
      verbs::run_loopback(kWorld, record, [&](Rendezvous& group, Recorder*) { part(group); }, {});
    } catch (const std::exception& error) {
      said = error.what();
    }
    record.end({.status = Status::complete, .reason = ""});
    return said;
  }
  [[nodiscard]] VerbsWish wish(Seconds stall = {30}) const {
    return {.one_machine = true, .root = tree_.path(), .stall = stall};
  }
  /// The same with the memory of every rank and its ways to that of others.
  std::string on_all(const std::function<void(Node&, PeerPaths&, Rendezvous&)>& part, Seconds stall = {30}) {
    return on_ranks([&](Rendezvous& group) {
      Node node(group.rank());
      PeerPaths paths({}, group, {.verbs = wish(stall), .streams = 2, .shift = 1, .back = 1}, node.state.bytes(),
                      node.incoming.bytes());
      part(node, paths, group);
      group.barrier();
    });
  }
  /// Saves a checkpoint into peers' memory and files, with `name` as the fault of the wire meanwhile, and restores it
  /// after all ranks lost their memory; by rank.
  std::vector<TierRestore> restored_after(const char* name) {
    const FakeTree files;
    std::vector<TierRestore> taken(kWorld);
    fault(name);
    EXPECT_EQ(on_ranks([&](Rendezvous& group) {
                CheckpointTiers tiers({}, group,
                                      {.model = checkpoint_model("llama3-8b"),
                                       .divisor = 20000,
                                       .tiers = {Tier::peer, Tier::shared},
                                       .lost = Lost::memory,
                                       .threads = 2,
                                       .plan = {.chunk = 1 << 20, .depth = 2},
                                       .verbs = wish(),
                                       .shared = files.path(),
                                       .local = "",
                                       .nonce = 7});
                (void)tiers.save(0);
                if (group.rank() == 0) unsetenv("ASSAY_FAKE_VERBS");  // the others wait
                group.barrier();
                taken[static_cast<std::size_t>(group.rank())] = tiers.restore(0);
                group.barrier();
              }),
              "done");
    return taken;
  }

  FakeTree tree_;
};

/// Every rank's copies go to the rank before it, as they do where the shift is 1.
void save(Node& node, PeerPaths& paths, Rendezvous&) { paths.save(shards_of(node.rank), shards_of(node.after(1))); }

}  // namespace

TEST_F(peer_verbs, copies_arrive_whole_and_the_transport_and_the_port_are_told) {
  with_port();
  EXPECT_EQ(on_all([](Node& node, PeerPaths& paths, Rendezvous& group) {
              save(node, paths, group);
              EXPECT_EQ(wrong_bytes(node.incoming.bytes(), node.after(1)), 0U);
              EXPECT_EQ(paths.transport(), "RoCE v2");
              EXPECT_EQ(paths.port(), "fake0/1 10.9.0.1");
            }),
            "done");
}

TEST_F(peer_verbs, copies_come_back_again_and_again) {
  with_port();
  EXPECT_EQ(on_all([](Node& node, PeerPaths& paths, Rendezvous& group) {
              for (int turn = 0; turn < 3; ++turn) {
                save(node, paths, group);
                std::ranges::fill(node.state.bytes(), std::byte{0});
                const auto kept = shards_of(node.after(1)), own = shards_of(node.rank);
                ASSERT_TRUE(paths.come_back());
                group.barrier();
                paths.restore(&kept, &own);
                EXPECT_EQ(wrong_bytes(node.state.bytes(), node.rank), 0U);
                for (std::size_t i = 0; i < node.state.bytes().size(); ++i)
                  node.state.bytes()[i] = byte_of(node.rank, i);
                group.barrier();
              }
            }),
            "done");
}

TEST_F(peer_verbs, a_rank_that_wants_nothing_back_is_sent_nothing_and_serves_the_others) {
  with_port();
  EXPECT_EQ(on_all([](Node& node, PeerPaths& paths, Rendezvous& group) {
              save(node, paths, group);
              std::ranges::fill(node.state.bytes(), std::byte{0});
              const auto kept = shards_of(node.after(1)), own = shards_of(node.rank);
              group.barrier();
              paths.restore(node.after(1) == 1 ? &kept : nullptr, node.rank == 1 ? &own : nullptr);
              const std::size_t wrong = wrong_bytes(node.state.bytes(), node.rank);
              EXPECT_EQ(wrong == 0, node.rank == 1);
              EXPECT_EQ(node.state.bytes()[5] == std::byte{0}, node.rank != 1);
            }),
            "done");
}

TEST_F(peer_verbs, a_byte_that_the_wire_changed_is_in_the_copy) {
  with_port();
  fault("corrupt");
  EXPECT_EQ(on_all([](Node& node, PeerPaths& paths, Rendezvous& group) {
              save(node, paths, group);
              EXPECT_GT(wrong_bytes(node.incoming.bytes(), node.after(1)), 0U);
            }),
            "done");
}

TEST_F(peer_verbs, whole_copies_serve_the_restore_and_changed_ones_are_found_counted_and_replaced_by_the_files) {
  with_port();
  for (const auto& rank : restored_after("none")) {
    EXPECT_EQ(rank.mismatches, 0U) << rank.first_wrong;
    EXPECT_EQ(rank.fallbacks, 0U);
    EXPECT_EQ(rank.served.size(), 1U);
    EXPECT_TRUE(rank.served.contains("peer"));
  }
  for (const auto& rank : restored_after("corrupt")) {
    EXPECT_GT(rank.mismatches, 0U);
    EXPECT_GT(rank.fallbacks, 0U);
    EXPECT_TRUE(rank.served.contains("shared"));
    EXPECT_FALSE(rank.served.contains("none"));
    EXPECT_NE(rank.first_wrong.find(" in tier peer"), std::string::npos) << rank.first_wrong;
  }
}

TEST_F(peer_verbs, a_rank_that_goes_away_ends_the_others_with_its_reason) {
  with_port();
  std::array<std::string, kWorld> said;
  EXPECT_EQ(on_all([&](Node& node, PeerPaths& paths, Rendezvous& group) {
              if (node.rank == 2) throw std::runtime_error("this node went away");
              try {
                save(node, paths, group);
                group.barrier();
              } catch (const std::exception& error) {
                said[static_cast<std::size_t>(node.rank)] = error.what();
                throw;
              }
            }),
            "this node went away");
  for (const int rank : {0, 1})
    EXPECT_NE(said[static_cast<std::size_t>(rank)].find("rank 2: this node went away"), std::string::npos)
        << said[static_cast<std::size_t>(rank)];
}

TEST_F(peer_verbs, messages_that_never_complete_and_those_that_fail_are_errors) {
  with_port();
  fault("lose");
  const auto lost = on_all(save, {0.5});
  EXPECT_NE(lost.find(" fake0/1: no message was completed for 0.5 s"), std::string::npos) << lost;
  fault("fail");
  const auto failed = on_all(save);
  EXPECT_NE(failed.find("fake0/1 to rank "), std::string::npos) << failed;
  EXPECT_NE(failed.find(": a message on queue pair"), std::string::npos) << failed;
}

TEST_F(peer_verbs, verbs_that_cannot_be_had_are_an_error_with_a_hint_and_not_another_transport) {
  const auto said = on_all(save);
  EXPECT_NE(said.find("peer_transport: verbs cannot be had: "), std::string::npos) << said;
  EXPECT_NE(said.find("hint: peer_transport=tcp copies over TCP, and the record says so"), std::string::npos) << said;
  with_port();
  for (const char* name : {"locked", "locked_memory"}) {
    fault(name);
    const auto refused = on_all(save);
    EXPECT_NE(refused.find("peer_transport: verbs cannot be had: "), std::string::npos) << refused;
  }
}

}  // namespace assay::cluster_checkpoint
