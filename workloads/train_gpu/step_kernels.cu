// step_kernels: one thread for an element, one block for a row that is summed. No atomics: sums have one order.
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include "workloads/train_gpu/step_kernels.h"

namespace assay::train_gpu::kernels {
namespace {

constexpr unsigned kThreads = 256;
constexpr unsigned kMostBlocks = 65535;
constexpr float kEpsilon = 1e-5F, kFirstKept = 0.9F, kSecondKept = 0.95F,
                kRate = 1e-6F;  // those of step_math

unsigned blocks_for(std::size_t count) {
  const std::size_t wanted = (count + kThreads - 1) / kThreads;
  return wanted < 1 ? 1 : wanted < kMostBlocks ? static_cast<unsigned>(wanted) : kMostBlocks;
}
void launched(const char* what) { cuda::check(cudaGetLastError(), what); }

__device__ std::size_t first_index() { return std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; }
__device__ std::size_t stride() { return std::size_t{gridDim.x} * blockDim.x; }

/// The residue from -3 to 3 of a whole number.
__device__ float residue(float value) {
  float rest = value - rintf(value * (1.0F / train::kModulus)) * train::kModulus;
  rest -= rest > 3 ? train::kModulus : 0;
  rest += rest < -3 ? train::kModulus : 0;
  return rest;
}

/// Sum, or maximum, over a block of threads, the same in every thread, in one order.
template <class Join>
__device__ float over_block(float own, Join join) {
  __shared__ float parts[kThreads];
  parts[threadIdx.x] = own;
  __syncthreads();
  for (unsigned half = kThreads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) parts[threadIdx.x] = join(parts[threadIdx.x], parts[threadIdx.x + half]);
    __syncthreads();
  }
  const float all = parts[0];
  __syncthreads();
  return all;
}
struct Sum {
  __device__ float operator()(float a, float b) const { return a + b; }
};
struct Most {
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};

/// Eight numbers of a row for each thread.
__global__ void pack_kernel(FactorShape s, std::int64_t groups, const float* from, uint4* to) {
  constexpr int kGroup = 8;
  const std::size_t all = static_cast<std::size_t>(s.batch * s.rows * groups);
  for (std::size_t i = first_index(); i < all; i += stride()) {
    const std::int64_t at = static_cast<std::int64_t>(i), row = at / groups, first = at % groups * kGroup;
    const float* const line = from + row / s.rows * s.stride + row % s.rows * s.leading + first;
    __align__(16) float numbers[kGroup] = {};
    const bool whole = first + kGroup <= s.columns && reinterpret_cast<std::uintptr_t>(line) % sizeof(float4) == 0;
    if (whole) {
      *reinterpret_cast<float4*>(numbers) = *reinterpret_cast<const float4*>(line);
      *reinterpret_cast<float4*>(numbers + kGroup / 2) = *reinterpret_cast<const float4*>(line + kGroup / 2);
    } else {
      for (int k = 0; k < kGroup && first + k < s.columns; ++k) numbers[k] = line[k];
    }
    __align__(16) __nv_bfloat162 rounded[kGroup / 2];
    for (int k = 0; k < kGroup / 2; ++k) rounded[k] = __floats2bfloat162_rn(numbers[2 * k], numbers[2 * k + 1]);
    to[i] = *reinterpret_cast<const uint4*>(rounded);
  }
}

__global__ void fold_kernel(float* values, std::size_t count) {
  for (std::size_t i = first_index(); i < count; i += stride()) values[i] = residue(values[i]);
}
__global__ void add_kernel(std::size_t count, const float* a, const float* b, float* out, bool exact) {
  for (std::size_t i = first_index(); i < count; i += stride()) out[i] = exact ? residue(a[i] + b[i]) : a[i] + b[i];
}

__global__ void norm_kernel(train::NormShape s, const float* x, const float* gain, float* out, float* inverse) {
  for (std::size_t row = blockIdx.x; row < s.rows; row += gridDim.x) {
    const float* const from = x + row * s.columns;
    float* const to = out + row * s.columns;
    float scale = 1;
    if (!s.exact) {
      float squares = 0;
      for (std::size_t i = threadIdx.x; i < s.columns; i += kThreads) squares += from[i] * from[i];
      scale = rsqrtf(over_block(squares, Sum()) / static_cast<float>(s.columns) + kEpsilon);
      if (threadIdx.x == 0) inverse[row] = scale;
    }
    for (std::size_t i = threadIdx.x; i < s.columns; i += kThreads)
      to[i] = s.exact ? residue(from[i] * gain[i]) : from[i] * scale * gain[i];
  }
}

/// A column for each thread, row after row.
__global__ void gain_kernel(train::NormShape s, const float* x, const float* inverse, const float* above,
                            float* gradient) {
  for (std::size_t i = first_index(); i < s.columns; i += stride()) {
    float sum = gradient[i];
    for (std::size_t row = 0; row < s.rows; ++row) {
      const float one = above[row * s.columns + i] * x[row * s.columns + i];
      sum = s.exact ? residue(sum + one) : sum + one * inverse[row];
    }
    gradient[i] = sum;
  }
}
__global__ void norm_back_kernel(train::NormShape s, const float* x, const float* gain, const float* inverse,
                                 const float* above, float* gradient) {
  for (std::size_t row = blockIdx.x; row < s.rows; row += gridDim.x) {
    const std::size_t begin = row * s.columns;
    float along = 0;
    if (!s.exact) {
      for (std::size_t i = threadIdx.x; i < s.columns; i += kThreads)
        along += above[begin + i] * gain[i] * x[begin + i];
      along = over_block(along, Sum()) * inverse[row] * inverse[row] / static_cast<float>(s.columns);
    }
    for (std::size_t i = threadIdx.x; i < s.columns; i += kThreads) {
      float& to = gradient[begin + i];
      const float through = above[begin + i] * gain[i];
      to = s.exact ? residue(to + through) : to + inverse[row] * (through - x[begin + i] * along);
    }
  }
}

__global__ void activate_kernel(std::size_t rows, std::size_t width, const float* both, float* out, bool exact) {
  for (std::size_t i = first_index(); i < rows * width; i += stride()) {
    const std::size_t begin = i / width * 2 * width + i % width;
    const float gate = both[begin], up = both[begin + width];
    out[i] = exact ? residue(gate * up) : gate / (1 + expf(-gate)) * up;
  }
}
__global__ void activate_back_kernel(std::size_t rows, std::size_t width, const float* both, const float* above,
                                     float* gradient, bool exact) {
  for (std::size_t i = first_index(); i < rows * width; i += stride()) {
    const std::size_t begin = i / width * 2 * width + i % width;
    const float gate = both[begin], up = both[begin + width], from = above[i];
    if (exact) {
      gradient[begin] = residue(from * up);
      gradient[begin + width] = residue(from * gate);
      continue;
    }
    const float sigmoid = 1 / (1 + expf(-gate)), silu = gate * sigmoid;
    gradient[begin] = from * up * (sigmoid + silu * (1 - sigmoid));
    gradient[begin + width] = from * silu;
  }
}

/// A block for each row of each head.
__global__ void softmax_kernel(ScoreBatch s, float* scores, float scale) {
  const std::size_t row = blockIdx.x,
                    past = s.rows.first + row + 1;  // a token sees itself and those before
  float* const line = scores + blockIdx.y * s.stride + row * s.rows.stride;
  for (std::size_t i = past + threadIdx.x; i < s.rows.columns; i += kThreads) line[i] = 0;
  if (s.rows.exact) {
    for (std::size_t i = threadIdx.x; i < past; i += kThreads) line[i] = residue(line[i]);
    return;
  }
  float most = -INFINITY;
  for (std::size_t i = threadIdx.x; i < past; i += kThreads) most = fmaxf(most, line[i]);
  most = over_block(most, Most());
  float sum = 0;
  for (std::size_t i = threadIdx.x; i < past; i += kThreads) sum += line[i] = expf((line[i] - most) * scale);
  sum = over_block(sum, Sum());
  for (std::size_t i = threadIdx.x; i < past; i += kThreads) line[i] /= sum;
}
__global__ void softmax_back_kernel(ScoreBatch s, const float* kept, float* above, std::size_t above_stride,
                                    float scale) {
  const std::size_t row = blockIdx.x, past = s.rows.first + row + 1;
  const float* const from = kept + blockIdx.y * s.stride + row * s.rows.stride;
  float* const line = above + blockIdx.y * above_stride + row * s.rows.stride;
  for (std::size_t i = past + threadIdx.x; i < s.rows.columns; i += kThreads) line[i] = 0;
  if (s.rows.exact) {
    for (std::size_t i = threadIdx.x; i < past; i += kThreads) line[i] = residue(line[i]);
    return;
  }
  float along = 0;
  for (std::size_t i = threadIdx.x; i < past; i += kThreads) along += line[i] * from[i];
  along = over_block(along, Sum());
  for (std::size_t i = threadIdx.x; i < past; i += kThreads) line[i] = from[i] * (line[i] - along) * scale;
}

__global__ void row_sums_kernel(std::size_t rows, std::size_t columns, const float* logits, float* sums, bool exact) {
  for (std::size_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const float* const line = logits + row * columns;
    float sum = 0;
    for (std::size_t i = threadIdx.x; i < columns; i += kThreads) sum += exact ? line[i] : expf(line[i]);
    sum = over_block(sum, Sum());
    if (threadIdx.x == 0) sums[row] = exact ? residue(sum) : sum;
  }
}
__global__ void loss_back_kernel(LossShape s, const float* sums, const std::int32_t* targets, float* logits) {
  for (std::size_t i = first_index(); i < s.rows * s.columns; i += stride()) {
    const std::size_t row = i / s.columns;
    const bool target = static_cast<std::int64_t>(i % s.columns) + s.first == targets[row];
    const float one = s.exact ? logits[i] : expf(logits[i]) * (s.share / sums[row]);
    const float less = target ? (s.exact ? kExactTarget : s.share) : 0;
    logits[i] = s.exact ? residue(one - less) : one - less;
  }
}

__global__ void embed_kernel(std::size_t rows, std::size_t width, std::int64_t first, std::size_t here,
                             const std::int32_t* tokens, const float* table, float* out) {
  for (std::size_t i = first_index(); i < rows * width; i += stride()) {
    const std::int64_t row = tokens[i / width] - first;
    const bool own = row >= 0 && row < static_cast<std::int64_t>(here);
    out[i] = own ? table[static_cast<std::size_t>(row) * width + i % width] : 0;
  }
}
/// A column for each thread, token after token: two tokens may have one row.
__global__ void embed_back_kernel(std::size_t rows, std::size_t width, std::int64_t first, std::size_t here,
                                  const std::int32_t* tokens, const float* above, float* gradients) {
  for (std::size_t column = first_index(); column < width; column += stride()) {
    for (std::size_t i = 0; i < rows; ++i) {
      const std::int64_t row = tokens[i] - first;
      if (row < 0 || row >= static_cast<std::int64_t>(here)) continue;
      gradients[static_cast<std::size_t>(row) * width + column] += above[i * width + column];
    }
  }
}

__global__ void adam_kernel(std::size_t count, train::AdamState s, bool exact) {
  for (std::size_t i = first_index(); i < count; i += stride()) {
    const float gradient = s.gradients[i];
    if (exact) {
      s.weights[i] = residue(s.weights[i] - 2 * residue(gradient));
      continue;
    }
    const float first = kFirstKept * s.first[i] + (1 - kFirstKept) * gradient;
    const float second = kSecondKept * s.second[i] + (1 - kSecondKept) * gradient * gradient;
    s.first[i] = first;
    s.second[i] = second;
    s.weights[i] -= kRate * first / (sqrtf(second) + 1e-8F);
  }
}

__global__ void gather_rows_kernel(RowChoice s, const std::int32_t* places, const float* factors, const float* from,
                                   float* to) {
  for (std::size_t i = first_index(); i < s.rows * s.width; i += stride()) {
    const std::size_t row = i / s.width;
    const float one = from[static_cast<std::size_t>(places[row]) * s.width + i % s.width];
    to[i] = factors == nullptr ? one : factors[row] * one;
  }
}
__global__ void sum_rows_kernel(RowChoice s, const std::int32_t* places, const float* factors, const float* from,
                                float* to) {
  for (std::size_t i = first_index(); i < s.rows * s.width; i += stride()) {
    const std::size_t row = i / s.width;
    float sum = s.onto ? to[i] : 0;
    for (std::size_t k = 0; k < s.each; ++k) {
      const auto place = static_cast<std::size_t>(places[row * s.each + k]);
      const float one = from[place * s.width + i % s.width];
      sum += factors == nullptr ? one : factors[place] * one;
    }
    to[i] = sum;
  }
}
/// A thread for each token.
__global__ void gates_kernel(std::size_t rows, std::size_t each, const std::int32_t* places,
                             const std::int32_t* numbers, const float* logits, float* to, bool exact) {
  for (std::size_t row = first_index(); row < rows; row += stride()) {
    float sum = 0;
    for (std::size_t k = 0; k < each; ++k) {
      const std::int32_t copy = places[row * each + k];
      const float one = logits[numbers[copy]];
      to[copy] = exact ? one : expf(one);
      sum += to[copy];
    }
    for (std::size_t k = 0; k < each && !exact; ++k) to[places[row * each + k]] /= sum;
  }
}
/// A block for each token, which sums the parts of every copy along the gradient twice: the sum over all copies is
/// first.
__global__ void gates_back_kernel(RowChoice s, const std::int32_t* places, const std::int32_t* numbers, GatePlaces at,
                                  bool exact) {
  const auto along = [&](std::size_t row, std::size_t copy) {
    float sum = 0;
    for (std::size_t i = threadIdx.x; i < s.width; i += kThreads)
      sum += at.returned[copy * s.width + i] * at.above[row * s.width + i];
    return over_block(sum, Sum());
  };
  for (std::size_t row = blockIdx.x; row < s.rows; row += gridDim.x) {
    const std::int32_t* const copies = places + row * s.each;
    float all = 0;
    for (std::size_t k = 0; k < s.each && !exact; ++k)
      all += at.gates[copies[k]] * along(row, static_cast<std::size_t>(copies[k]));
    for (std::size_t k = 0; k < s.each; ++k) {
      const float own = along(row, static_cast<std::size_t>(copies[k]));
      if (threadIdx.x == 0) at.logits[numbers[copies[k]]] = exact ? own : at.gates[copies[k]] * (own - all);
    }
  }
}

unsigned rows_for(std::size_t rows) { return rows < kMostBlocks ? static_cast<unsigned>(rows) : kMostBlocks; }
dim3 blocks_of(const ScoreBatch& batch) {
  return {static_cast<unsigned>(batch.rows.rows), static_cast<unsigned>(batch.heads), 1};
}

}  // namespace

