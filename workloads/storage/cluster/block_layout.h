// block_layout: offsets of the transfers of many writers, in files of their own or interleaved in one. Pure.
#pragma once

#include <cstdint>
#include <string>

namespace assay::cluster_storage {

/// Layout of the transfers of all streams in the files of one set.
struct BlockLayout {
  bool shared = false;        ///< one file for all streams; else one each
  std::uint64_t block = 0;    ///< B of one transfer
  std::uint64_t streams = 1;  ///< writers of the set
};

/// Where transfer `index` of `stream` begins in its file: one behind the other in a file of its own; in a shared file
/// in segments that hold one transfer of every stream, as IOR's interleaved pattern (IO500, ior-hard).
constexpr std::uint64_t block_offset(const BlockLayout& layout, std::uint64_t stream, std::uint64_t index) {
  return layout.shared ? (index * layout.streams + stream) * layout.block : index * layout.block;
}
static_assert(block_offset({.shared = true, .block = 47008, .streams = 4}, 3, 2) == std::uint64_t{11} * 47008);
static_assert(block_offset({.shared = false, .block = 47008, .streams = 4}, 3, 2) == std::uint64_t{2} * 47008);

/// The file of `stream` in the set of this number.
std::string block_file(const BlockLayout& layout, std::uint64_t set, std::uint64_t stream);

/// One operation of a stream that reads and writes by turns.
struct MixedOperation {
  bool reads = false;
  std::uint64_t number = 0;  ///< which of the reads, or of the writes
  friend bool operator==(const MixedOperation&, const MixedOperation&) = default;
};

/// Operation `index` where `read_share` of all, 0 to 1, are reads, spread evenly.
MixedOperation mixed_operation(std::uint64_t index, double read_share);

/// How many operations make at most `reads` reads and at most `writes` writes.
std::uint64_t mixed_operations(std::uint64_t reads, std::uint64_t writes, double read_share);

}  // namespace assay::cluster_storage
