// stream: the four kernels of STREAM, with chosen stores and vectors.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace assay::host {

/// The kernels in the order in which STREAM runs them.
enum class StreamKernel { copy, scale, add, triad };
inline constexpr std::array kStreamKernels = {StreamKernel::copy, StreamKernel::scale, StreamKernel::add,
                                              StreamKernel::triad};

/// How results leave the core: past the caches, or through them, which reads every line before writing it.
enum class Stores { non_temporal, regular };

/// STREAM's scalar is 3, with which the values overflow after 262 rounds. With 0.42 `a` grows by 2 s + s^2 = 1.0164 a
/// round: every round leaves other values behind, so that a lost one shows, and 43,000 rounds fit a double.
inline constexpr double kStreamScalar = 0.42;

/// Bytes that STREAM counts for one pass over arrays of `elements` doubles: two arrays for copy and scale, three for
/// add and triad (McCalpin, STREAM 5.10). Reads for ownership are not counted.
constexpr std::uint64_t stream_bytes(StreamKernel kernel, std::size_t elements) {
  const std::uint64_t arrays = kernel == StreamKernel::copy || kernel == StreamKernel::scale ? 2 : 3;
  return arrays * sizeof(double) * elements;
}
static_assert(stream_bytes(StreamKernel::triad, 10) == 240);

/// The elements of the three arrays that one thread works on; equal lengths, a multiple of 8, aligned to 64 bytes.
struct StreamArrays {
  std::span<double> a, b, c;
};

/// One pass: copy c = a; scale b = s c; add c = a + b; triad a = b + s c. Multiplication and addition round apart.
using StreamPass = void (*)(StreamKernel kernel, const StreamArrays& arrays);

/// An implementation of the kernels.
struct StreamCode {
  std::string_view isa;  ///< of non-temporal stores "avx512f", "avx2" or "sse2"; "compiler" for plain loops
  Stores stores = Stores::regular;
  StreamPass pass = nullptr;
};

/// Non-temporal: the widest implementation this processor has; if it has none the result says `regular`. Regular: plain
/// loops, vectorised for the build's target.
StreamCode stream_code(Stores stores);

/// Reads every element once; its result depends on all of them, so that no load can be left out.
std::uint64_t stream_read(std::span<const std::uint64_t> values);

/// STREAM's starting values: a = 1, b = 2, c = 0.
void stream_fill(const StreamArrays& arrays);

/// How many elements of a, b and c differ from what `rounds` rounds of the four kernels must have made of the starting
/// values, by more than STREAM's relative 1e-13, or are not finite. STREAM averages the error over an array first; here
/// every element is compared, so that one wrong element shows.
std::uint64_t stream_mismatches(const StreamArrays& arrays, std::size_t rounds);

}  // namespace assay::host
