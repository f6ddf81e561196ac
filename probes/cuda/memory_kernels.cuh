// memory_kernels: each thread of a copy moves one vector of 16 bytes, each block of a sum reads one piece that lies
// together: no thread walks in steps over the whole array, which would keep distant DRAM pages open and costs 5 to 7 %
// (docs/MEASUREMENTS.md). Blocks are many and short, so that a slow multiprocessor takes fewer of them instead of being
// waited for.
//
// One text for GPUs of NVIDIA (nvcc), of AMD (libhiprtc on the node) and for the host (tests): kernel_words.h has what
// differs. It includes nothing else of the standard library than integers and std::rotl, which AMD's compiler is given.
#pragma once

#include <cstdint>

#include "probes/cuda/fold.h"
#include "probes/cuda/kernel_words.h"
#include "probes/cuda/stream_values.h"
#include "probes/cuda/walk_words.h"

namespace assay::cuda::kernels {

using words::Doubles, words::Pair, words::Word;

constexpr unsigned kThreads = kSumThreads;
static_assert(sizeof(Doubles) == kVectorBytes && sizeof(Pair) == kVectorBytes);

/// The index of this thread among those of all blocks.
__device__ inline std::uint64_t own_index() {
  return std::uint64_t{words::block_index()} * kThreads + words::thread_index();
}

/// Calls use(load(i)) for the vectors of this block's piece that this thread has, all loads before the first use.
template <class Load, class Use>
__device__ void over_piece(std::uint64_t vectors, Load load, Use use) {
  if (std::uint64_t{words::block_index() + 1} * kThreads * kSumPiece >
      vectors) {  // the last piece, which may be shorter
    for (std::uint64_t k = 0; k < kSumPiece && sum_vector(own_index(), k) < vectors; ++k)
      use(load(sum_vector(own_index(), k)));
    return;
  }
  decltype(load(0)) loaded[kSumPiece];
#pragma unroll
  for (std::uint64_t k = 0; k < kSumPiece; ++k) loaded[k] = load(sum_vector(own_index(), k));
#pragma unroll
  for (std::uint64_t k = 0; k < kSumPiece; ++k) use(loaded[k]);
}

/// Adds every thread's numbers to one of `slots` words each.
template <unsigned kNumbers>
__device__ void add_to_slots(Word (&mine)[kNumbers], Word* sums, unsigned slots) {
  words::add_over_block<kThreads>(mine);
  if (words::thread_index() != 0) return;
#pragma unroll
  for (unsigned number = 0; number < kNumbers; ++number) {
    if (mine[number] != 0)
      (void)words::add_atomically(sums + number * slots + words::block_index() % slots, mine[number]);
  }
}

/// Where a sum has its words from: memory, or the payload itself.
struct FromMemory {
  const Pair* memory;
  __device__ Pair operator()(std::uint64_t i) const { return words::load(memory + i); }
};
struct FromPayload {
  std::uint64_t seed;
  __device__ Pair operator()(std::uint64_t i) const {
    return {payload_word(seed, 2 * i), payload_word(seed, 2 * i + 1)};
  }
};

/// The same of the factors of dot.
struct Factors {
  Doubles a, b;
};
struct FactorsInMemory {
  const Doubles *a, *b;
  __device__ Factors operator()(std::uint64_t i) const { return {words::load(a + i), words::load(b + i)}; }
};
struct FactorsAsMade {
  __device__ Factors operator()(std::uint64_t i) const {
    const auto value = [](HbmArray array, std::uint64_t at) { return hbm_start_value(HbmKernel::dot, array, at); };
    return {{value(HbmArray::a, 2 * i), value(HbmArray::a, 2 * i + 1)},
            {value(HbmArray::b, 2 * i), value(HbmArray::b, 2 * i + 1)}};
  }
};

extern "C" __global__ void __launch_bounds__(kThreads)
    assay_copy(const Doubles* __restrict__ from, Doubles* __restrict__ to, std::uint64_t vectors) {
  const std::uint64_t i = own_index();
  if (i < vectors) to[i] = from[i];
}

extern "C" __global__ void __launch_bounds__(kThreads)
    assay_scale(const Doubles* __restrict__ c, Doubles* __restrict__ b, std::uint64_t vectors) {
  const std::uint64_t i = own_index();
  if (i >= vectors) return;
  const Doubles x = c[i];
  b[i] = {kHbmScalar * x.x, kHbmScalar * x.y};
}

/// out = x + factor y: add with factor 1, triad with STREAM's scalar. All numbers are whole and below 2^53: fused or
/// not, the result is the same.
extern "C" __global__ void __launch_bounds__(kThreads)
    assay_add(const Doubles* __restrict__ x, const Doubles* __restrict__ y, double factor, Doubles* __restrict__ out,
              std::uint64_t vectors) {
  const std::uint64_t i = own_index();
  if (i >= vectors) return;
  const Doubles p = x[i], q = y[i];
  out[i] = {p.x + factor * q.x, p.y + factor * q.y};
}

template <class Load>
__device__ void add_dot(Load load, std::uint64_t vectors, Word* sums) {
  double sum = 0;  // exact: products below 2^20, and 16 of them in one thread
  std::uint64_t fold = 0;
  over_piece(vectors, load, [&](const Factors& x) {
    sum += x.a.x * x.b.x + x.a.y * x.b.y;
    fold = turned(turned(fold, words::bits_of(x.a.x)), words::bits_of(x.b.x));
    fold = turned(turned(fold, words::bits_of(x.a.y)), words::bits_of(x.b.y));
  });
  Word own[] = {static_cast<Word>(sum), fold_of_thread(fold, own_index())};
  add_to_slots(own, sums, kSumSlots);
}

template <class Load>
__device__ void add_sum(Load load, std::uint64_t vectors, Word* sums) {
  Word sum = 0;
  std::uint64_t fold = 0;
  over_piece(vectors, load, [&](const Pair& x) {
    sum += x.x + x.y;
    fold = turned(turned(fold, x.x), x.y);
  });
  Word own[] = {sum, fold_of_thread(fold, own_index())};
  add_to_slots(own, sums, kSumSlots);
}

extern "C" __global__ void __launch_bounds__(kThreads)
    assay_dot(FactorsInMemory factors, std::uint64_t vectors, Word* sums) {
  add_dot(factors, vectors, sums);
}
extern "C" __global__ void __launch_bounds__(kThreads) assay_right_dot(std::uint64_t vectors, Word* sums) {
  add_dot(FactorsAsMade{}, vectors, sums);
}
extern "C" __global__ void __launch_bounds__(kThreads)
    assay_sum(const Pair* source, std::uint64_t vectors, Word* sums) {
  add_sum(FromMemory{source}, vectors, sums);
}
extern "C" __global__ void __launch_bounds__(kThreads)
    assay_right_sum(std::uint64_t seed, std::uint64_t vectors, Word* sums) {
  add_sum(FromPayload{seed}, vectors, sums);
}

extern "C" __global__ void __launch_bounds__(kThreads)
    assay_fill(Pair* __restrict__ to, std::uint64_t vectors, std::uint64_t seed) {
  const std::uint64_t i = own_index();
  if (i < vectors) to[i] = FromPayload{seed}(i);
}

/// Counts a wrong word, and notes it while there is room.
__device__ inline void note(const WalkLog& log, const WalkStep& step, std::uint64_t index, const Word* word,
                            Word found) {
  const Word place = words::add_atomically(reinterpret_cast<Word*>(log.wrong), Word{1});
  if (place >= log.room) return;
  log.errors[place] = {.content = step.content,
                       .offset = step.offset + index * sizeof(Word),
                       .expected = walk_word(step.expected, index),
                       .found = found,
                       .again = words::load_again(word)};
}

extern "C" __global__ void __launch_bounds__(kThreads)
    assay_walk(Pair* memory, std::uint64_t vectors, WalkStep step, WalkLog log) {
  if (own_index() >= vectors) return;
  const std::uint64_t i = step.downwards ? vectors - 1 - own_index() : own_index();
  if (step.checks) {
    const Pair x = memory[i];
    const auto* const place = reinterpret_cast<const Word*>(memory + i);
    if (x.x != walk_word(step.expected, 2 * i)) note(log, step, 2 * i, place, x.x);
    if (x.y != walk_word(step.expected, 2 * i + 1)) note(log, step, 2 * i + 1, place + 1, x.y);
  }
  if (step.writes) memory[i] = {walk_word(step.next, 2 * i), walk_word(step.next, 2 * i + 1)};
}

extern "C" __global__ void __launch_bounds__(kThreads)
    assay_start(HbmKernel kernel, HbmArray array, double* target, std::uint64_t elements) {
  const std::uint64_t i = own_index();
  if (i < elements) target[i] = hbm_start_value(kernel, array, i);
}

extern "C" __global__ void __launch_bounds__(kThreads)
    assay_check(HbmKernel kernel, HbmArray array, const double* found, std::uint64_t elements, Word* wrong) {
  const std::uint64_t i = own_index();
  // Compared as bits: a zero whose sign was turned equals a zero.
  const bool right = i >= elements || words::bits_of(found[i]) == words::bits_of(hbm_expected(kernel, array, i));
  Word own[] = {right ? Word{0} : Word{1}};
  add_to_slots(own, wrong, 1);
}

extern "C" __global__ void assay_chase(const char* memory, Word* at, std::uint64_t steps) {
  Word offset = *at;
  for (std::uint64_t i = 0; i < steps; ++i) offset = words::load_again(reinterpret_cast<const Word*>(memory + offset));
  *at = offset;
}

}  // namespace assay::cuda::kernels
