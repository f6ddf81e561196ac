// direct_file: a file moved in chunks with O_DIRECT through io_uring, several chunks in flight.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "probes/core/descriptor.h"
#include "probes/core/units.h"

struct io_uring;

namespace assay::cluster_storage {

/// Alignment that O_DIRECT needs of addresses, offsets and sizes; no device of ours has larger logical blocks.
inline constexpr std::size_t kDirectBlock = 4096;

/// Page-aligned memory that is touched once, so that no page fault falls into a timed window.
class DirectMemory {
 public:
  /// `size` bytes, 0 allowed. Throws std::bad_alloc.
  explicit DirectMemory(std::size_t size);
  /// All of it.
  [[nodiscard]] std::span<std::byte> bytes() const { return {memory_.get(), size_}; }

 private:
  struct Unmap {
    std::size_t size = 0;
    void operator()(std::byte* memory) const;
  };
  std::size_t size_;
  std::unique_ptr<std::byte, Unmap> memory_;
};

/// How chunks are moved.
struct ChunkPlan {
  std::size_t chunk = 0;    ///< bytes of one I/O, a multiple of kDirectBlock
  unsigned depth = 0;       ///< I/Os in flight
  Seconds deadline = {60};  ///< for any one completion; a device that takes longer hangs
};

/// Throws Skip with the reason when the kernel does not permit io_uring (ENOSYS, EPERM).
void demand_io_uring();

/// A file open with O_DIRECT and a ring of its own. All calls throw std::system_error with the path when the kernel
/// refuses, std::runtime_error when a completion is overdue or the file ends early.
class DirectFile {
 public:
  /// Opens for reading.
  static DirectFile open_to_read(const std::string& path, const ChunkPlan& plan);
  /// Makes a new file with all of `size` allocated, so that writes do not wait for each other to extend it.
  static DirectFile make(const std::string& path, std::uint64_t size, const ChunkPlan& plan);
  ~DirectFile();
  DirectFile(DirectFile&&) noexcept;
  DirectFile& operator=(DirectFile&&) = delete;

  /// Bytes of the file.
  [[nodiscard]] std::uint64_t size() const;
  /// Writes `from` at offset 0 in chunks; calls `submitted` with each chunk, in order, while it is in flight.
  void write(std::span<const std::byte> from, const std::function<void(std::span<const std::byte>)>& submitted);
  /// Writes one block-aligned piece at `offset`.
  void write_at(std::span<const std::byte> from, std::uint64_t offset);
  /// Fills `into` from `offset` on in chunks.
  void read(std::span<std::byte> into, std::uint64_t offset);
  /// Fills `body` from the start of the file and `rest` with the bytes after, all as one queue of chunks. Both are
  /// whole blocks.
  void read(std::span<std::byte> body, std::span<std::byte> rest);
  /// Reads the first `size` bytes in chunks into `ring`, `depth` chunks of memory used in turn; nothing is looked at.
  void read_and_forget(std::uint64_t size, std::span<std::byte> ring);
  /// fsync.
  void sync();

 private:
  struct Transfer;
  DirectFile(std::string path, int descriptor, const ChunkPlan& plan);
  void run(const Transfer& transfer);
  void queue(const Transfer& transfer, std::size_t slot, std::uint64_t begin, std::size_t done, std::size_t length);

  std::string path_;
  Descriptor descriptor_;
  ChunkPlan plan_;
  std::unique_ptr<io_uring> ring_;
};

/// fsync of a directory, which makes the names in it durable. Throws std::system_error.
void sync_directory(const std::string& path);

}  // namespace assay::cluster_storage
