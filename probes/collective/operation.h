// operation: the collectives that are measured, how their bytes are counted, and how large their buffers are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "probes/collective/kinds.h"
#include "probes/core/units.h"

namespace assay::collective {

/// Bytes of a memory, as the share of one rank.
struct Part {
  std::uint64_t offset = 0, bytes = 0;
};

/// Every operation's word, separated by spaces, in the order of the enumerators.
inline constexpr std::string_view kOperations =
    "all_reduce all_gather reduce_scatter all_to_all broadcast scatter send_recv";

/// The operation of this word. Throws std::logic_error for another word: parameters are checked before.
Operation operation_named(std::string_view word);

/// Every element's word, in the order of the enumerators.
inline constexpr std::string_view kElements = "fp32 fp64 fp16 bf16";

/// The element of this word. Throws std::logic_error for another word.
Element element_named(std::string_view word);

/// Whether the buffer is divided among the ranks, so that the size is a multiple of their number.
constexpr bool divides(Operation operation) {
  return operation == Operation::all_gather || operation == Operation::reduce_scatter ||
         operation == Operation::all_to_all || operation == Operation::scatter;
}

/// Bus bandwidth over algorithm bandwidth: by which the figure is independent of the number of ranks, and comparable
/// with the speed of a link when data moves over links once (nccl-tests, doc/PERFORMANCE.md).
constexpr double busbw_factor(Operation operation, int ranks) {
  const double n = ranks;
  if (operation == Operation::all_reduce) return 2 * (n - 1) / n;
  return divides(operation) ? (n - 1) / n : 1;
}
static_assert(busbw_factor(Operation::all_reduce, 8) == 1.75);  // nccl-tests PERFORMANCE.md, as all of these
static_assert(busbw_factor(Operation::all_reduce, 2) == 1);
static_assert(busbw_factor(Operation::all_gather, 8) == 0.875);
static_assert(busbw_factor(Operation::reduce_scatter, 8) == 0.875);
static_assert(busbw_factor(Operation::all_to_all, 4) == 0.75);
static_assert(busbw_factor(Operation::scatter, 4) == 0.75);
static_assert(busbw_factor(Operation::broadcast, 8) == 1);
static_assert(busbw_factor(Operation::send_recv, 8) == 1);

/// Elements of one rank's buffers for one size. `size` is S of algbw = S / t: the whole data of the operation, as
/// nccl-tests counts it.
struct Shape {
  std::size_t chunk =
      0;  ///< elements: the count argument of a library; the share of one rank where the buffer is divided
  std::size_t sent = 0;      ///< elements in the send buffer (on a root where only that sends)
  std::size_t received = 0;  ///< elements in the receive buffer
  std::size_t moved = 0;     ///< B that algbw counts; below `size` when that does not divide
};

/// The shape of `size` bytes on `ranks` ranks. Shares are cut to 16 B, as nccl-tests does, so that they stay aligned; a
/// size of less than one element per share has chunk 0.
constexpr Shape shape_of(Operation operation, std::size_t size, std::size_t element_size, int ranks) {
  const auto n = static_cast<std::size_t>(ranks);
  constexpr std::size_t kAlign = 16;  // the widest load of a GPU thread
  if (!divides(operation)) {
    const std::size_t count = size / element_size;
    return {.chunk = count, .sent = count, .received = count, .moved = count * element_size};
  }
  std::size_t share = size / n;
  if (share > kAlign) share -= share % kAlign;
  const std::size_t chunk = share / element_size;
  return {.chunk = chunk,
          .sent = operation == Operation::all_gather ? chunk : chunk * n,
          .received = operation == Operation::reduce_scatter || operation == Operation::scatter ? chunk : chunk * n,
          .moved = chunk * n * element_size};
}
static_assert(shape_of(Operation::all_reduce, 1024, 4, 8).chunk == 256);
static_assert(shape_of(Operation::all_gather, 1024, 4, 8).sent == 32 &&
              shape_of(Operation::all_gather, 1024, 4, 8).received == 256);
static_assert(shape_of(Operation::reduce_scatter, 1000, 4, 3).moved == 960);  // 333 B a rank, cut to 320
static_assert(shape_of(Operation::all_to_all, 8, 4, 8).chunk == 0);

/// Where iteration `number` puts a buffer of `bytes` in one of `capacity`, in B: the place moves on, so that small
/// sizes are not measured on the same cached lines again and again. Aligned to 512 B.
constexpr std::size_t rotated_offset(std::uint64_t number, std::size_t bytes, std::size_t capacity) {
  constexpr std::size_t kStep = 512;  // alignment of cudaMalloc
  const std::size_t step = (bytes + kStep - 1) / kStep * kStep;
  const std::size_t places = step == 0 ? 1 : capacity / step;
  return places < 2 ? 0 : static_cast<std::size_t>(number % places) * step;
}
static_assert(rotated_offset(0, 8, 1024) == 0 && rotated_offset(1, 8, 1024) == 512 && rotated_offset(2, 8, 1024) == 0);
static_assert(rotated_offset(7, 1024, 1024) == 0);

/// Which sizes can be measured.
struct FittingSizes {
  std::vector<Bytes> kept;
  std::vector<Bytes> too_large;  ///< send and receive buffer together need more than a rank has to give
  std::vector<Bytes> too_small;  ///< less than one element for each rank
};

/// Divides `sizes` for `ranks` ranks, the least of which has `memory` to give for both buffers together.
FittingSizes fit_sizes(const std::vector<Bytes>& sizes, Operation operation, Element element, int ranks, Bytes memory);

/// The sizes left out and why, in B: "too_large=17179869184 too_small=8", or "none".
std::string left_out(const FittingSizes& sizes);

}  // namespace assay::collective
