// buffer: large memory from the kernel, with chosen page size and first touch.
#pragma once

#include <cstddef>
#include <span>

#include "probes/core/units.h"

namespace assay::host {

/// Whether transparent huge pages are asked for.
enum class Pages { huge, base };

/// Size of a huge page of x86-64, and of Arm with 4 KiB base pages.
inline constexpr std::size_t kHugePage = 2 << 20;

/// Anonymous memory, aligned to 2 MiB, not touched yet: the thread that first writes a page decides its NUMA node.
class Buffer {
 public:
  /// Maps `size` rounded up to 2 MiB. Throws std::runtime_error with the size when the kernel refuses.
  Buffer(Bytes size, Pages pages);
  ~Buffer();
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&&) = delete;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  /// The memory as elements of T; as many as were asked for, without the rounding.
  template <class T>
  [[nodiscard]] std::span<T> as() {
    return {static_cast<T*>(begin_), size_.count / sizeof(T)};
  }
  /// The same memory, read only.
  template <class T>
  [[nodiscard]] std::span<const T> as() const {
    return {static_cast<const T*>(begin_), size_.count / sizeof(T)};
  }
  /// Share, 0..1, of the memory that the kernel backs with huge pages right now; 0 if it does not report it.
  [[nodiscard]] double huge_share() const;

 private:
  Bytes size_;
  void* mapping_ = nullptr;
  std::size_t mapped_ = 0;
  void* begin_ = nullptr;
};

/// The size nearest to `wanted` that is a multiple of `granule` and, all `count` of them together, takes at most half
/// of physical memory, so that the probe never drives a node into swap or the OOM killer.
Bytes affordable(Bytes wanted, std::size_t count, Bytes granule);

}  // namespace assay::host
