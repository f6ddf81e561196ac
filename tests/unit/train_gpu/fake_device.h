// fake_device: a device whose memory and arithmetic are this process': what the engine asks of a GPU, without one.
#pragma once

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstring>
#include <functional>
#include <limits>
#include <span>
#include <stdexcept>
#include <type_traits>
#include <vector>

#include "workloads/train/engine/host_memory.h"
#include "workloads/train_gpu/device_core.h"
#include "workloads/train_gpu/device_rehearsal.h"
#include "workloads/train_gpu/fused_attention.h"

namespace assay::train_gpu {

inline float as_bf16(float value) { return train::widened(train::narrowed<train::Bf16>(value)); }

/// What a kernel packs of one factor; what it does not write is no number.
inline std::vector<float> packed_numbers(const FactorShape& s, const float* from) {
  const FactorShape to = packed(s);
  std::vector<float> numbers(train::sized(to.extent()), std::numeric_limits<float>::quiet_NaN());
  for (std::int64_t one = 0; one < s.batch; ++one) {
    for (std::int64_t row = 0; row < s.rows; ++row) {
      for (std::int64_t i = 0; i < s.columns; ++i)
        numbers[train::sized(one * to.stride + row * to.leading + i)] =
            as_bf16(from[one * s.stride + row * s.leading + i]);
    }
  }
  return numbers;
}

/// Numbers of a device as fp32 for the time of one call; what was calculated is rounded and kept when it ends.
template <class Number>
class Wide {
 public:
  Wide(Number* kept, std::size_t count) : kept_(kept), values_(count) {
    for (std::size_t i = 0; i < count; ++i) values_[i] = train::widened(kept[i]);
  }
  ~Wide() {
    if constexpr (!std::is_const_v<Number>) {
      for (std::size_t i = 0; i < values_.size(); ++i) kept_[i] = train::narrowed<Number>(values_[i]);
    }
  }
  Wide(const Wide&) = delete;
  Wide& operator=(const Wide&) = delete;
  float* data() { return values_.data(); }
  float& operator[](std::size_t i) { return values_[i]; }

 private:
  Number* kept_;
  std::vector<float> values_;
};

/// What a device is asked, in its order. Products are plain loops, so that no library is believed. Memory is exactly as
/// large as the rehearsal says.
template <class Kept>
class FakeDeviceOf {
 public:
  using Number = Kept;
  std::vector<ProductShape> shapes;  ///< of all products so far, as they are multiplied
  const bool packs;                  ///< factors to BF16 first
  /// After each cast: the copy as it is, and the transposed one.
  std::function<void(std::span<std::uint8_t>, std::span<std::uint8_t>)> after_cast = [](auto...) {};

  FusedAttention* fused = nullptr;  ///< where the job fuses()

  /// `block` is that of the core.
  FakeDeviceOf(const train::RankJob& job, std::size_t block) : FakeDeviceOf(job, rehearsed(job, block)) {}
  /// With the memory that `need` says.
  FakeDeviceOf(const train::RankJob& job, const DeviceNeed& need)
      : packs(job.factors != train::FactorType::tf32 && sizeof(Number) == sizeof(float)),
        room_(need.memory),
        arena_(room_) {}
  [[nodiscard]] std::size_t taken() const { return arena_.used(); }

  template <class Kind>
  std::span<Kind> take(std::size_t count) {
    return arena_.take<Kind>(count);
  }
  void copy_in(std::int32_t* to, const std::vector<std::int32_t>& numbers) { std::ranges::copy(numbers, to); }
  void draw(const std::vector<train::WeightBlock>& blocks, bool exact, float* master, Number* copy) {
    for (const auto& block : blocks) {
      for (std::size_t row = 0; row < block.rows; ++row) {
        for (std::size_t i = 0; i < block.count; ++i) {
          const std::uint64_t bits = block.bits(train::kStepSeed, row, i);
          const auto parts = train::normal_parts<float>(bits);
          const float normal = std::sqrt(-2 * std::log(parts.radius)) * std::cos(6.2831853F * parts.turn);
          const float value = exact ? train::whole_weight(bits) : block.gain ? 1 : train::kWeightSpread * normal;
          master[block.at(row, i)] = value;
          if (copy != nullptr) copy[block.at(row, i)] = train::narrowed<Number>(value);
        }
      }
    }
  }
  template <class Kind>
  WeightPrint print(const std::vector<train::WeightBlock>& blocks, const Kind* from) {
    WeightPrint all;
    for (const auto& block : blocks) {
      for (std::size_t row = 0; row < block.rows; ++row) {
        for (std::size_t i = 0; i < block.count; ++i) {
          const float value = train::widened(from[block.at(row, i)]);
          all.not_finite += train::is_finite(value) ? 0 : 1;
          if (block.printed) (block.expert ? all.experts : all.shared) += block.print(row, i, value);
        }
      }
    }
    return all;
  }
  void tokens(const train::TokenDraw& draw, std::int32_t* to) {
    for (std::size_t i = 0; i < draw.size(); ++i) to[i] = draw.token(i);
  }
  template <class Kind>
  void clear(Kind* to, std::size_t count) {
    std::fill_n(to, count, Kind{});
  }
  template <class Kind>
  void fold(Kind* values, std::size_t count) {
    Wide wide(values, count);
    train::fold({wide.data(), count});
  }

