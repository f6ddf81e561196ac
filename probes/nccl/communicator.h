// communicator: NCCL or RCCL opened at run time, one communicator of this process' GPU, and memory that the library
// likes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "probes/collective/operation.h"
#include "probes/core/library.h"
#include "probes/core/units.h"
#include "probes/cuda/device.h"

struct ncclComm;           // the target of ncclComm_t
struct ncclWindow_vidmem;  // the target of ncclWindow_t

namespace assay::nccl {

/// The names of a library with NCCL's interface.
struct Product {
  const char* title = "NCCL";
  const char* library = "libnccl.so.2";
  const char* folders = "";  ///< more to search
  const char* probe = "nccl_collective";
  const char* memory = "cudaMalloc";  ///< of the runtime, where the library gives none
  const char* version_condition = "nccl_version";
  const char* library_condition = "nccl_library";
};
inline constexpr Product kNccl;
inline constexpr Product kRccl{.title = "RCCL",
                               .library = "librccl.so.1",
                               .folders = "/opt/rocm/lib",
                               .probe = "rccl_collective",
                               .memory = "hipMalloc",
                               .version_condition = "rccl_version",
                               .library_condition = "rccl_library"};

/// The functions of the library.
class Nccl {
 public:
  /// Opens the library. Throws Skip when it is missing or older than 2.18, which has all that is needed.
  explicit Nccl(const Product& product = kNccl);
  ~Nccl();
  Nccl(Nccl&&) noexcept;
  Nccl& operator=(Nccl&&) = delete;

  /// "2.28.9".
  [[nodiscard]] std::string version() const;
  /// Where the library is.
  [[nodiscard]] const std::string& path() const;
  /// A new id of a communicator, as hexadecimal digits.
  [[nodiscard]] std::string unique_id() const;

 private:
  friend class Communicator;
  friend class CollectiveBuffer;
  struct Functions;
  std::unique_ptr<Functions> functions_;
};

/// Device memory from ncclMemAlloc, which the library can map into its peers; else from the runtime.
class CollectiveBuffer {
 public:
  CollectiveBuffer() = default;
  /// Throws std::runtime_error with the size when the device has not that much left. `nccl` must outlive it.
  CollectiveBuffer(const Nccl& nccl, Bytes size);
  CollectiveBuffer(CollectiveBuffer&& other) noexcept;
  CollectiveBuffer& operator=(CollectiveBuffer&& other) noexcept;
  ~CollectiveBuffer();

  [[nodiscard]] std::byte* data() const { return from_nccl_ != nullptr ? from_nccl_ : from_cuda_.data(); }
  [[nodiscard]] Bytes size() const { return size_; }
  /// "ncclMemAlloc", or the runtime's function.
  [[nodiscard]] const char* source() const;

 private:
  const Nccl* nccl_ = nullptr;
  std::byte* from_nccl_ = nullptr;
  cuda::DeviceBuffer from_cuda_;
  Bytes size_;
};

/// Whether kernels that were built with one version of NCCL read windows of another: from 2.28.3 to 2.30.7 the base and
/// the stride of a window are at the same places (nccl_device/impl/core__types.h); put_kernels.cu checks them.
constexpr bool reads_windows(int built_with, int found) {
  constexpr int kFirst = 22803, kLast = 23007;
  return built_with == found || (std::min(built_with, found) >= kFirst && std::max(built_with, found) <= kLast);
}
static_assert(reads_windows(22809, 22803) && reads_windows(22809, 23007));
static_assert(!reads_windows(22809, 22707) && !reads_windows(22809, 23100) && reads_windows(23100, 23100));

/// One rank of a communicator. Non-blocking: every call is followed until NCCL has done it or `limit` has passed.
class Communicator {
 public:
  /// Enters the communicator of `id` with the current device; waits for all `ranks` at most `limit`. Throws
  /// std::runtime_error with NCCL's words.
  Communicator(const Nccl& nccl, std::string_view id, int ranks, int rank, Seconds limit);
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  /// Aborts running operations, so that no GPU keeps spinning.
  ~Communicator();

  /// Enqueues `operation` on `chunk` elements (Shape::chunk) and returns when it is in the stream.
  void enqueue(collective::Operation operation, collective::Element element, std::size_t chunk, const std::byte* source,
               std::byte* target, const cuda::Stream& stream);
  /// The same of single calls, in place: all_gather and reduce_scatter have `share` numbers of each rank, this rank's
  /// at its place.
  using Element = collective::Element;
  void all_reduce(void* data, std::size_t count, const cuda::Stream& stream, Element element = Element::fp32);
  void all_gather(void* data, std::size_t share, const cuda::Stream& stream, Element element = Element::fp32);
  void reduce_scatter(void* data, std::size_t share, const cuda::Stream& stream, Element element = Element::fp32);
  /// `to` and `from`: numbers for, and of, each rank, one after the other in `sent` and `data`.
  void all_to_all(const void* sent, const std::vector<std::size_t>& to, void* data,
                  const std::vector<std::size_t>& from, const cuda::Stream& stream, Element element = Element::fp32);
  /// Enqueues one group: bytes of `sent` to each rank and into `received` from each, by rank. Parts of 0 bytes are left
  /// out.
  void exchange(const std::byte* sent, std::span<const collective::Part> to, std::byte* received,
                std::span<const collective::Part> from, const cuda::Stream& stream);
  void send(int peer, const void* data, std::size_t count, const cuda::Stream& stream, Element element = Element::fp32);
  void receive(int peer, void* data, std::size_t count, const cuda::Stream& stream, Element element = Element::fp32);
  /// Shows `memory`, of ncclMemAlloc and the same size on every rank, to kernels of the ranks that reach each other by
  /// loads and stores, which demand_reach() has found; all ranks call it in one order. Lives as long as this object.
  [[nodiscard]] ncclWindow_vidmem* share(std::byte* memory, Bytes size);
  /// Throws Skip where kernels `built_with` a version of NCCL (22809; 0: none) do not read the library's windows, or
  /// where fewer than all ranks reach each other by loads and stores.
  void demand_reach(int built_with) const;
  /// Throws when the communicator has failed.
  void check_alive();
  /// Waits until all work of `stream` is done; throws when it failed, the communicator failed, or it is not done within
  /// `limit`, which is how a peer that hangs shows.
  void finish(const cuda::Stream& stream, Seconds limit);

 private:
  void demand(int result, std::string_view what);
  void settle(std::string_view what, Seconds limit);

  const Nccl& nccl_;
  ncclComm* comm_ = nullptr;
  int ranks_, rank_;
};

}  // namespace assay::nccl
