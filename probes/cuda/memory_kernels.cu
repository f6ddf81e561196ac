// memory_kernels: each thread of a copy moves one vector of 16 bytes, each block of a sum reads one piece that lies
// together: no thread walks in steps over the whole array, which would keep distant DRAM pages open and costs 5 to 7 %
// (docs/MEASUREMENTS.md). Blocks are many and short, so that a slow multiprocessor takes fewer of them instead of being
// waited for.
#include <cstdint>
#include <stdexcept>

#include <cuda_runtime.h>

#include "probes/cuda/memory_kernels.h"
#include "probes/cuda/payload.h"

namespace assay::cuda {
namespace {

using Word = unsigned long long;  // what atomicAdd takes; the same 64 bits as std::uint64_t

constexpr unsigned kThreads = 256;
constexpr unsigned kWarp = 32;
constexpr std::uint64_t kPiece = 8;  // vectors that a thread of a sum reads: 32 KiB a block, all loads in flight
static_assert(sizeof(double2) == kVectorBytes && sizeof(ulonglong2) == kVectorBytes);

/// The index of this thread among those of all blocks.
__device__ std::uint64_t own_index() { return std::uint64_t{blockIdx.x} * kThreads + threadIdx.x; }

/// Calls use(a[i], b[i]) for the vectors of this block's piece that this thread has, all loads before the first use.
template <class Vector, class Use>
__device__ void over_piece(const Vector* __restrict__ a, const Vector* __restrict__ b, std::uint64_t vectors, Use use) {
  const std::uint64_t first = std::uint64_t{blockIdx.x} * kThreads * kPiece + threadIdx.x;
  if (std::uint64_t{blockIdx.x + 1} * kThreads * kPiece > vectors) {  // the last piece, which may be shorter
    for (std::uint64_t i = first; i < vectors; i += kThreads) use(a[i], b[i]);
    return;
  }
  Vector x[kPiece], y[kPiece];
#pragma unroll
  for (std::uint64_t k = 0; k < kPiece; ++k) {
    x[k] = a[first + k * kThreads];
    y[k] = b[first + k * kThreads];
  }
#pragma unroll
  for (std::uint64_t k = 0; k < kPiece; ++k) use(x[k], y[k]);
}

/// Adds every thread's `mine` to one of the slots: warps first, then the block, then memory.
__device__ void add_to_slots(Word mine, Word* sums, unsigned slots) {
  __shared__ Word of_warp[kThreads / kWarp];
  for (unsigned distance = kWarp / 2; distance > 0; distance /= 2)
    mine += __shfl_down_sync(0xffffffffU, mine, distance);
  if (threadIdx.x % kWarp == 0) of_warp[threadIdx.x / kWarp] = mine;
  __syncthreads();
  if (threadIdx.x != 0) return;
  Word total = 0;
  for (const Word one : of_warp) total += one;
  if (total != 0) atomicAdd(sums + blockIdx.x % slots, total);
}

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

__global__ void __launch_bounds__(kThreads)
    dot_kernel(const double2* __restrict__ a, const double2* __restrict__ b, std::uint64_t vectors, Word* sums) {
  double sum = 0;  // exact: products below 2^20, and 16 of them in one thread
  over_piece(a, b, vectors, [&](double2 p, double2 q) { sum += p.x * q.x + p.y * q.y; });
  add_to_slots(static_cast<Word>(sum), sums, kSumSlots);
}

__global__ void __launch_bounds__(kThreads)
    sum_kernel(const ulonglong2* __restrict__ from, std::uint64_t vectors, Word* sums) {
  Word sum = 0;
  over_piece(from, from, vectors, [&](ulonglong2 x, ulonglong2) { sum += x.x + x.y; });
  add_to_slots(sum, sums, kSumSlots);
}

__global__ void __launch_bounds__(kThreads)
    fill_kernel(ulonglong2* __restrict__ to, std::uint64_t vectors, std::uint64_t seed, std::uint64_t flipped) {
  const std::uint64_t i = own_index();
  if (i < vectors) to[i] = {payload_word(seed, 2 * i) ^ flipped, payload_word(seed, 2 * i + 1) ^ flipped};
}

__global__ void __launch_bounds__(kThreads)
    payload_check_kernel(const ulonglong2* __restrict__ found, std::uint64_t vectors, std::uint64_t seed,
                         std::uint64_t flipped, Word* wrong) {
  const std::uint64_t i = own_index();
  Word bad = 0;
  if (i < vectors) {
    const ulonglong2 x = found[i];
    bad = ((x.x ^ flipped) != payload_word(seed, 2 * i) ? 1U : 0U) +
          ((x.y ^ flipped) != payload_word(seed, 2 * i + 1) ? 1U : 0U);
  }
  add_to_slots(bad, wrong, 1);
}

__global__ void __launch_bounds__(kThreads)
    start_kernel(HbmKernel kernel, HbmArray array, double* target, std::uint64_t elements) {
  const std::uint64_t i = own_index();
  if (i < elements) target[i] = hbm_start_value(kernel, array, i);
}

__global__ void __launch_bounds__(kThreads)
    check_kernel(HbmKernel kernel, HbmArray array, const double* found, std::uint64_t elements, Word* wrong) {
  const std::uint64_t i = own_index();
  // Equality in this sense is false for a NaN, which is then a mismatch.
  add_to_slots(i < elements && !(found[i] == hbm_expected(kernel, array, i)) ? 1U : 0U, wrong, 1);
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
std::uint64_t pieces_of(std::uint64_t vectors) { return (vectors + kPiece - 1) / kPiece; }

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
      return launch_over(pieces_of(vectors), stream, sum_kernel, reinterpret_cast<const ulonglong2*>(a), vectors,
                         words(sums));
    case HbmKernel::write:
      return launch_over(vectors, stream, fill_kernel, reinterpret_cast<ulonglong2*>(a), vectors, std::uint64_t{0},
                         std::uint64_t{0});
    case HbmKernel::copy:
      return launch_over(vectors, stream, copy_kernel, a, c, vectors);
    case HbmKernel::scale:
      return launch_over(vectors, stream, scale_kernel, c, b, vectors);
    case HbmKernel::add:
      return launch_over(vectors, stream, add_kernel, a, b, 1.0, c, vectors);
    case HbmKernel::triad:
      return launch_over(vectors, stream, add_kernel, b, c, kHbmScalar, a, vectors);
    case HbmKernel::dot:
      return launch_over(pieces_of(vectors), stream, dot_kernel, a, b, vectors, words(sums));
  }
}

void enqueue_check(HbmKernel kernel, HbmArray array, const double* found, std::uint64_t elements, std::uint64_t* wrong,
                   const Stream& stream) {
  launch_over(elements, stream, check_kernel, kernel, array, found, elements, words(wrong));
}

void enqueue_fill(std::byte* target, Bytes size, std::uint64_t seed, const Stream& stream, std::uint64_t flipped) {
  launch_over(vectors_in(size), stream, fill_kernel, reinterpret_cast<ulonglong2*>(target), vectors_in(size), seed,
              flipped);
}

void enqueue_sum(const std::byte* source, Bytes size, std::uint64_t* sums, const Stream& stream) {
  launch_over(pieces_of(vectors_in(size)), stream, sum_kernel, reinterpret_cast<const ulonglong2*>(source),
              vectors_in(size), words(sums));
}

void enqueue_payload_check(const std::byte* found, Bytes size, std::uint64_t seed, std::uint64_t* wrong,
                           const Stream& stream, std::uint64_t flipped) {
  launch_over(vectors_in(size), stream, payload_check_kernel, reinterpret_cast<const ulonglong2*>(found),
              vectors_in(size), seed, flipped, words(wrong));
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