  template <class Result>
  void product(ProductShape shape, const Number* a, const Number* b, Result* c) {
    shape.narrow = sizeof(Result) == sizeof(train::Bf16);
    if (!packs) {
      shapes.push_back(shape);
      return multiply(shape, a, b, c);
    }
    shapes.push_back(packed(shape));
    if constexpr (std::same_as<Number, float>)
      multiply(packed(shape), packed_numbers(a_of(shape), a).data(), packed_numbers(b_of(shape), b).data(), c);
  }

  void cast(const CastShape& s, const Number* from, std::uint8_t* plain, std::uint8_t* turned, CastScale* scale) {
    scale->largest = 0;
    for (std::size_t i = 0; i < s.size(); ++i)
      scale->largest = std::max(scale->largest, std::abs(train::widened(from[i])));
    const float times = fp8_scale(s, scale->largest);
    scale->inverse = 1 / times;
    for (std::size_t i = 0; i < s.size(); ++i)
      plain[i] = turned[i % s.columns * s.rows + i / s.columns] = fp8_code(s, train::widened(from[i]) * times);
    after_cast({plain, s.size()}, {turned, s.size()});
  }
  template <class Result>
  void product(ProductShape shape, const Fp8Factor& a, const Fp8Factor& b, Result* c) {
    shape.narrow = sizeof(Result) == sizeof(train::Bf16);
    shapes.push_back(shape);
    multiply(shape, decoded(a, a_of(shape), shape.fp8 == Fp8::input).data(),
             decoded(b, b_of(shape), shape.fp8 == Fp8::weight).data(), c);
  }
  static std::vector<float> decoded(const Fp8Factor& factor, const FactorShape& shape, bool wide) {
    std::vector<float> numbers(train::sized(shape.extent()));
    for (std::size_t i = 0; i < numbers.size(); ++i)
      numbers[i] = cuda::decode(CastShape{.wide = wide}.format(), factor.codes[i]) * factor.scale->inverse;
    return numbers;
  }

  template <class Factor, class Result>
  static void multiply(const ProductShape& s, const Factor* a, const Factor* b, Result* c) {
    for (std::int64_t one = 0; one < s.batch; ++one) {
      for (std::int64_t i = 0; i < s.m; ++i) {
        for (std::int64_t j = 0; j < s.n; ++j) {
          float sum = 0;
          for (std::int64_t k = 0; k < s.k; ++k)
            sum += train::widened(a[one * s.a_stride + (s.a_turned ? k * s.lda + i : i * s.lda + k)]) *
                   train::widened(b[one * s.b_stride + (s.b_turned ? j * s.ldb + k : k * s.ldb + j)]);
          Result& to = c[one * s.c_stride + i * s.ldc + j];
          to = train::narrowed<Result>(s.kept == 0 ? sum : train::widened(to) + sum);
        }
      }
    }
  }

