// expert_kernels: copies of tokens and their gates.
#include "workloads/train_gpu/kernel_parts.cuh"
#include "workloads/train_gpu/step_kernels.h"

namespace assay::train_gpu::kernels {
namespace {

template <class Number>
__global__ void gather_rows_kernel(RowChoice s, const std::int32_t* places, const float* factors, const Number* from,
                                   Number* to) {
  const std::size_t groups = s.width / kGroup<Number>;
  for (std::size_t i = first_index(); i < s.rows * groups; i += stride()) {
    const std::size_t row = i / groups, column = i % groups * kGroup<Number>;
    Group<Number> group = load(from + static_cast<std::size_t>(places[row]) * s.width + column);
    for (std::size_t k = 0; k < kGroup<Number> && factors != nullptr; ++k) group.set(k, factors[row] * group[k]);
    store(to + row * s.width + column, group);
  }
}
template <class Number>
__global__ void sum_rows_kernel(RowChoice s, const std::int32_t* places, const float* factors, const Number* from,
                                Number* to) {
  const std::size_t groups = s.width / kGroup<Number>;
  for (std::size_t i = first_index(); i < s.rows * groups; i += stride()) {
    const std::size_t row = i / groups, column = i % groups * kGroup<Number>;
    Group<Number> result = load(to + row * s.width + column);
    float sums[kGroup<Number>];
    for (std::size_t k = 0; k < kGroup<Number>; ++k) sums[k] = s.onto ? result[k] : 0;
    for (std::size_t copy = 0; copy < s.each; ++copy) {
      const auto place = static_cast<std::size_t>(places[row * s.each + copy]);
      const float factor = factors == nullptr ? 1 : factors[place];
      const Group<Number> one = load(from + place * s.width + column);
      for (std::size_t k = 0; k < kGroup<Number>; ++k) sums[k] += factor * one[k];
    }
    for (std::size_t k = 0; k < kGroup<Number>; ++k) result.set(k, sums[k]);
    store(to + row * s.width + column, result);
  }
}
/// A thread for each token.
template <class Number>
__global__ void gates_kernel(std::size_t rows, std::size_t each, const std::int32_t* places,
                             const std::int32_t* numbers, const Number* logits, float* to, bool exact) {
  for (std::size_t row = first_index(); row < rows; row += stride()) {
    float sum = 0;
    for (std::size_t k = 0; k < each; ++k) {
      const std::int32_t copy = places[row * each + k];
      const float one = train::widened(logits[numbers[copy]]);
      to[copy] = exact ? one : expf(one);
      sum += to[copy];
    }
    for (std::size_t k = 0; k < each && !exact; ++k) to[places[row * each + k]] /= sum;
  }
}
/// A block for each token, which sums the parts of every copy along the gradient twice: the sum over all copies is
/// first.
template <class Number>
__global__ void gates_back_kernel(RowChoice s, const std::int32_t* places, const std::int32_t* numbers,
                                  GatePlaces<Number> at, bool exact) {
  const auto along = [&](std::size_t row, std::size_t copy) {
    const Number* const above = at.above + row * s.width;
    float sum = 0;
    for_numbers(at.returned + copy * s.width, s.width,
                [&](std::size_t i, float one) { sum += one * train::widened(above[i]); });
    return over_block(sum, Sum());
  };
  for (std::size_t row = blockIdx.x; row < s.rows; row += gridDim.x) {
    const std::int32_t* const copies = places + row * s.each;
    float all = 0;
    for (std::size_t k = 0; k < s.each && !exact; ++k)
      all += at.gates[copies[k]] * along(row, static_cast<std::size_t>(copies[k]));
    for (std::size_t k = 0; k < s.each; ++k) {
      const float own = along(row, static_cast<std::size_t>(copies[k]));
      if (threadIdx.x == 0)
        at.logits[numbers[copies[k]]] = train::narrowed<Number>(exact ? own : at.gates[copies[k]] * (own - all));
    }
  }
}

}  // namespace

template <class Number>
void ExpertKernels<Number>::gather_rows(const RowChoice& choice, const std::int32_t* places, const float* factors,
                                        const Number* from, Number* to, const cuda::Stream& stream) {
  if (choice.rows == 0) return;
  const std::size_t groups = choice.rows * (choice.width / kGroup<Number>);
  gather_rows_kernel<<<blocks_for(groups), kThreads, 0, stream.get()>>>(choice, places, factors, from, to);
  launched("copies of tokens");
}
template <class Number>
void ExpertKernels<Number>::sum_rows(const RowChoice& choice, const std::int32_t* places, const float* factors,
                                     const Number* from, Number* to, const cuda::Stream& stream) {
  const std::size_t groups = choice.rows * (choice.width / kGroup<Number>);
  sum_rows_kernel<<<blocks_for(groups), kThreads, 0, stream.get()>>>(choice, places, factors, from, to);
  launched("sums of copies");
}
template <class Number>
void ExpertKernels<Number>::gates(std::size_t rows, std::size_t each, const std::int32_t* places,
                                  const std::int32_t* numbers, const Number* logits, float* to, bool exact,
                                  const cuda::Stream& stream) {
  gates_kernel<<<blocks_for(rows), kThreads, 0, stream.get()>>>(rows, each, places, numbers, logits, to, exact);
  launched("gates of experts");
}
template <class Number>
void ExpertKernels<Number>::gates_back(const RowChoice& choice, const std::int32_t* places, const std::int32_t* numbers,
                                       const GatePlaces<Number>& at, bool exact, const cuda::Stream& stream) {
  gates_back_kernel<<<rows_for(choice.rows), kThreads, 0, stream.get()>>>(choice, places, numbers, at, exact);
  launched("the gradient of gates");
}

template struct ExpertKernels<float>;
template struct ExpertKernels<train::Bf16>;

}  // namespace assay::train_gpu::kernels
