// memory_launches: the functions of memory_kernels.h, for a compiler's or a library's way to launch: the file that
// includes this has launch_over(pieces, stream, kernel, arguments...) and launch_one(stream, kernel, arguments...).
#pragma once

#include "probes/cuda/memory_kernels.cuh"
#include "probes/cuda/memory_kernels.h"

namespace assay::cuda {

using words::Doubles, words::Pair, words::Word;

/// Threads of a sum over `vectors`.
inline std::uint64_t pieces_of(std::uint64_t vectors) { return (vectors + kSumPiece - 1) / kSumPiece; }

inline std::uint64_t vectors_in(Bytes size) {
  if (size.count % kVectorBytes != 0) throw std::invalid_argument("a size is not a multiple of 16 B");
  return size.count / kVectorBytes;
}

inline Word* words_at(std::uint64_t* pointer) { return reinterpret_cast<Word*>(pointer); }

void enqueue_start(HbmKernel kernel, HbmArray array, double* target, std::uint64_t elements, const Stream& stream) {
  launch_over(elements, stream, kernels::assay_start, kernel, array, target, elements);
}

void enqueue_pass(HbmKernel kernel, const HbmPointers& arrays, std::uint64_t* sums, const Stream& stream) {
  const std::uint64_t vectors = vectors_in({arrays.elements * sizeof(double)});
  auto* const a = reinterpret_cast<Doubles*>(arrays.a);
  auto* const b = reinterpret_cast<Doubles*>(arrays.b);
  auto* const c = reinterpret_cast<Doubles*>(arrays.c);
  switch (kernel) {
    case HbmKernel::read:
      return enqueue_sum(reinterpret_cast<const std::byte*>(arrays.a), {vectors * kVectorBytes}, sums, stream);
    case HbmKernel::write:
      return launch_over(vectors, stream, kernels::assay_fill, reinterpret_cast<Pair*>(a), vectors, std::uint64_t{0});
    case HbmKernel::copy:
      return launch_over(vectors, stream, kernels::assay_copy, a, c, vectors);
    case HbmKernel::scale:
      return launch_over(vectors, stream, kernels::assay_scale, c, b, vectors);
    case HbmKernel::add:
      return launch_over(vectors, stream, kernels::assay_add, a, b, 1.0, c, vectors);
    case HbmKernel::triad:
      return launch_over(vectors, stream, kernels::assay_add, b, c, kHbmScalar, a, vectors);
    case HbmKernel::dot:
      return launch_over(pieces_of(vectors), stream, kernels::assay_dot, kernels::FactorsInMemory{a, b}, vectors,
                         words_at(sums));
  }
}

void enqueue_check(HbmKernel kernel, HbmArray array, const double* found, std::uint64_t elements, std::uint64_t* wrong,
                   const Stream& stream) {
  launch_over(elements, stream, kernels::assay_check, kernel, array, found, elements, words_at(wrong));
}

void enqueue_fill(std::byte* target, Bytes size, std::uint64_t seed, const Stream& stream) {
  launch_over(vectors_in(size), stream, kernels::assay_fill, reinterpret_cast<Pair*>(target), vectors_in(size), seed);
}

void enqueue_sum(const std::byte* source, Bytes size, std::uint64_t* sums, const Stream& stream) {
  launch_over(pieces_of(vectors_in(size)), stream, kernels::assay_sum, reinterpret_cast<const Pair*>(source),
              vectors_in(size), words_at(sums));
}

void enqueue_right_sum(Bytes size, std::uint64_t seed, std::uint64_t* sums, const Stream& stream) {
  launch_over(pieces_of(vectors_in(size)), stream, kernels::assay_right_sum, seed, vectors_in(size), words_at(sums));
}

void enqueue_right_dot(std::uint64_t elements, std::uint64_t* sums, const Stream& stream) {
  const std::uint64_t vectors = vectors_in({elements * sizeof(double)});
  launch_over(pieces_of(vectors), stream, kernels::assay_right_dot, vectors, words_at(sums));
}

void enqueue_walk(std::byte* memory, Bytes size, const WalkStep& step, const WalkLog& log, const Stream& stream) {
  launch_over(vectors_in(size), stream, kernels::assay_walk, reinterpret_cast<Pair*>(memory), vectors_in(size), step,
              log);
}

void enqueue_payload_check(const std::byte* found, Bytes size, std::uint64_t seed, std::uint64_t* wrong,
                           const Stream& stream) {
  const WalkStep step{.expected = {.kind = WalkKind::payload, .base = 0, .seed = seed}, .next = {}, .writes = false};
  enqueue_walk(const_cast<std::byte*>(found), size, step, {.wrong = wrong}, stream);  // which writes nothing
}

void enqueue_copy(std::byte* target, const std::byte* source, Bytes size, const Stream& stream) {
  launch_over(vectors_in(size), stream, kernels::assay_copy, reinterpret_cast<const Doubles*>(source),
              reinterpret_cast<Doubles*>(target), vectors_in(size));
}

void enqueue_chase(const std::byte* memory, std::uint64_t* at, std::uint64_t steps, const Stream& stream) {
  launch_one(stream, kernels::assay_chase, reinterpret_cast<const char*>(memory), words_at(at), steps);
}

}  // namespace assay::cuda