  void add(std::size_t count, const Number* a, const Number* b, Number* out, bool exact) {
    Wide from(a, count);
    Wide more(b, count);
    Wide to(out, count);
    train::add(count, from.data(), more.data(), to.data(), exact);
  }
  void norm(const train::NormShape& shape, const Number* x, const Number* gain, Number* out, float* inverse) {
    const std::size_t all = shape.rows * shape.columns;
    Wide from(x, all);
    Wide gains(gain, shape.columns);
    Wide to(out, all);
    train::norm(shape, from.data(), gains.data(), to.data(), inverse);
  }
  void norm_back(const train::NormShape& shape, const Number* x, const Number* gain, const float* inverse,
                 const Number* above, Number* gradient, float* gain_gradient, float* parts) {
    const std::size_t all = shape.rows * shape.columns;
    Wide from(x, all);
    Wide gains(gain, shape.columns);
    Wide over(above, all);
    Wide to(gradient, all);
    std::vector<float> unused(shape.columns);
    train::norm_back(shape, from.data(), gains.data(), inverse, over.data(), to.data(), unused.data());
    // As the kernels do it.
    for (std::size_t group = 0; group < train::gain_groups(shape.rows); ++group) {
      for (std::size_t i = 0; i < shape.columns; ++i)
        parts[group * shape.columns + i] =
            train::gain_part(shape.rows, shape.columns, x, inverse, above, group, i, shape.exact);
    }
    for (std::size_t group = 0; group < train::gain_groups(shape.rows); ++group) {
      for (std::size_t i = 0; i < shape.columns; ++i) {
        const float sum = gain_gradient[i] + parts[group * shape.columns + i];
        gain_gradient[i] = shape.exact ? train::residue(sum) : sum;
      }
    }
  }
  void activate(std::size_t rows, std::size_t width, const Number* both, Number* out, bool exact) {
    Wide from(both, 2 * rows * width);
    Wide to(out, rows * width);
    train::activate(rows, width, from.data(), to.data(), exact);
  }
  void activate_back(std::size_t rows, std::size_t width, const Number* both, const Number* above, Number* gradient,
                     bool exact) {
    Wide from(both, 2 * rows * width);
    Wide over(above, rows * width);
    Wide to(gradient, 2 * rows * width);
    train::activate_back(rows, width, from.data(), over.data(), to.data(), exact);
  }
  void softmax(const ScoreBatch& batch, Number* scores, float scale) {
    for (std::size_t i = 0; i < batch.heads; ++i) {
      Wide to(scores + i * batch.stride, reach(batch.rows));
      train::softmax(batch.rows, to.data(), scale);
    }
  }
  void softmax_back(const ScoreBatch& batch, const Number* kept, Number* above, std::size_t above_stride, float scale) {
    for (std::size_t i = 0; i < batch.heads; ++i) {
      Wide from(kept + i * batch.stride, reach(batch.rows));
      Wide to(above + i * above_stride, reach(batch.rows));
      train::softmax_back(batch.rows, from.data(), to.data(), scale);
    }
  }
  void attend(const train::HeadShape& /*shape*/, const AttentionPlaces<Number>& at) {
    if constexpr (std::same_as<Number, train::Bf16>) fused->forward(nullptr, at);
  }
  void attend_back(const train::HeadShape& /*shape*/, const AttentionPlaces<Number>& at) {
    if constexpr (std::same_as<Number, train::Bf16>) fused->backward(nullptr, at);
  }
  /// As the kernel does it.
  static AttentionDifference differences(const HeadRows& s, const Number* right, const Number* other,
                                         const Number* more) {
    const auto rms = [&](const Number* line) {
      float squares = 0;
      for (std::size_t i = 0; i < s.width; ++i) squares += train::widened(line[i]) * train::widened(line[i]);
      return std::sqrt(squares / static_cast<float>(s.width));
    };
    AttentionDifference all;
    for (std::size_t row = 0; row < s.tokens * s.heads; ++row) {
      const std::size_t token = row / s.heads, in_row = row % s.heads * s.width, at = token * s.stride + in_row;
      float allowed = rms(right + at);
      if (more != nullptr) allowed += rms(more + token * s.more_stride + in_row);
      allowed *= s.tolerance;
      for (std::size_t i = 0; i < s.width; ++i) {
        const float apart = std::abs(train::widened(right[at + i]) - train::widened(other[at + i]));
        all.count += apart <= allowed ? 0 : 1;
        if (allowed > 0 && train::is_finite(apart)) all.largest = std::max(all.largest, double{apart / allowed});
      }
    }
    return all;
  }
  void row_sums(std::size_t rows, std::size_t columns, const Number* logits, float* sums, bool exact) {
    Wide from(logits, rows * columns);
    train::row_sums(rows, columns, from.data(), sums, exact);
  }
  void loss_back(const LossShape& shape, const float* sums, const std::int32_t* targets, Number* all) {
    Wide wide(all, shape.rows * shape.columns);
    float* logits = wide.data();
    for (std::size_t row = 0; row < shape.rows; ++row, logits += shape.columns) {
      const std::int64_t target = targets[row] - shape.first;
      if (!shape.exact) {
        for (std::size_t i = 0; i < shape.columns; ++i) logits[i] = std::exp(logits[i]) * (shape.share / sums[row]);
      }
      if (target >= 0 && target < static_cast<std::int64_t>(shape.columns))
        logits[target] -= shape.exact ? train::kExactTarget : shape.share;
      if (shape.exact) train::fold({logits, shape.columns});
    }
  }
  void embed(std::size_t rows, std::size_t width, std::int64_t first, std::size_t here, const std::int32_t* tokens,
             const Number* table, Number* out) {
    for (std::size_t i = 0; i < rows; ++i, out += width) {
      const std::int64_t row = tokens[i] - first;
      if (row >= 0 && row < static_cast<std::int64_t>(here))
        std::copy_n(table + static_cast<std::size_t>(row) * width, width, out);
      else
        std::fill_n(out, width, Number{});
    }
  }
  void embed_back(std::size_t rows, std::size_t width, std::int64_t first, std::size_t here, const std::int32_t* tokens,
                  const Number* above, float* gradients) {
    for (std::size_t i = 0; i < rows; ++i, above += width) {
      const std::int64_t row = tokens[i] - first;
      if (row < 0 || row >= static_cast<std::int64_t>(here)) continue;
      float* const to = gradients + static_cast<std::size_t>(row) * width;
      Wide from(above, width);
      train::add(width, to, from.data(), to, false);
    }
  }
  void adam(std::size_t count, const train::AdamState& state, Number* copy, bool exact) {
    train::adam(count, state, exact);
    for (std::size_t i = 0; i < count && copy != nullptr; ++i) copy[i] = train::narrowed<Number>(state.weights[i]);
  }
  void copy_rows(std::size_t rows, std::size_t width, const Number* from, std::size_t from_row, Number* to,
                 std::size_t to_row) {
    for (std::size_t i = 0; i < rows; ++i) std::copy_n(from + i * from_row, width, to + i * to_row);
  }

