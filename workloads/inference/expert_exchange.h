// expert_exchange: one rank's part in sending tokens to the ranks of their experts and taking back their results.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "workloads/inference/findings.h"
#include "workloads/inference/routing.h"
#include "workloads/inference/token_payload.h"

namespace assay::gloo {
class Mesh;
}  // namespace assay::gloo

namespace assay::inference {

/// Parameters of the exchange. Every rank has the same but for `rank`.
struct ExchangeJob {
  RoutingShape routing;
  std::int64_t rank = 0, ranks_per_node = 1;
  std::int64_t hidden = 0;      ///< numbers of a token
  std::int64_t out_number = 2;  ///< B of each on the way out, see token_bytes()
  std::int64_t back_number = 2;
  bool puts = false;          ///< GPUs put slots into the memory of others by themselves
  bool once_per_rank = true;  ///< a token goes to a rank once for all its experts there; else once for each
  std::uint64_t nonce = 0;    ///< of the run

  [[nodiscard]] std::size_t out_bytes() const { return token_bytes(hidden, out_number); }
  [[nodiscard]] std::size_t back_bytes() const { return token_bytes(hidden, back_number); }
  /// Of a slot on the way out and back: head, experts, numbers.
  [[nodiscard]] std::size_t out_slot() const;
  [[nodiscard]] std::size_t back_slot() const;
  /// Memory that an ExpertExchange takes at most, in B.
  [[nodiscard]] std::uint64_t memory() const;
};

/// Times of one step on one rank, in s.
struct ExchangeTimes {
  double dispatch_s = 0;  ///< from the common start until all tokens for this rank are there and its own are away
  double combine_s = 0;   ///< from the common start until the sums of its own tokens are there
  double self_s = 0;      ///< of both and of the experts' work, in no wait for others
  double wait_s = 0;      ///< in waits for others, that for the slowest experts among them
};

/// Copies of tokens for single experts, and bytes of slots, out and back, that a rank sent in one step. Own copies use
/// memory, those of the same node its loopback; only the rest are the network's.
struct ExchangeTraffic {
  std::int64_t own = 0, node = 0, network = 0;  ///< copies, by where their expert is
  std::int64_t slots = 0;                       ///< on the way out, own ones too
  std::uint64_t node_bytes = 0, network_bytes = 0;

  /// A copy for an expert of `rank`, and `bytes` sent to it, as the rank of `job` sees them.
  void count_copy(const ExchangeJob& job, std::size_t rank);
  void count_bytes(const ExchangeJob& job, std::size_t rank, std::uint64_t bytes);
  void add(const ExchangeTraffic& other);
};

/// One step on one rank.
struct ExchangeStep {
  ExchangeTimes times;
  ExchangeTraffic traffic;
  Findings findings;
};

/// Slots that are about to leave for one rank, for tests that change them: `count` of `each` B in `slots`, which has
/// room for more.
struct Leaving {
  bool back = false;  ///< on the way back
  std::int64_t target = 0;
  std::size_t* count = nullptr;
  std::size_t each = 0;
  std::span<std::byte> slots;
};
using Tamper = std::function<void(Leaving)>;

/// Memory and windows are there before the first step. Every rank calls step() with the same family and number.
class ExpertExchange {
 public:
  /// `mesh` outlives this object.
  ExpertExchange(gloo::Mesh& mesh, const ExchangeJob& job);
  ~ExpertExchange();
  ExpertExchange(const ExpertExchange&) = delete;
  ExpertExchange& operator=(const ExpertExchange&) = delete;

  /// One step of `router`'s family: tokens go out, experts work, results come back; between the timed parts every byte
  /// received is compared with the expected one. Throws as the mesh.
  ExchangeStep step(const Router& router, std::uint64_t number, const Tamper& tamper = {});
  /// The median time in s of one slot to `peer` and back while nothing else is sent; the lower of the two ranks leads.
  double round_trip(std::int64_t peer);

 private:
  class Rank;
  std::unique_ptr<Rank> rank_;
};

}  // namespace assay::inference
