// step_math: the element-wise work of a training step, in floating point and in exact arithmetic modulo 7.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "workloads/train/engine/step_values.h"

namespace assay::train {

/// Every whole number of `values` (at most 2^24 in size) becomes its residue from -3 to 3. A sum of products of
/// residues may be folded at any time: the result is the same.
void fold(std::span<float> values);

/// rows x columns. out = x / rms(x) x gain, and 1 / rms of each row in `inverse`; exact: out = x x gain.
struct NormShape {
  std::size_t rows = 0, columns = 0;
  bool exact = false;
};
void norm(const NormShape& shape, const float* x, const float* gain, float* out, float* inverse);
/// gradient += the gradient of x where `above` is that of out; gain_gradient += that of the gain, which is summed over
/// groups of kGainRows rows first.
void norm_back(const NormShape& shape, const float* x, const float* gain, const float* inverse, const float* above,
               float* gradient, float* gain_gradient);

/// out = a + b.
void add(std::size_t count, const float* a, const float* b, float* out, bool exact);

/// `both` has rows of `width` gates and as many ups; out = silu(gate) x up; exact: gate x up.
void activate(std::size_t rows, std::size_t width, const float* both, float* out, bool exact);
/// `gradient` of `both` from `above`, that of out.
void activate_back(std::size_t rows, std::size_t width, const float* both, const float* above, float* gradient,
                   bool exact);

/// Rows `first` to `first + rows` of a causal score matrix whose rows have `stride` numbers, of which `columns` are
/// computed: softmax over those that are not in the future, and 0 in the others. Exact: the scores themselves.
struct ScoreRows {
  std::size_t first = 0, rows = 0, columns = 0, stride = 0;
  bool exact = false;
};
void softmax(const ScoreRows& shape, float* scores, float scale);
/// `above`, the gradient of the probabilities, becomes that of the scores, times `scale`.
void softmax_back(const ScoreRows& shape, const float* probabilities, float* above, float scale);

/// Sum of exp of each row; exact: of the row.
void row_sums(std::size_t rows, std::size_t columns, const float* logits, float* sums, bool exact);

/// Adam (Kingma & Ba 2015) with a step so small that weights keep their size; exact: weight - 2 gradient modulo 7.
struct AdamState {
  float* weights;
  const float* gradients;
  float* first;
  float* second;
};
void adam(std::size_t count, const AdamState& state, bool exact);

/// 64 bits that differ, with all but certainty, when any bit of `values` or their order differs.
std::uint64_t print_of(std::span<const float> values);

}  // namespace assay::train
