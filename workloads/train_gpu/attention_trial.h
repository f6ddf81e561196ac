// attention_trial: fused attention and products of the same numbers. A fused kernel keeps neither scores nor
// probabilities, so that no bits can be compared.
//
// Tolerance. A BF16 number is off by at most u = 2^-8 of itself. Queries and keys are normal numbers, so that scores
// are at most about 8: one that is rounded changes its exponential by up to 8 u. Products round the score, the
// probability, the gradient of each, and the result; the fused kernel the probability, the gradient and the result: 15
// u in all. The gradients of keys and values are rounded once more for each block of queries of each head that shares
// them: n times, which grows as its root. Of a row of 128 normal numbers the largest is 3 times their RMS. So a number
// may be off by 3 (15 + sqrt(n)) u of the RMS of its row of one head. Gradients of queries and keys are differences of
// numbers as large as the result and the gradient of values, whose RMS is added. A fault that changes every number by
// less, such as a scale that is a few percent off, is not found.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "workloads/train_gpu/device_attention.h"
#include "workloads/train_gpu/device_core.h"

namespace assay::train_gpu {

/// The tolerance of `shape`, in RMS of a row.
inline float attention_tolerance(const train::HeadShape& shape, std::size_t block) {
  constexpr float kUnit = 1.0F / 256, kRoundings = 15, kLargest = 3;
  const std::size_t blocks = (shape.seq + block - 1) / block * (shape.heads / shape.kv_heads);
  return kLargest * (kRoundings + std::sqrt(static_cast<float>(blocks))) * kUnit;
}

/// Both passes of one layer by products and fused, on numbers drawn from their places. Precondition: fuses(job).
template <class Device>
class AttentionTrial {
 public:
  using Number = typename Device::Number;

  /// Takes all memory of `device`.
  AttentionTrial(const train::RankJob& job, std::size_t block, Device& device)
      : shape_(heads_of(job)),
        device_(device),
        products_(shape_, block, device),
        tokens_(shape_.sequences * shape_.seq),
        row_(train::row_of_all(shape_)),
        out_row_(shape_.heads * shape_.width),
        tolerance_(attention_tolerance(shape_, block)) {
    const std::size_t widest = std::max(row_, out_row_);
    master_ = device.template take<float>(tokens_ * widest);
    drawn_ = device.template take<Number>(tokens_ * widest);
    gain_ = device.template take<Number>(widest);
    inverse_ = device.template take<float>(tokens_);
    at_ = {.qkv = numbers(tokens_ * row_),
           .probabilities = numbers(tokens_ * shape_.heads * shape_.seq),
           .attended = numbers(tokens_ * out_row_),
           .above = numbers(tokens_ * out_row_),
           .qkv_gradient = numbers(tokens_ * row_),
           .scores_gradient = numbers(DeviceAttention<Device>::scratch(shape_, block)),
           .attended_count = tokens_ * out_row_,
           .qkv_count = tokens_ * row_};
    for (auto* one : {&once_, &again_}) {
      *one = at_;
      one->attended = numbers(tokens_ * out_row_);
      one->qkv_gradient = numbers(tokens_ * row_);
      one->statistics = device.template take<float>(tokens_ * shape_.heads).data();
    }
    once_.room = again_.room = device.template take<std::byte>(job.attention_room).data();
  }

  /// The products, for a rehearsal.
  void rehearse() { by_products(); }

  /// Numbers of the fused passes that are too far from those of products; and, as `unequal`, numbers that differ
  /// between two fused passes.
  struct Result {
    AttentionDifference beside_products;
    std::uint64_t unequal = 0;
  };
  Result compare() {
    draw(1, row_, at_.qkv);
    draw(2, out_row_, at_.above);
    by_products();
    for (const auto* one : {&once_, &again_}) {
      device_.attend(shape_, *one);
      device_.attend_back(shape_, *one);
    }
    Result result;
    const auto part = [&](HeadRows rows, const Number* right, const Number* fused, const Number* second,
                          const Number* more) {
      result.unequal += device_.differences(rows, fused, second, static_cast<const Number*>(nullptr)).count;
      rows.tolerance = tolerance_;
      const AttentionDifference found = device_.differences(rows, right, fused, more);
      result.beside_products.count += found.count;
      result.beside_products.largest = std::max(result.beside_products.largest, found.largest);
    };
    const auto gradients = [&](std::size_t heads, std::size_t place, const Number* more, std::size_t more_stride) {
      part({.tokens = tokens_, .heads = heads, .width = shape_.width, .stride = row_, .more_stride = more_stride},
           at_.qkv_gradient + place, once_.qkv_gradient + place, again_.qkv_gradient + place, more);
    };
    const std::size_t keys = shape_.heads * shape_.width, values = keys + shape_.kv_heads * shape_.width;
    part({.tokens = tokens_, .heads = shape_.heads, .width = shape_.width, .stride = out_row_}, at_.attended,
         once_.attended, again_.attended, nullptr);
    gradients(shape_.heads, 0, at_.attended, out_row_);
    gradients(shape_.kv_heads, keys, at_.qkv_gradient + values, row_);
    gradients(shape_.kv_heads, values, nullptr, 0);
    return result;
  }

 private:
  Number* numbers(std::size_t count) { return device_.template take<Number>(count).data(); }

  /// Rows of normal numbers.
  void draw(std::uint64_t id, std::size_t columns, Number* to) {
    train::WeightBlock block{.id = id, .whole_columns = columns, .rows = tokens_, .count = columns, .stride = columns};
    device_.draw(std::vector{block}, false, master_.data(), drawn_.data());
    block.rows = 1;
    block.gain = true;
    device_.draw(std::vector{block}, false, master_.data(), gain_.data());
    device_.norm({.rows = tokens_, .columns = columns}, drawn_.data(), gain_.data(), to, inverse_.data());
  }
  void by_products() {
    products_.forward(at_);
    products_.backward(at_);
  }
  train::HeadShape shape_;
  Device& device_;
  DeviceAttention<Device> products_;
  std::size_t tokens_, row_, out_row_;
  float tolerance_;
  std::span<float> master_, inverse_;
  std::span<Number> drawn_, gain_;
  AttentionPlaces<Number> at_, once_, again_;
};

}  // namespace assay::train_gpu
