// step_kernels: one thread for 16 B of numbers, one block for a row that is summed. No atomics: sums have one order.
#include "workloads/train_gpu/step_kernels.h"

#include "workloads/train_gpu/kernel_parts.cuh"

namespace assay::train_gpu::kernels {
namespace {

using train::residue;

template <class Number>
__global__ void add_kernel(std::size_t groups, const Number* a, const Number* b, Number* out, bool exact) {
  for (std::size_t i = first_index(); i < groups; i += stride()) {
    Group<Number> sum = load(a + i * kGroup<Number>);
    const Group<Number> more = load(b + i * kGroup<Number>);
    for (std::size_t k = 0; k < kGroup<Number>; ++k) sum.set(k, exact ? residue(sum[k] + more[k]) : sum[k] + more[k]);
    store(out + i * kGroup<Number>, sum);
  }
}

template <class Number>
__global__ void norm_kernel(train::NormShape s, const Number* x, const Number* gain, Number* out, float* inverse) {
  for (std::size_t row = blockIdx.x; row < s.rows; row += gridDim.x) {
    const Number* const from = x + row * s.columns;
    Number* const to = out + row * s.columns;
    float scale = 1;
    if (!s.exact) {
      float squares = 0;
      for_numbers(from, s.columns, [&](std::size_t, float one) { squares += one * one; });
      scale = rsqrtf(over_block(squares, Sum()) / static_cast<float>(s.columns) + kEpsilon);
      if (threadIdx.x == 0) inverse[row] = scale;
    }
    for_groups<Number>(s.columns, [&](std::size_t i) {
      Group<Number> group = load(from + i);
      const Group<Number> gains = load(gain + i);
      for (std::size_t k = 0; k < kGroup<Number>; ++k)
        group.set(k, s.exact ? residue(group[k] * gains[k]) : group[k] * scale * gains[k]);
      store(to + i, group);
    });
  }
}

/// A column for each thread, a group of rows for each row of blocks; then the groups, in order.
template <class Number>
__global__ void gain_parts_kernel(train::NormShape s, const Number* x, const float* inverse, const Number* above,
                                  float* parts) {
  const std::size_t column = first_index();
  if (column >= s.columns) return;
  for (std::size_t group = blockIdx.y; group < train::gain_groups(s.rows); group += gridDim.y)
    parts[group * s.columns + column] = train::gain_part(s.rows, s.columns, x, inverse, above, group, column, s.exact);
}
__global__ void gain_kernel(train::NormShape s, const float* parts, float* gradient) {
  const std::size_t column = first_index();
  if (column >= s.columns) return;
  float sum = gradient[column];
  for (std::size_t group = 0; group < train::gain_groups(s.rows); ++group) {
    sum += parts[group * s.columns + column];
    if (s.exact) sum = residue(sum);
  }
  gradient[column] = sum;
}
template <class Number>
__global__ void norm_back_kernel(train::NormShape s, const Number* x, const Number* gain, const float* inverse,
                                 const Number* above, Number* gradient) {
  for (std::size_t row = blockIdx.x; row < s.rows; row += gridDim.x) {
    const std::size_t begin = row * s.columns;
    const Number* const from = x + begin;
    float along = 0;
    if (!s.exact) {
      for_groups<Number>(s.columns, [&](std::size_t i) {
        const Group<Number> over = load(above + begin + i), gains = load(gain + i), numbers = load(from + i);
        for (std::size_t k = 0; k < kGroup<Number>; ++k) along += over[k] * gains[k] * numbers[k];
      });
      along = over_block(along, Sum()) * inverse[row] * inverse[row] / static_cast<float>(s.columns);
    }
    for_groups<Number>(s.columns, [&](std::size_t i) {
      const Group<Number> over = load(above + begin + i), gains = load(gain + i), numbers = load(from + i);
      Group<Number> to = load(gradient + begin + i);
      for (std::size_t k = 0; k < kGroup<Number>; ++k) {
        const float through = over[k] * gains[k];
        to.set(k, s.exact ? residue(to[k] + through) : to[k] + inverse[row] * (through - numbers[k] * along));
      }
      store(gradient + begin + i, to);
    });
  }
}

template <class Number>
__global__ void activate_kernel(std::size_t rows, std::size_t width, const Number* both, Number* out, bool exact) {
  const std::size_t groups = width / kGroup<Number>;
  for (std::size_t i = first_index(); i < rows * groups; i += stride()) {
    const Number* const from = both + i / groups * 2 * width + i % groups * kGroup<Number>;
    Group<Number> gates = load(from);
    const Group<Number> ups = load(from + width);
    for (std::size_t k = 0; k < kGroup<Number>; ++k) {
      const float gate = gates[k], up = ups[k];
      gates.set(k, exact ? residue(gate * up) : gate / (1 + expf(-gate)) * up);
    }
    store(out + i * kGroup<Number>, gates);
  }
}
template <class Number>
__global__ void activate_back_kernel(std::size_t rows, std::size_t width, const Number* both, const Number* above,
                                     Number* gradient, bool exact) {
  const std::size_t groups = width / kGroup<Number>;
  for (std::size_t i = first_index(); i < rows * groups; i += stride()) {
    const std::size_t begin = i / groups * 2 * width + i % groups * kGroup<Number>;
    Group<Number> gates = load(both + begin), ups = load(both + begin + width);
    const Group<Number> over = load(above + i * kGroup<Number>);
    for (std::size_t k = 0; k < kGroup<Number>; ++k) {
      const float gate = gates[k], up = ups[k], from = over[k];
      if (exact) {
        gates.set(k, residue(from * up));
        ups.set(k, residue(from * gate));
        continue;
      }
      const float sigmoid = 1 / (1 + expf(-gate)), silu = gate * sigmoid;
      gates.set(k, from * up * (sigmoid + silu * (1 - sigmoid)));
      ups.set(k, from * silu);
    }
    store(gradient + begin, gates);
    store(gradient + begin + width, ups);
  }
}

/// A block for each row of each head.
template <class Number>
__global__ void softmax_kernel(ScoreBatch s, Number* scores, float scale) {
  const std::size_t row = blockIdx.x,
                    past = s.rows.first + row + 1;  // a token sees itself and those before
  Number* const line = scores + blockIdx.y * s.stride + row * s.rows.stride;
  if (s.rows.exact) {
    change_numbers(line, s.rows.columns, [&](std::size_t i, float one) { return i < past ? residue(one) : 0; });
    return;
  }
  float most = -INFINITY, sum = 0;
  for_numbers(line, s.rows.columns, [&](std::size_t i, float one) { most = i < past ? fmaxf(most, one) : most; });
  most = over_block(most, Most());
  for_numbers(line, s.rows.columns,
              [&](std::size_t i, float one) { sum += i < past ? expf((one - most) * scale) : 0; });
  sum = over_block(sum, Sum());
  change_numbers(line, s.rows.columns,
                 [&](std::size_t i, float one) { return i < past ? expf((one - most) * scale) / sum : 0; });
}
template <class Number>
__global__ void softmax_back_kernel(ScoreBatch s, const Number* kept, Number* above, std::size_t above_stride,
                                    float scale) {
  const std::size_t row = blockIdx.x, past = s.rows.first + row + 1;
  const Number* const from = kept + blockIdx.y * s.stride + row * s.rows.stride;
  Number* const line = above + blockIdx.y * above_stride + row * s.rows.stride;
  if (s.rows.exact) {
    change_numbers(line, s.rows.columns, [&](std::size_t i, float one) { return i < past ? residue(one) : 0; });
    return;
  }
  float along = 0;
  for_groups<Number>(s.rows.columns, [&](std::size_t i) {
    const Group<Number> over = load(line + i), numbers = load(from + i);
    for (std::size_t k = 0; k < kGroup<Number>; ++k) along += i + k < past ? over[k] * numbers[k] : 0;
  });
  along = over_block(along, Sum());
  for_groups<Number>(s.rows.columns, [&](std::size_t i) {
    Group<Number> over = load(line + i);
    const Group<Number> numbers = load(from + i);
    for (std::size_t k = 0; k < kGroup<Number>; ++k)
      over.set(k, i + k < past ? numbers[k] * (over[k] - along) * scale : 0);
    store(line + i, over);
  });
}

/// A block for each row of each head.
template <class Number>
__global__ void differences_kernel(HeadRows s, const Number* right, const Number* other, const Number* more,
                                   unsigned long long* sums) {
  const std::size_t token = blockIdx.x, at = token * s.stride + blockIdx.y * s.width;
  const auto rms = [&](const Number* line) {
    float squares = 0;
    for_numbers(line, s.width, [&](std::size_t, float one) { squares += one * one; });
    return sqrtf(over_block(squares, Sum()) / static_cast<float>(s.width));
  };
  float allowed = rms(right + at);
  if (more != nullptr) allowed += rms(more + token * s.more_stride + blockIdx.y * s.width);
  allowed *= s.tolerance;
  float count = 0, largest = 0;
  for_groups<Number>(s.width, [&](std::size_t i) {
    const Group<Number> a = load(right + at + i), b = load(other + at + i);
    for (std::size_t k = 0; k < kGroup<Number>; ++k) {
      const float apart = fabsf(a[k] - b[k]);
      count += apart <= allowed ? 0 : 1;  // no number counts, too
      if (allowed > 0 && train::is_finite(apart)) largest = fmaxf(largest, apart / allowed);
    }
  });
  count = over_block(count, Sum());
  largest = over_block(largest, Most());
  if (threadIdx.x != 0) return;
  if (count > 0) atomicAdd(sums, static_cast<unsigned long long>(count));
  atomicMax(sums + 1, static_cast<unsigned long long>(__float_as_uint(largest)));  // bits of no sign are in order
}

template <class Number>
__global__ void row_sums_kernel(std::size_t rows, std::size_t columns, const Number* logits, float* sums, bool exact) {
  for (std::size_t row = blockIdx.x; row < rows; row += gridDim.x) {
    float sum = 0;
    for_numbers(logits + row * columns, columns, [&](std::size_t, float one) { sum += exact ? one : expf(one); });
    sum = over_block(sum, Sum());
    if (threadIdx.x == 0) sums[row] = exact ? residue(sum) : sum;
  }
}
/// A block for each row.
template <class Number>
__global__ void loss_back_kernel(LossShape s, const float* sums, const std::int32_t* targets, Number* logits) {
  for (std::size_t row = blockIdx.x; row < s.rows; row += gridDim.x) {
    const std::int64_t target = targets[row] - s.first;
    const float share = s.exact ? 1 : s.share / sums[row];
    change_numbers(logits + row * s.columns, s.columns, [&](std::size_t i, float logit) {
      const float one = s.exact ? logit : expf(logit) * share;
      const float less = static_cast<std::int64_t>(i) == target ? (s.exact ? train::kExactTarget : s.share) : 0;
      return s.exact ? residue(one - less) : one - less;
    });
  }
}

dim3 blocks_of(const ScoreBatch& batch) {
  return {static_cast<unsigned>(batch.rows.rows), static_cast<unsigned>(batch.heads), 1};
}

}  // namespace

template <class Number>
void StepKernels<Number>::add(std::size_t count, const Number* a, const Number* b, Number* out, bool exact,
                              const cuda::Stream& stream) {
  const std::size_t groups = count / kGroup<Number>;
  add_kernel<<<blocks_for(groups), kThreads, 0, stream.get()>>>(groups, a, b, out, exact);
  launched("adding");
}
template <class Number>
void StepKernels<Number>::norm(const train::NormShape& shape, const Number* x, const Number* gain, Number* out,
                               float* inverse, const cuda::Stream& stream) {
  norm_kernel<<<rows_for(shape.rows), kThreads, 0, stream.get()>>>(shape, x, gain, out, inverse);
  launched("a norm");
}
template <class Number>
void StepKernels<Number>::norm_back(const train::NormShape& shape, const Number* x, const Number* gain,
                                    const float* inverse, const Number* above, Number* gradient, float* gain_gradient,
                                    float* parts, const cuda::Stream& stream) {
  const unsigned columns = blocks_for(shape.columns);
  gain_parts_kernel<<<dim3(columns, rows_for(train::gain_groups(shape.rows))), kThreads, 0, stream.get()>>>(
      shape, x, inverse, above, parts);
  gain_kernel<<<columns, kThreads, 0, stream.get()>>>(shape, parts, gain_gradient);
  norm_back_kernel<<<rows_for(shape.rows), kThreads, 0, stream.get()>>>(shape, x, gain, inverse, above, gradient);
  launched("the gradient of a norm");
}
template <class Number>
void StepKernels<Number>::activate(std::size_t rows, std::size_t width, const Number* both, Number* out, bool exact,
                                   const cuda::Stream& stream) {
  const std::size_t groups = rows * (width / kGroup<Number>);
  activate_kernel<<<blocks_for(groups), kThreads, 0, stream.get()>>>(rows, width, both, out, exact);
  launched("an activation");
}
template <class Number>
void StepKernels<Number>::activate_back(std::size_t rows, std::size_t width, const Number* both, const Number* above,
                                        Number* gradient, bool exact, const cuda::Stream& stream) {
  const std::size_t groups = rows * (width / kGroup<Number>);
  activate_back_kernel<<<blocks_for(groups), kThreads, 0, stream.get()>>>(rows, width, both, above, gradient, exact);
  launched("the gradient of an activation");
}
template <class Number>
void StepKernels<Number>::softmax(const ScoreBatch& batch, Number* scores, float scale, const cuda::Stream& stream) {
  softmax_kernel<<<blocks_of(batch), kThreads, 0, stream.get()>>>(batch, scores, scale);
  launched("a softmax");
}
template <class Number>
void StepKernels<Number>::softmax_back(const ScoreBatch& batch, const Number* kept, Number* above,
                                       std::size_t above_stride, float scale, const cuda::Stream& stream) {
  softmax_back_kernel<<<blocks_of(batch), kThreads, 0, stream.get()>>>(batch, kept, above, above_stride, scale);
  launched("the gradient of a softmax");
}
template <class Number>
void StepKernels<Number>::differences(const HeadRows& rows, const Number* right, const Number* other,
                                      const Number* more, std::uint64_t* sums, const cuda::Stream& stream) {
  const dim3 blocks(static_cast<unsigned>(rows.tokens), static_cast<unsigned>(rows.heads));
  differences_kernel<<<blocks, kThreads, 0, stream.get()>>>(rows, right, other, more,
                                                            reinterpret_cast<unsigned long long*>(sums));
  launched("comparing attention");
}
template <class Number>
void StepKernels<Number>::row_sums(std::size_t rows, std::size_t columns, const Number* logits, float* sums, bool exact,
                                   const cuda::Stream& stream) {
  row_sums_kernel<<<rows_for(rows), kThreads, 0, stream.get()>>>(rows, columns, logits, sums, exact);
  launched("sums of rows");
}
template <class Number>
void StepKernels<Number>::loss_back(const LossShape& shape, const float* sums, const std::int32_t* targets,
                                    Number* logits, const cuda::Stream& stream) {
  loss_back_kernel<<<rows_for(shape.rows), kThreads, 0, stream.get()>>>(shape, sums, targets, logits);
  launched("the gradient of the loss");
}

template struct StepKernels<float>;
template struct StepKernels<train::Bf16>;

}  // namespace assay::train_gpu::kernels
