// adapter: an RDMA device opened through the node's own libibverbs, and memory that it may reach.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "probes/core/units.h"
#include "probes/verbs/port_facts.h"

namespace assay {

class VerbsEndpoint;

/// Whether the device may reorder its writes to memory (PCIe relaxed ordering). Faster on many hosts; not for code that looks
/// at the last byte of a message to learn that the rest is there.
enum class Ordering { relaxed, strict };

/// Memory of this process that the adapter reads and writes, page-aligned and touched.
class RegisteredMemory {
 public:
  RegisteredMemory(RegisteredMemory&&) noexcept;
  RegisteredMemory& operator=(RegisteredMemory&&) = delete;
  ~RegisteredMemory();
  /// All of it.
  [[nodiscard]] std::span<std::byte> bytes() const;
  /// Where it begins, as a peer addresses it.
  [[nodiscard]] std::uint64_t address() const;
  /// The key with which a peer reaches it.
  [[nodiscard]] std::uint32_t remote_key() const;
  /// Whether relaxed ordering was asked for and the library passes it on.
  [[nodiscard]] bool relaxed() const;

 private:
  friend class Adapter;
  friend class VerbsEndpoint;
  struct State;
  explicit RegisteredMemory(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// What the port and the device can do.
struct AdapterLimits {
  int mtu = 0;                        ///< active MTU of the port, B
  int lid = 0;                        ///< 0 on Ethernet
  std::uint32_t work_requests = 0;    ///< on one queue pair
  std::uint32_t completions = 0;      ///< in one completion queue
  std::uint8_t reads_as_initiator = 0, reads_as_responder = 0;  ///< outstanding on one queue pair
  std::uint64_t largest_message = 0;  ///< B
  bool completion_timestamps = false; ///< whether the device stamps completions with a clock of its own
};

/// An open device with a protection domain, on one port.
class Adapter {
 public:
  /// Opens the library and the device of `port`. Throws Skip when the library is not there, does not know the device, or may
  /// not open it; std::runtime_error with the failed call otherwise.
  explicit Adapter(const PortFacts& port);
  Adapter(Adapter&&) noexcept;
  ~Adapter();

  [[nodiscard]] const PortFacts& port() const;
  [[nodiscard]] const AdapterLimits& limits() const;
  /// Where the library was found.
  [[nodiscard]] const std::string& library() const;
  /// `size` bytes that the peer may read and write. Throws std::runtime_error, with a hint about the limit of locked memory.
  [[nodiscard]] RegisteredMemory memory(std::size_t size, Ordering ordering) const;

 private:
  friend class VerbsEndpoint;
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace assay
