// memory_kernels: each thread of a copy moves one vector of 16 bytes, each block of a sum reads one piece that lies
// together: no thread walks in steps over the whole array, which would keep distant DRAM pages open and costs 5 to 7 %
// (docs/MEASUREMENTS.md). Blocks are many and short, so that a slow multiprocessor takes fewer of them instead of being
// waited for.
#include <cstdint>
#include <stdexcept>

#include <cuda_runtime.h>

#include "probes/cuda/fold.h"
#include "probes/cuda/memory_kernels.h"

namespace assay::cuda {
namespace {

using Word = unsigned long long;  // what atomicAdd takes; the same 64 bits as std::uint64_t

constexpr unsigned kThreads = kSumThreads;
constexpr unsigned kWarp = 32;
static_assert(sizeof(double2) == kVectorBytes && sizeof(ulonglong2) == kVectorBytes);

/// The index of this thread among those of all blocks.
__device__ std::uint64_t own_index() { return std::uint64_t{blockIdx.x} * kThreads + threadIdx.x; }

/// Calls use(load(i)) for the vectors of this block's piece that this thread has, all loads before the first use.
template <class Load, class Use>
__device__ void over_piece(std::uint64_t vectors, Load load, Use use) {
  if (std::uint64_t{blockIdx.x + 1} * kThreads * kSumPiece > vectors) {  // the last piece, which may be shorter
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

/// Adds every thread's numbers to one of `slots` words each: warps first, then the block, then memory.
template <unsigned kNumbers>
__device__ void add_to_slots(Word (&mine)[kNumbers], Word* sums, unsigned slots) {
  __shared__ Word of_warp[kNumbers][kThreads / kWarp];
#pragma unroll
  for (unsigned number = 0; number < kNumbers; ++number) {
    for (unsigned distance = kWarp / 2; distance > 0; distance /= 2)
      mine[number] += __shfl_down_sync(0xffffffffU, mine[number], distance);
    if (threadIdx.x % kWarp == 0) of_warp[number][threadIdx.x / kWarp] = mine[number];
  }
  __syncthreads();
  if (threadIdx.x != 0) return;
#pragma unroll
  for (unsigned number = 0; number < kNumbers; ++number) {
    Word total = 0;
    for (const Word one : of_warp[number]) total += one;
    if (total != 0) atomicAdd(sums + number * slots + blockIdx.x % slots, total);
  }
}

/// Where a sum has its words from: memory, or the payload itself.
struct FromMemory {
  const ulonglong2* words;
  __device__ ulonglong2 operator()(std::uint64_t i) const { return __ldg(words + i); }
};
struct FromPayload {
  std::uint64_t seed;
  __device__ ulonglong2 operator()(std::uint64_t i) const {
    return {payload_word(seed, 2 * i), payload_word(seed, 2 * i + 1)};
  }
};

/// The same of the factors of dot.
struct Factors {
  double2 a, b;
};
struct FactorsInMemory {
  const double2 *a, *b;
  __device__ Factors operator()(std::uint64_t i) const { return {__ldg(a + i), __ldg(b + i)}; }
};
struct FactorsAsMade {
  __device__ Factors operator()(std::uint64_t i) const {
    const auto value = [](HbmArray array, std::uint64_t at) { return hbm_start_value(HbmKernel::dot, array, at); };
    return {{value(HbmArray::a, 2 * i), value(HbmArray::a, 2 * i + 1)},
            {value(HbmArray::b, 2 * i), value(HbmArray::b, 2 * i + 1)}};
  }
};

__device__ std::uint64_t bits_of(double number) { return static_cast<std::uint64_t>(__double_as_longlong(number)); }

__global__ void __launch_bounds__(kThreads)
    copy_kernel(const double2* __restrict__ from, double2* __restrict__ to, std::uint64_t vectors) {
  const std::uint64_t i = own_index();
  if (i < vectors) to[i] = from[i];
}

__global__ void __launch_bounds__(kThreads)
    scale_kernel(const double2* __restrict__ c, double2* __restrict__ b, std::uint64_t vectors) {
  const std::uint64_t i = own_index();
  if (i >= vectors) return;
  const double2 x = c[i];
  b[i] = {kHbmScalar * x.x, kHbmScalar * x.y};
}

/// out = x + factor y: add with factor 1, triad with STREAM's scalar. All numbers are whole and below 2^53: fused or
/// not, the result is the same.
__global__ void __launch_bounds__(kThreads)
    add_kernel(const double2* __restrict__ x, const double2* __restrict__ y, double factor, double2* __restrict__ out,
               std::uint64_t vectors) {
  const std::uint64_t i = own_index();
  if (i >= vectors) return;
  const double2 p = x[i], q = y[i];
  out[i] = {p.x + factor * q.x, p.y + factor * q.y};
}

template <class Load>
__global__ void __launch_bounds__(kThreads) dot_kernel(Load load, std::uint64_t vectors, Word* sums) {
  double sum = 0;  // exact: products below 2^20, and 16 of them in one thread
  std::uint64_t fold = 0;
  over_piece(vectors, load, [&](const Factors& x) {
    sum += x.a.x * x.b.x + x.a.y * x.b.y;
    fold = turned(turned(fold, bits_of(x.a.x)), bits_of(x.b.x));
    fold = turned(turned(fold, bits_of(x.a.y)), bits_of(x.b.y));
  });
  Word own[] = {static_cast<Word>(sum), fold_of_thread(fold, own_index())};
  add_to_slots(own, sums, kSumSlots);
}

template <class Load>
__global__ void __launch_bounds__(kThreads) sum_kernel(Load load, std::uint64_t vectors, Word* sums) {
  Word sum = 0;
  std::uint64_t fold = 0;
  over_piece(vectors, load, [&](const ulonglong2& x) {
    sum += x.x + x.y;
    fold = turned(turned(fold, x.x), x.y);
  });
  Word own[] = {sum, fold_of_thread(fold, own_index())};
  add_to_slots(own, sums, kSumSlots);
}

__global__ void __launch_bounds__(kThreads)
    fill_kernel(ulonglong2* __restrict__ to, std::uint64_t vectors, std::uint64_t seed) {
  const std::uint64_t i = own_index();
  if (i < vectors) to[i] = FromPayload{seed}(i);
}

/// Counts a wrong word, and notes it while there is room.
__device__ void note(const WalkLog& log, const WalkStep& step, std::uint64_t index, const Word* word, Word found) {
  const Word place = atomicAdd(reinterpret_cast<Word*>(log.wrong), Word{1});
  if (place >= log.room) return;
  log.errors[place] = {.content = step.content,
                       .offset = step.offset + index * sizeof(Word),
                       .expected = walk_word(step.expected, index),
                       .found = found,
                       .again = __ldcv(word)};
}

__global__ void __launch_bounds__(kThreads)
    walk_kernel(ulonglong2* memory, std::uint64_t vectors, WalkStep step, WalkLog log) {
  if (own_index() >= vectors) return;
  const std::uint64_t i = step.downwards ? vectors - 1 - own_index() : own_index();
  if (step.checks) {
    const ulonglong2 x = memory[i];
    const auto* const words = reinterpret_cast<const Word*>(memory + i);
    if (x.x != walk_word(step.expected, 2 * i)) note(log, step, 2 * i, words, x.x);
    if (x.y != walk_word(step.expected, 2 * i + 1)) note(log, step, 2 * i + 1, words + 1, x.y);
  }
  if (step.writes) memory[i] = {walk_word(step.next, 2 * i), walk_word(step.next, 2 * i + 1)};
}

__global__ void __launch_bounds__(kThreads)
    start_kernel(HbmKernel kernel, HbmArray array, double* target, std::uint64_t elements) {
  const std::uint64_t i = own_index();
  if (i < elements) target[i] = hbm_start_value(kernel, array, i);
}

__global__ void __launch_bounds__(kThreads)
    check_kernel(HbmKernel kernel, HbmArray array, const double* found, std::uint64_t elements, Word* wrong) {
  const std::uint64_t i = own_index();
  // Compared as bits: a zero whose sign was turned equals a zero.
  Word own[] = {i < elements && bits_of(found[i]) != bits_of(hbm_expected(kernel, array, i)) ? Word{1} : Word{0}};
  add_to_slots(own, wrong, 1);
}

__global__ void chase_kernel(const std::byte* memory, Word* at, std::uint64_t steps) {
  Word offset = *at;
  for (std::uint64_t i = 0; i < steps; ++i) offset = __ldcv(reinterpret_cast<const Word*>(memory + offset));
  *at = offset;
}

/// Launches `kernel` with a thread for each of `pieces`; the arguments are those of the kernel.
template <class... Parameters, class... Arguments>
void launch_over(std::uint64_t pieces, const Stream& stream, void (*kernel)(Parameters...), Arguments... arguments) {
  const std::uint64_t blocks = (pieces + kThreads - 1) / kThreads;
  if (blocks > INT32_MAX) throw std::invalid_argument("more elements than one launch takes");
  kernel<<<static_cast<unsigned>(blocks), kThreads, 0, stream.get()>>>(arguments...);
  check(cudaGetLastError(), "launching a kernel");
}

/// Threads of a sum over `vectors`.
std::uint64_t pieces_of(std::uint64_t vectors) { return (vectors + kSumPiece - 1) / kSumPiece; }

std::uint64_t vectors_in(Bytes size) {
  if (size.count % kVectorBytes != 0) throw std::invalid_argument("a size is not a multiple of 16 B");
  return size.count / kVectorBytes;
}

Word* words(std::uint64_t* pointer) { return reinterpret_cast<Word*>(pointer); }

}  // namespace

void enqueue_start(HbmKernel kernel, HbmArray array, double* target, std::uint64_t elements, const Stream& stream) {
  launch_over(elements, stream, start_kernel, kernel, array, target, elements);
}

void enqueue_pass(HbmKernel kernel, const HbmPointers& arrays, std::uint64_t* sums, const Stream& stream) {
  const std::uint64_t vectors = vectors_in({arrays.elements * sizeof(double)});
  auto* const a = reinterpret_cast<double2*>(arrays.a);
  auto* const b = reinterpret_cast<double2*>(arrays.b);
  auto* const c = reinterpret_cast<double2*>(arrays.c);
  switch (kernel) {
    case HbmKernel::read:
      return enqueue_sum(reinterpret_cast<const std::byte*>(arrays.a), {vectors * kVectorBytes}, sums, stream);
    case HbmKernel::write:
      return launch_over(vectors, stream, fill_kernel, reinterpret_cast<ulonglong2*>(a), vectors, std::uint64_t{0});
    case HbmKernel::copy:
      return launch_over(vectors, stream, copy_kernel, a, c, vectors);
    case HbmKernel::scale:
      return launch_over(vectors, stream, scale_kernel, c, b, vectors);
    case HbmKernel::add:
      return launch_over(vectors, stream, add_kernel, a, b, 1.0, c, vectors);
    case HbmKernel::triad:
      return launch_over(vectors, stream, add_kernel, b, c, kHbmScalar, a, vectors);
    case HbmKernel::dot:
      return launch_over(pieces_of(vectors), stream, dot_kernel<FactorsInMemory>, FactorsInMemory{a, b}, vectors,
                         words(sums));
  }
}

void enqueue_check(HbmKernel kernel, HbmArray array, const double* found, std::uint64_t elements, std::uint64_t* wrong,
                   const Stream& stream) {
  launch_over(elements, stream, check_kernel, kernel, array, found, elements, words(wrong));
}

void enqueue_fill(std::byte* target, Bytes size, std::uint64_t seed, const Stream& stream) {
  launch_over(vectors_in(size), stream, fill_kernel, reinterpret_cast<ulonglong2*>(target), vectors_in(size), seed);
}

void enqueue_sum(const std::byte* source, Bytes size, std::uint64_t* sums, const Stream& stream) {
  launch_over(pieces_of(vectors_in(size)), stream, sum_kernel<FromMemory>,
              FromMemory{reinterpret_cast<const ulonglong2*>(source)}, vectors_in(size), words(sums));
}

void enqueue_right_sum(Bytes size, std::uint64_t seed, std::uint64_t* sums, const Stream& stream) {
  launch_over(pieces_of(vectors_in(size)), stream, sum_kernel<FromPayload>, FromPayload{seed}, vectors_in(size),
              words(sums));
}

void enqueue_right_dot(std::uint64_t elements, std::uint64_t* sums, const Stream& stream) {
  const std::uint64_t vectors = vectors_in({elements * sizeof(double)});
  launch_over(pieces_of(vectors), stream, dot_kernel<FactorsAsMade>, FactorsAsMade{}, vectors, words(sums));
}

void enqueue_walk(std::byte* memory, Bytes size, const WalkStep& step, const WalkLog& log, const Stream& stream) {
  launch_over(vectors_in(size), stream, walk_kernel, reinterpret_cast<ulonglong2*>(memory), vectors_in(size), step,
              log);
}

void enqueue_payload_check(const std::byte* found, Bytes size, std::uint64_t seed, std::uint64_t* wrong,
                           const Stream& stream) {
  const WalkStep step{.expected = {.kind = WalkKind::payload, .base = 0, .seed = seed}, .next = {}, .writes = false};
  enqueue_walk(const_cast<std::byte*>(found), size, step, {.wrong = wrong}, stream);  // which writes nothing
}

void enqueue_copy(std::byte* target, const std::byte* source, Bytes size, const Stream& stream) {
  launch_over(vectors_in(size), stream, copy_kernel, reinterpret_cast<const double2*>(source),
              reinterpret_cast<double2*>(target), vectors_in(size));
}

void enqueue_chase(const std::byte* memory, std::uint64_t* at, std::uint64_t steps, const Stream& stream) {
  chase_kernel<<<1, 1, 0, stream.get()>>>(memory, words(at), steps);
  check(cudaGetLastError(), "launching the chase");
}

}  // namespace assay::cuda
