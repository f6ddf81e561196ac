// registered_memory: memory of this host or of a GPU that an RDMA device reads and writes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

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

/// "host", "dma_buf" or "peermem".
std::string_view to_string(Registration registration);

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

}  // namespace assay::verbs