void pack(const FactorShape& from_shape, const float* from, void* to, const cuda::Stream& stream) {
  const std::int64_t groups = packed(from_shape).leading / 8;
  const auto threads = static_cast<std::size_t>(from_shape.batch * from_shape.rows * groups);
  pack_kernel<<<blocks_for(threads), kThreads, 0, stream.get()>>>(from_shape, groups, from, static_cast<uint4*>(to));
  launched("rounding factors to BF16");
}
void fold(float* values, std::size_t count, const cuda::Stream& stream) {
  fold_kernel<<<blocks_for(count), kThreads, 0, stream.get()>>>(values, count);
  launched("folding");
}
void add(std::size_t count, const float* a, const float* b, float* out, bool exact, const cuda::Stream& stream) {
  add_kernel<<<blocks_for(count), kThreads, 0, stream.get()>>>(count, a, b, out, exact);
  launched("adding");
}
void norm(const train::NormShape& shape, const float* x, const float* gain, float* out, float* inverse,
          const cuda::Stream& stream) {
  norm_kernel<<<rows_for(shape.rows), kThreads, 0, stream.get()>>>(shape, x, gain, out, inverse);
  launched("a norm");
}
void norm_back(const train::NormShape& shape, const float* x, const float* gain, const float* inverse,
               const float* above, float* gradient, float* gain_gradient, const cuda::Stream& stream) {
  gain_kernel<<<blocks_for(shape.columns), kThreads, 0, stream.get()>>>(shape, x, inverse, above, gain_gradient);
  norm_back_kernel<<<rows_for(shape.rows), kThreads, 0, stream.get()>>>(shape, x, gain, inverse, above, gradient);
  launched("the gradient of a norm");
}
void activate(std::size_t rows, std::size_t width, const float* both, float* out, bool exact,
              const cuda::Stream& stream) {
  activate_kernel<<<blocks_for(rows * width), kThreads, 0, stream.get()>>>(rows, width, both, out, exact);
  launched("an activation");
}
void activate_back(std::size_t rows, std::size_t width, const float* both, const float* above, float* gradient,
                   bool exact, const cuda::Stream& stream) {
  activate_back_kernel<<<blocks_for(rows * width), kThreads, 0, stream.get()>>>(rows, width, both, above, gradient,
                                                                                exact);
  launched("the gradient of an activation");
}
void softmax(const ScoreBatch& batch, float* scores, float scale, const cuda::Stream& stream) {
  softmax_kernel<<<blocks_of(batch), kThreads, 0, stream.get()>>>(batch, scores, scale);
  launched("a softmax");
}
void softmax_back(const ScoreBatch& batch, const float* kept, float* above, std::size_t above_stride, float scale,
                  const cuda::Stream& stream) {
  softmax_back_kernel<<<blocks_of(batch), kThreads, 0, stream.get()>>>(batch, kept, above, above_stride, scale);
  launched("the gradient of a softmax");
}
void row_sums(std::size_t rows, std::size_t columns, const float* logits, float* sums, bool exact,
              const cuda::Stream& stream) {
  row_sums_kernel<<<rows_for(rows), kThreads, 0, stream.get()>>>(rows, columns, logits, sums, exact);
  launched("sums of rows");
}
void loss_back(const LossShape& shape, const float* sums, const std::int32_t* targets, float* logits,
               const cuda::Stream& stream) {
  loss_back_kernel<<<blocks_for(shape.rows * shape.columns), kThreads, 0, stream.get()>>>(shape, sums, targets, logits);
  launched("the gradient of the loss");
}
void embed(std::size_t rows, std::size_t width, std::int64_t first, std::size_t here, const std::int32_t* tokens,
           const float* table, float* out, const cuda::Stream& stream) {
  embed_kernel<<<blocks_for(rows * width), kThreads, 0, stream.get()>>>(rows, width, first, here, tokens, table, out);
  launched("the embedding");
}
void embed_back(std::size_t rows, std::size_t width, std::int64_t first, std::size_t here, const std::int32_t* tokens,
                const float* above, float* gradients, const cuda::Stream& stream) {
  embed_back_kernel<<<blocks_for(width), kThreads, 0, stream.get()>>>(rows, width, first, here, tokens, above,
                                                                      gradients);
  launched("the gradient of the embedding");
}
void adam(std::size_t count, const train::AdamState& state, bool exact, const cuda::Stream& stream) {
  if (count == 0) return;
  adam_kernel<<<blocks_for(count), kThreads, 0, stream.get()>>>(count, state, exact);
  launched("the update");
}

