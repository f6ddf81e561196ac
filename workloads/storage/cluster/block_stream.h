// block_stream: one thread's transfers of equal size through io_uring, several in flight, each made or checked by its
// payload.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "probes/core/descriptor.h"
#include "probes/core/units.h"
#include "workloads/storage/shared/direct_file.h"
#include "workloads/storage/shared/payload.h"
#include "workloads/storage/shared/stonewall.h"

struct io_uring;

namespace assay::cluster_storage {

/// An open file and its path for errors.
struct BlockFile {
  std::string path;
  Descriptor descriptor = {};
};

/// Opens a file with open(2)'s `flags`; a new one is readable only by its owner. Throws std::system_error.
BlockFile open_block_file(const std::string& path, int flags);

/// One transfer of a stream.
struct BlockOperation {
  const BlockFile* file = nullptr;
  bool reads = false;
  std::uint64_t offset = 0;          ///< B in the file
  PayloadKey key = {};               ///< of the payload that is written, or must be found
  std::uint64_t payload_offset = 0;  ///< B in the stream of that key
};

/// Work of a stream, over all of its runs.
struct StreamTaken {
  Progress moved;                ///< by the time of completion
  TimeClasses latency;           ///< from submission to completion
  std::uint64_t mismatches = 0;  ///< bytes read that are not the payload, or not there
  std::string first_wrong;       ///< where the first of them are; empty if there are none
};

/// Which transfers a run makes.
struct StreamWork {
  std::function<BlockOperation(std::uint64_t)> operation;           ///< by number
  std::uint64_t first = 0, limit = 0;                               ///< numbers, the second not included
  std::optional<std::chrono::steady_clock::time_point> until = {};  ///< none is begun afterwards
  const std::atomic<bool>* abandoned = nullptr;                     ///< ends the run when it turns true; may be null
};

/// How a stream transfers.
struct StreamPlan {
  std::size_t block = 0;  ///< B of one transfer, a multiple of 8
  unsigned depth = 0;     ///< transfers in flight
  bool direct = false;    ///< the files are open with O_DIRECT
  Seconds deadline = {};  ///< for any one completion; storage that takes longer hangs
};

/// A ring with memory of its own; used by one thread at a time.
class BlockStream {
 public:
  /// Throws std::system_error when the kernel refuses a ring.
  explicit BlockStream(const StreamPlan& plan);
  BlockStream(BlockStream&&) noexcept;
  ~BlockStream();

  /// Makes the transfers of `work` in their order, and waits until all that were begun are complete; times count from
  /// `origin`. Returns the number of the first one that was not begun. A read that ends early counts the missing bytes
  /// as mismatches. Throws std::system_error with the path when the kernel refuses a transfer, std::runtime_error when
  /// one is overdue, a signal asks to stop, or `abandoned` turns true.
  std::uint64_t run(const StreamWork& work, std::chrono::steady_clock::time_point origin, StreamTaken& taken);
  /// fsync through the ring, which no preloaded library can make idle. Throws alike.
  void sync(const BlockFile& file);

 private:
  struct Flight;
  void begin(Flight& flight, std::size_t slot, const BlockOperation& operation);
  void submit(const Flight& flight, std::size_t slot);
  bool advance(Flight& flight, std::size_t slot, int result);
  int wait(std::size_t& slot, const std::string& path);
  [[nodiscard]] std::span<std::byte> memory_of(std::size_t slot) const;

  StreamPlan plan_;
  std::size_t stride_;
  DirectMemory memory_;
  std::unique_ptr<io_uring> ring_;
};

}  // namespace assay::cluster_storage
