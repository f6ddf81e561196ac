// step_math: loops that a compiler vectorises; nothing allocates.
#include "workloads/train/engine/step_math.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace assay::train {
namespace {

constexpr float kEpsilon = 1e-5F;
constexpr float kFirstKept = 0.9F, kSecondKept = 0.95F, kRate = 1e-6F;

/// gain_part() of all groups and columns, a few columns at a time: as many as vectors hold.
void add_gain_parts(const NormShape& s, const float* x, const float* inverse, const float* above, float* gradient) {
  constexpr std::size_t kColumns = 64;
  for (std::size_t first = 0; first < s.rows; first += kGainRows) {
    const std::size_t end = std::min(first + kGainRows, s.rows);
    for (std::size_t column = 0; column < s.columns; column += kColumns) {
      const std::size_t count = std::min(kColumns, s.columns - column);
      float sums[kColumns] = {};
      for (std::size_t row = first; row < end; ++row) {
        const float *from = x + row * s.columns + column, *over = above + row * s.columns + column;
        if (s.exact) {
          for (std::size_t i = 0; i < count; ++i) sums[i] = residue(sums[i] + over[i] * from[i]);
        } else {
          for (std::size_t i = 0; i < count; ++i) sums[i] += over[i] * from[i] * inverse[row];
        }
      }
      float* const to = gradient + column;
      for (std::size_t i = 0; i < count; ++i) to[i] = s.exact ? residue(to[i] + sums[i]) : to[i] + sums[i];
    }
  }
}

}  // namespace

void fold(std::span<float> values) {
  for (float& value : values) value = residue(value);
}

void norm(const NormShape& shape, const float* x, const float* gain, float* out, float* inverse) {
  for (std::size_t row = 0; row < shape.rows; ++row, x += shape.columns, out += shape.columns) {
    if (shape.exact) {
      for (std::size_t i = 0; i < shape.columns; ++i) out[i] = residue(x[i] * gain[i]);
      continue;
    }
    float squares = 0;
    for (std::size_t i = 0; i < shape.columns; ++i) squares += x[i] * x[i];
    inverse[row] = 1 / std::sqrt(squares / static_cast<float>(shape.columns) + kEpsilon);
    for (std::size_t i = 0; i < shape.columns; ++i) out[i] = x[i] * inverse[row] * gain[i];
  }
}

void norm_back(const NormShape& shape, const float* x, const float* gain, const float* inverse, const float* above,
               float* gradient, float* gain_gradient) {
  const std::size_t n = shape.columns;
  add_gain_parts(shape, x, inverse, above, gain_gradient);
  for (std::size_t row = 0; row < shape.rows; ++row, x += n, above += n, gradient += n) {
    if (shape.exact) {
      for (std::size_t i = 0; i < n; ++i) gradient[i] = residue(gradient[i] + above[i] * gain[i]);
      continue;
    }
    float along = 0;
    for (std::size_t i = 0; i < n; ++i) along += above[i] * gain[i] * x[i];
    const float share = along * inverse[row] * inverse[row] / static_cast<float>(n);
    for (std::size_t i = 0; i < n; ++i) gradient[i] += inverse[row] * (above[i] * gain[i] - x[i] * share);
  }
}

void add(std::size_t count, const float* a, const float* b, float* out, bool exact) {
  for (std::size_t i = 0; i < count; ++i) out[i] = a[i] + b[i];
  if (exact) fold({out, count});
}

void activate(std::size_t rows, std::size_t width, const float* both, float* out, bool exact) {
  for (std::size_t row = 0; row < rows; ++row, both += 2 * width, out += width) {
    const float *gate = both, *up = both + width;
    if (exact) {
      for (std::size_t i = 0; i < width; ++i) out[i] = residue(gate[i] * up[i]);
    } else {
      for (std::size_t i = 0; i < width; ++i) out[i] = gate[i] / (1 + std::exp(-gate[i])) * up[i];
    }
  }
}

void activate_back(std::size_t rows, std::size_t width, const float* both, const float* above, float* gradient,
                   bool exact) {
  for (std::size_t row = 0; row < rows; ++row, both += 2 * width, gradient += 2 * width, above += width) {
    const float *gate = both, *up = both + width;
    for (std::size_t i = 0; i < width; ++i) {
      if (exact) {
        gradient[i] = residue(above[i] * up[i]);
        gradient[width + i] = residue(above[i] * gate[i]);
        continue;
      }
      const float sigmoid = 1 / (1 + std::exp(-gate[i])), silu = gate[i] * sigmoid;
      gradient[i] = above[i] * up[i] * (sigmoid + silu * (1 - sigmoid));
      gradient[width + i] = above[i] * silu;
    }
  }
}

void softmax(const ScoreRows& shape, float* scores, float scale) {
  for (std::size_t row = 0; row < shape.rows; ++row, scores += shape.stride) {
    const std::size_t past = shape.first + row + 1;  // a token sees itself and those before
    std::fill(scores + past, scores + shape.columns, 0.0F);
    if (shape.exact) {
      fold({scores, past});
      continue;
    }
    const float most = *std::max_element(scores, scores + past);
    float sum = 0;
    for (std::size_t i = 0; i < past; ++i) sum += scores[i] = std::exp((scores[i] - most) * scale);
    for (std::size_t i = 0; i < past; ++i) scores[i] /= sum;
  }
}

void softmax_back(const ScoreRows& shape, const float* probabilities, float* above, float scale) {
  for (std::size_t row = 0; row < shape.rows; ++row, probabilities += shape.stride, above += shape.stride) {
    const std::size_t past = shape.first + row + 1;
    std::fill(above + past, above + shape.columns, 0.0F);
    if (shape.exact) {
      fold({above, past});
      continue;
    }
    float along = 0;
    for (std::size_t i = 0; i < past; ++i) along += above[i] * probabilities[i];
    for (std::size_t i = 0; i < past; ++i) above[i] = probabilities[i] * (above[i] - along) * scale;
  }
}

void row_sums(std::size_t rows, std::size_t columns, const float* logits, float* sums, bool exact) {
  for (std::size_t row = 0; row < rows; ++row, logits += columns) {
    float sum = 0;
    for (std::size_t i = 0; i < columns; ++i) sum += exact ? logits[i] : std::exp(logits[i]);
    sums[row] = exact ? residue(sum) : sum;
  }
}

void adam(std::size_t count, const AdamState& state, bool exact) {
  if (exact) {
    for (std::size_t i = 0; i < count; ++i)
      state.weights[i] = residue(state.weights[i] - 2 * residue(state.gradients[i]));
    return;
  }
  for (std::size_t i = 0; i < count; ++i) {
    const float gradient = state.gradients[i];
    state.first[i] = kFirstKept * state.first[i] + (1 - kFirstKept) * gradient;
    state.second[i] = kSecondKept * state.second[i] + (1 - kSecondKept) * gradient * gradient;
    state.weights[i] -= kRate * state.first[i] / (std::sqrt(state.second[i]) + 1e-8F);
  }
}

std::uint64_t print_of(std::span<const float> values) {
  std::uint64_t sum = values.size();
  for (std::size_t i = 0; i < values.size(); ++i) sum += mixed(i, std::bit_cast<std::uint32_t>(values[i]));
  return sum;
}

}  // namespace assay::train