  static void gather_rows(const RowChoice& s, const std::int32_t* places, const float* factors, const Number* from,
                          Number* to) {
    for (std::size_t i = 0; i < s.rows * s.width; ++i) {
      const std::size_t row = i / s.width;
      const float one = train::widened(from[train::sized(places[row]) * s.width + i % s.width]);
      to[i] = train::narrowed<Number>((factors == nullptr ? 1 : factors[row]) * one);
    }
  }
  static void sum_rows(const RowChoice& s, const std::int32_t* places, const float* factors, const Number* from,
                       Number* to) {
    for (std::size_t i = 0; i < s.rows * s.width; ++i) {
      float sum = s.onto ? train::widened(to[i]) : 0;
      for (std::size_t k = 0; k < s.each; ++k) {
        const std::size_t place = train::sized(places[i / s.width * s.each + k]);
        sum += (factors == nullptr ? 1 : factors[place]) * train::widened(from[place * s.width + i % s.width]);
      }
      to[i] = train::narrowed<Number>(sum);
    }
  }
  static void gates(std::size_t rows, std::size_t each, const std::int32_t* places, const std::int32_t* numbers,
                    const Number* logits, float* to, bool exact) {
    for (std::size_t row = 0; row < rows; ++row, places += each) {
      float sum = 0;
      for (std::size_t k = 0; k < each; ++k) {
        const float one = train::widened(logits[numbers[places[k]]]);
        sum += to[places[k]] = exact ? one : std::exp(one);
      }
      for (std::size_t k = 0; k < each && !exact; ++k) to[places[k]] /= sum;
    }
  }
  static void gates_back(const RowChoice& s, const std::int32_t* places, const std::int32_t* numbers,
                         const GatePlaces<Number>& at, bool exact) {
    for (std::size_t row = 0; row < s.rows; ++row, places += s.each) {
      std::vector<float> along(s.each, 0);
      float all = 0;
      for (std::size_t k = 0; k < s.each; ++k) {
        for (std::size_t i = 0; i < s.width; ++i)
          along[k] += train::widened(at.returned[train::sized(places[k]) * s.width + i]) *
                      train::widened(at.above[row * s.width + i]);
        all += at.gates[places[k]] * along[k];
      }
      for (std::size_t k = 0; k < s.each; ++k)
        at.logits[numbers[places[k]]] =
            train::narrowed<Number>(exact ? along[k] : at.gates[places[k]] * (along[k] - all));
    }
  }

  void begin(std::size_t /*calls*/) {}
  void mark(std::size_t /*call*/) {}
  void end() {}
  [[nodiscard]] double seconds(std::size_t call) const { return static_cast<double>(call); }

 private:
  static std::size_t reach(const train::ScoreRows& rows) { return (rows.rows - 1) * rows.stride + rows.columns; }

  std::vector<std::byte> room_;
  Arena arena_;
};
using FakeDevice = FakeDeviceOf<float>;

}  // namespace assay::train_gpu
