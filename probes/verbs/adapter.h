// adapter: an RDMA device opened through the node's own libibverbs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>

#include "probes/verbs/port_facts.h"
#include "probes/verbs/registered_memory.h"

namespace assay::verbs {

class VerbsEndpoint;

/// A call of libibverbs that failed, or a message that ended in an error.
struct VerbsError : std::runtime_error {
  VerbsError(const std::string& words, int errno_of_call, int status)
      : std::runtime_error(words), call(errno_of_call), completion(status) {}
  int call = 0;        ///< errno; 0 of a message
  int completion = 0;  ///< ibv_wc_status; 0 of a call
};

/// Abilities of the port and the device.
struct AdapterLimits {
  int mtu = 0;                                                  ///< active MTU of the port, B
  int mtu_max = 0;                                              ///< the largest that the port can have, B
  int lid = 0;                                                  ///< 0 on Ethernet
  std::uint32_t work_requests = 0;                              ///< on one queue pair
  std::uint32_t completions = 0;                                ///< in one completion queue
  std::uint8_t reads_as_initiator = 0, reads_as_responder = 0;  ///< outstanding on one queue pair
  std::uint64_t largest_message = 0;                            ///< B
  bool completion_timestamps = false;  ///< whether the device stamps completions with a clock of its own
};

/// An open device with a protection domain, on one port.
class Adapter {
 public:
  /// Opens the library and the device of `port`. Throws Skip when the library is not there, does not know the device,
  /// or may not open it; std::runtime_error with the failed call otherwise.
  explicit Adapter(const PortFacts& port);
  Adapter(Adapter&&) noexcept;
  ~Adapter();

  [[nodiscard]] const PortFacts& port() const;
  [[nodiscard]] const AdapterLimits& limits() const;
  /// Where the library was found.
  [[nodiscard]] const std::string& library() const;
  /// `size` bytes that the peer may read and write. Throws std::runtime_error, with a hint about the limit of locked
  /// memory.
  [[nodiscard]] RegisteredMemory memory(std::size_t size, Ordering ordering) const;
  /// `lent` for the same; it must outlive the result. Throws as the above.
  [[nodiscard]] RegisteredMemory memory(std::span<std::byte> lent, Ordering ordering) const;
  /// The memory of a GPU for the same: as a dma-buf, and where library, driver or kernel refuse that, through
  /// nvidia-peermem; the result says which, and why not the first. Throws Skip when the GPU can do neither,
  /// std::runtime_error with both reasons when both are refused.
  [[nodiscard]] RegisteredMemory memory(cuda::GpuMemory of, Ordering ordering) const;
  /// As many bytes of this host for the same, through which a GPU's memory is copied: see
  /// RegisteredMemory::stage_out().
  [[nodiscard]] RegisteredMemory staged(cuda::GpuMemory of, Ordering ordering) const;

  struct State;

 private:
  friend class VerbsEndpoint;
  std::unique_ptr<State> state_;
};

}  // namespace assay::verbs
