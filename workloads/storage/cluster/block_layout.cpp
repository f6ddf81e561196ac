// block_layout: computes file names and offsets, and which transfers of a mixed stream read or write.
#include "workloads/storage/cluster/block_layout.h"

#include <cmath>

#include <fmt/format.h>

namespace assay::cluster_storage {
namespace {

/// Reads among the first `operations`.
std::uint64_t reads_among(std::uint64_t operations, double read_share) {
  return static_cast<std::uint64_t>(std::floor(static_cast<double>(operations) * read_share));
}

}  // namespace

std::string block_file(const BlockLayout& layout, std::uint64_t set, std::uint64_t stream) {
  return layout.shared ? fmt::format("set-{:04}-shared", set) : fmt::format("set-{:04}-stream-{:06}", set, stream);
}

MixedOperation mixed_operation(std::uint64_t index, double read_share) {
  const std::uint64_t before = reads_among(index, read_share);
  if (reads_among(index + 1, read_share) > before) return {.reads = true, .number = before};
  return {.reads = false, .number = index - before};
}

std::uint64_t mixed_operations(std::uint64_t reads, std::uint64_t writes, double read_share) {
  std::uint64_t low = 0, high = reads + writes;  // as many as that are too many unless they fit exactly
  while (low < high) {
    const std::uint64_t middle = low + (high - low + 1) / 2;
    const std::uint64_t read = reads_among(middle, read_share);
    if (read <= reads && middle - read <= writes) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

}  // namespace assay::cluster_storage
