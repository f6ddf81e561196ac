// spilled_bytes: bytes that are put aside and read again, most of them on disk instead of in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "probes/core/descriptor.h"

namespace assay::files {

/// Pieces one behind the other: the latest in memory, those before them in a file without a name that only this process
/// has and that goes with it. It is made when it is needed first. Any number of threads may use them.
class SpilledBytes {
 public:
  /// So many bytes stay in memory, and `most` are taken in all. The file is made in `folder`; if that is empty, in
  /// $TMPDIR or /var/tmp, because /tmp may be memory.
  SpilledBytes(std::size_t in_memory, std::uint64_t most, std::string folder = "");

  /// Where `piece` is; nothing if there is no room for it, and then for none after it: less than 1 GiB of the disk stay
  /// free, or it cannot be written.
  std::optional<std::uint64_t> add(std::string_view piece);
  /// The piece of `size` bytes that add() put at `begin`; nothing if the file cannot be read.
  [[nodiscard]] std::optional<std::string> read(std::uint64_t begin, std::size_t size) const;
  /// Whether a piece was refused.
  [[nodiscard]] bool is_full() const;

 private:
  bool spill();

  const std::size_t in_memory_;
  const std::uint64_t most_;
  const std::string folder_;
  mutable std::mutex mutex_;  ///< of all below; bytes in the file do not change
  Descriptor file_;
  std::uint64_t spilled_ = 0;  ///< bytes in the file
  std::string latest_;         ///< those behind them
  bool full_ = false;
};

}  // namespace assay::files
