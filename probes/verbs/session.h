// session: two ranks on their ports, introduced, with memory, ready to connect; and the record of their path.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "probes/core/rendezvous.h"
#include "probes/verbs/endpoint.h"
#include "probes/verbs/endpoint_setup.h"

namespace assay::verbs {

/// The parameter of the probes of one pair.
inline constexpr Parameter kOperationParameter[] = {
    choice("operation", "write", kVerbsOperations, "RDMA write, RDMA read, or send and receive"),
};

/// The conditions that a session records, besides those of its station.
inline constexpr ConditionSpec kPathConditions[] = {
    {.name = "local", .meaning = "this rank's host, port and address"},
    {.name = "peer", .meaning = "the other rank's host, port and address"},
    {.name = "queue_pairs", .meaning = "numbers of this rank's and the other's queue pairs as first connected"},
    if_reported("payload_limit",
                "largest payload rate in B/s that the fastest mode of the slower port, its MTU and headers leave, "
                "where both ports report their rate"),
    {.name = "payload_limit_of", .meaning = "fastest mode, or rate now: one of the two ports does not tell its modes"},
    {.name = "mtu", .meaning = "path MTU in B"},
    {.name = "reads_outstanding", .meaning = "RDMA reads in flight on one queue pair at most"},
};

/// One rank of a pair.
class Session {
 public:
  /// Makes the station and introduces the ranks to each other. Throws as that, and as RdmaEndpointSetup::path_to()
  /// does.
  Session(const Parameters& given, Rendezvous& group);

  [[nodiscard]] Adapter& adapter() { return station_.adapter(); }
  [[nodiscard]] RegisteredMemory memory(std::size_t size, Ordering ordering, bool staged = false) const {
    return station_.memory(size, ordering, staged);
  }
  [[nodiscard]] std::optional<std::pair<std::string, Bytes>> free_gpu() const { return station_.free_gpu(); }
  [[nodiscard]] int rank() const { return group_.rank(); }
  [[nodiscard]] Seconds stall_limit() const { return station_.stall_limit(); }
  /// The measured subject: a pair, or one port.
  [[nodiscard]] Subject subject() const;
  [[nodiscard]] bool loopback() const { return station_.loopback(); }
  /// The largest payload rate of the path in one direction, where both ports report their rate.
  [[nodiscard]] std::optional<BytesPerSecond> payload_limit() const;
  /// The exchange of one message with the other rank: its message.
  [[nodiscard]] std::string swap(std::string_view mine);
  /// Returns when both are here.
  void barrier() { group_.barrier(); }
  [[nodiscard]] Rendezvous& group() { return group_; }
  /// Connects an endpoint to the other rank's, which does the same.
  void connect(VerbsEndpoint& endpoint);
  /// Records path, port and counters' change; called once, after the measurement.
  void record_conditions(Recorder& record, const RegisteredMemory& memory);

 private:
  Rendezvous& group_;
  RdmaEndpointSetup station_;
  Introduction other_;
  PathChoice path_;
  std::string pairs_text_;
};

/// Runs `part` as each of `ranks` ranks in this process, which meet on the machine's loopback interface; rank 0
/// records, the others get null. For one port that talks to itself. Rethrows the error of the first rank that failed.
void run_loopback(int ranks, Recorder& record, const std::function<void(Rendezvous&, Recorder*)>& part,
                  const RendezvousLimits& limits);

/// Runs `part` as one rank of the pair of `placement`; only a loopback has both ranks in this process, of which rank 0
/// records. A rank that throws sends the other the reason. Throws Skip for a fabric with one rank, BadParameter for
/// parameters out of range.
void run_pair(const Parameters& given, const Placement& placement, Recorder& record,
              const std::function<void(Rendezvous&, Recorder*)>& part, Seconds exchange);

/// Throws Skip because a fabric needs a second rank, or because this node has no port at all, which is the better
/// reason.
[[noreturn]] void skip_alone(const Parameters& given);

}  // namespace assay::verbs
