// adapter: an RDMA device opened through the node's own libibverbs, and the memory of a host or GPU that it reads and
// writes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>

#include "probes/core/words.h"
#include "probes/verbs/port_facts.h"

namespace assay::cuda {
class GpuMemory;
}  // namespace assay::cuda

namespace assay::cuda {
class GpuMemory;
}  // namespace assay::cuda

namespace assay::verbs {

class VerbsEndpoint;

/// Whether the device may reorder its writes to memory (PCIe relaxed ordering). Faster on many hosts; not for code that
/// looks at the last byte of a message to learn that the rest is there.
enum class Ordering { relaxed, strict };

/// How the device got the memory: as a host's pages; as a dma-buf of the GPU's driver (ibv_reg_dmabuf_mr); by the GPU's
/// address, which the kernel module nvidia-peermem resolves (ibv_reg_mr).
enum class Registration { host, dma_buf, peermem };

constexpr auto words_of(Registration) { return names_as_words<Registration>(); }

/// Registered memory, page-aligned and filled with zeros.
class RegisteredMemory {
 public:
  RegisteredMemory(RegisteredMemory&&) noexcept;
  RegisteredMemory& operator=(RegisteredMemory&&) = delete;
  ~RegisteredMemory();

  /// Whether it is a GPU's, and peers reach pages of the host in its place.
  [[nodiscard]] bool is_staged() const;
  /// Copies the first `size` bytes of a GPU's memory into the host's pages that peers reach in its place, or back;
  /// nothing for other memory.
  void stage_out(std::size_t size) const;
  void stage_in(std::size_t size) const;
  /// All of it where the processors can look at it; empty for a GPU's memory.
  [[nodiscard]] std::span<std::byte> bytes() const;
  /// Has `make` write the `size` bytes from `begin`: in place, or for a GPU's memory in a copy that is then brought
  /// there.
  void write(std::size_t begin, std::size_t size, const std::function<void(std::span<std::byte>)>& make) const;
  /// What `look` makes of the `size` bytes from `begin`: in place, or of a GPU's memory in a copy fetched from there.
  [[nodiscard]] std::uint64_t read(std::size_t begin, std::size_t size,
                                   const std::function<std::uint64_t(std::span<const std::byte>)>& look) const;
  /// Its begin, as a peer addresses it.
  [[nodiscard]] std::uint64_t address() const;
  /// The key with which a peer reaches it.
  [[nodiscard]] std::uint32_t remote_key() const;
  /// Whether relaxed ordering was asked for and the library passes it on.
  [[nodiscard]] bool relaxed() const;
  [[nodiscard]] Registration registration() const;
  /// Why a GPU's memory was not registered as a dma-buf; empty if it was, and for a host's.
  [[nodiscard]] const std::string& dma_buf_refused() const;

  struct State;

 private:
  friend class Adapter;
  friend class VerbsEndpoint;
  explicit RegisteredMemory(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

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
