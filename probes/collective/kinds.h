// kinds: the collectives and the types of their elements. Kernels include this, and their text is compiled without a
// standard library: no more than whole numbers here.
#pragma once

#include <cstddef>
#include <cstdint>

namespace assay::collective {

/// A collective; the word in parameters and documents is the enumerator's. In NCCL `all_to_all`, `scatter` and
/// `send_recv` are grouped ncclSend and ncclRecv, as NCCL itself does it. In `send_recv` every rank sends to the next
/// one and receives from the one before. The root of `broadcast` and `scatter` is rank 0.
enum class Operation { all_reduce, all_gather, reduce_scatter, all_to_all, broadcast, scatter, send_recv };

/// The floating-point types that are moved and summed; the words are those of the other probes.
enum class Element { fp32, fp64, fp16, bf16 };

/// B of one element.
constexpr std::size_t size_of(Element element) {
  return element == Element::fp64 ? 8 : element == Element::fp32 ? 4 : 2;
}

/// The largest n so that every whole number from 0 to n is exact in `element`: 2 to the bits of its significand.
constexpr std::uint32_t exact_limit(Element element) {
  return element == Element::bf16   ? 256
         : element == Element::fp16 ? 2048
                                    : 1 << 24;  // fp64 has more; no sum here needs it
}

/// Whether ranks add up their data.
constexpr bool reduces(Operation operation) {
  return operation == Operation::all_reduce || operation == Operation::reduce_scatter;
}

}  // namespace assay::collective