void gather_rows(const RowChoice& choice, const std::int32_t* places, const float* factors, const float* from,
                 float* to, const cuda::Stream& stream) {
  if (choice.rows == 0) return;
  gather_rows_kernel<<<blocks_for(choice.rows * choice.width), kThreads, 0, stream.get()>>>(choice, places, factors,
                                                                                            from, to);
  launched("copies of tokens");
}
void sum_rows(const RowChoice& choice, const std::int32_t* places, const float* factors, const float* from, float* to,
              const cuda::Stream& stream) {
  sum_rows_kernel<<<blocks_for(choice.rows * choice.width), kThreads, 0, stream.get()>>>(choice, places, factors, from,
                                                                                         to);
  launched("sums of copies");
}
void gates(std::size_t rows, std::size_t each, const std::int32_t* places, const std::int32_t* numbers,
           const float* logits, float* to, bool exact, const cuda::Stream& stream) {
  gates_kernel<<<blocks_for(rows), kThreads, 0, stream.get()>>>(rows, each, places, numbers, logits, to, exact);
  launched("gates of experts");
}
void gates_back(const RowChoice& choice, const std::int32_t* places, const std::int32_t* numbers, const GatePlaces& at,
                bool exact, const cuda::Stream& stream) {
  gates_back_kernel<<<rows_for(choice.rows), kThreads, 0, stream.get()>>>(choice, places, numbers, at, exact);
  launched("the gradient of gates");
}

}  // namespace assay::train_gpu::kernels
