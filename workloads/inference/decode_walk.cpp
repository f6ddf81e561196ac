// decode_walk: rows, and tasks of attention, are shared out in slices; a result has one order of sums on any threads.
#include "workloads/inference/decode_walk.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "probes/host/slice.h"

namespace assay::inference {
namespace {

constexpr std::size_t kLine = 16;  // floats in a cache line
constexpr float kNothing = std::numeric_limits<float>::quiet_NaN();

}  // namespace

DecodeWalk::DecodeWalk(const DecodeShape& shape, DecodeNumbers numbers, const DecodeCode& code, std::size_t threads)
    : shape_(shape),
      numbers_(numbers),
      code_(code),
      threads_(threads),
      batch_(train::sized(shape.batch)),
      together_(static_cast<std::ptrdiff_t>(threads)) {
  const train::ModelShape& m = shape_.model;
  const std::size_t heads = batch_ * train::sized(m.heads), tasks = heads * train::sized(chunks());
  x_.resize(batch_ * train::sized(m.hidden));
  qkv_.resize(batch_ * train::sized(shape_.qkv()));
  attended_.resize(heads * train::sized(m.head_dim));
  gate_up_.resize(batch_ * train::sized(2 * m.ffn));
  inner_.resize(batch_ * train::sized(m.ffn));
  change_.resize(x_.size());
  logits_.resize(batch_ * train::sized(m.vocab));
  largest_.resize(tasks);
  sums_.resize(tasks);
  parts_.resize(tasks * train::sized(m.head_dim));
  normed_.resize(threads * x_.size());
  scores_.resize(threads * train::sized(group() * kTokensOfTask));
}

void DecodeWalk::begin(const DecodeSet& set, std::span<const float> input) {
  set_ = set;
  for (auto* values : {&qkv_, &attended_, &gate_up_, &inner_, &change_, &logits_, &largest_, &sums_, &parts_})
    std::ranges::fill(*values, kNothing);  // work that is skipped cannot pass
  std::ranges::copy(input, x_.begin());
}

void DecodeWalk::step(std::size_t thread) {
  for (std::int64_t number = 0; number < shape_.model.layers; ++number) layer(number, thread);
  rows(head_weights(shape_, set_), train::sized(shape_.model.vocab), norm(thread), logits_.data(), thread);
}

void DecodeWalk::layer(std::int64_t number, std::size_t thread) {
  const train::ModelShape& m = shape_.model;
  const LayerWeights w = layer_weights(shape_, set_, number);
  const auto then = [this] { together_.arrive_and_wait(); };
  rows(w.qkv, train::sized(shape_.qkv()), norm(thread), qkv_.data(), thread);
  then();
  attend(number, thread);
  then();
  join_tasks(thread);
  then();
  rows(w.out, train::sized(m.hidden), attended_, change_.data(), thread);
  add_to_input(thread);
  then();
  rows(w.gate_up, train::sized(2 * m.ffn), norm(thread), gate_up_.data(), thread);
  then();
  activate(thread);
  then();
  rows(w.down, train::sized(m.hidden), inner_, change_.data(), thread);
  add_to_input(thread);
  then();
}

std::span<const float> DecodeWalk::norm(std::size_t thread) {
  if (numbers_ == DecodeNumbers::ring) return x_;
  constexpr float kLeast = 1e-5F;  // Llama's
  const auto normed = std::span(normed_).subspan(thread * x_.size(), x_.size());
  const std::size_t n = train::sized(shape_.model.hidden);
  for (std::size_t b = 0; b < batch_; ++b) {
    float squares = 0;
    for (std::size_t i = 0; i < n; ++i) squares += x_[b * n + i] * x_[b * n + i];
    const float scale = 1 / std::sqrt(squares / static_cast<float>(n) + kLeast);
    for (std::size_t i = 0; i < n; ++i) normed[b * n + i] = x_[b * n + i] * scale;
  }
  return normed;
}

void DecodeWalk::rows(std::span<const Bf16> w, std::size_t all, std::span<const float> x, float* y,
                      std::size_t thread) {
  const host::Slice mine = host::slice(all, threads_, thread, kLine);
  const std::size_t n = w.size() / all;
  code_.rows(w.data() + mine.begin * n, mine.end - mine.begin, n, x.data(), batch_, y + mine.begin, all);
  if (numbers_ == DecodeNumbers::gaussian) return;
  for (std::size_t b = 0; b < batch_; ++b) {
    for (std::size_t i = mine.begin; i < mine.end; ++i) y[b * all + i] = fold(y[b * all + i]);
  }
}

void DecodeWalk::attend(std::int64_t layer, std::size_t thread) {
  const train::ModelShape& m = shape_.model;
  const host::Slice mine = host::slice(batch_ * train::sized(m.kv_heads * chunks()), threads_, thread);
  float* const scores = scores_.data() + thread * train::sized(group() * kTokensOfTask);
  for (std::size_t task = mine.begin; task < mine.end; ++task) {
    const auto number = static_cast<std::int64_t>(task);
    const std::int64_t head = number / chunks();
    attend_task(layer, head / m.kv_heads, head % m.kv_heads, number % chunks(), scores);
  }
}

void DecodeWalk::attend_task(std::int64_t layer, std::int64_t sequence, std::int64_t kv_head, std::int64_t chunk,
                             float* scores) {
  const train::ModelShape& m = shape_.model;
  const std::size_t n = train::sized(m.head_dim), heads = train::sized(group());
  const std::int64_t first = chunk * kTokensOfTask, last = std::min(shape_.context, first + kTokensOfTask);
  const std::size_t tokens = train::sized(last - first);
  const auto keys = cache_of(shape_, set_, layer, sequence, kv_head, false);
  const auto values = cache_of(shape_, set_, layer, sequence, kv_head, true);
  const float* const query = qkv_.data() + train::sized(sequence * shape_.qkv());
  if (last == shape_.context) {  // the token that is being made
    const float *const key = query + train::sized(m.q() + kv_head * m.head_dim), *const value =
                                                                                     key + train::sized(m.kv());
    for (std::size_t d = 0; d < n; ++d) {
      keys[train::sized(last - 1) * n + d] = narrow(key[d]);
      values[train::sized(last - 1) * n + d] = narrow(value[d]);
    }
  }
  code_.rows(keys.data() + train::sized(first) * n, tokens, n, query + train::sized(kv_head) * heads * n, heads, scores,
             tokens);
  const std::size_t place = train::sized(((sequence * m.kv_heads + kv_head) * chunks() + chunk) * group());
  for (std::size_t g = 0; g < heads; ++g) {
    const auto mine = std::span(scores + g * tokens, tokens);
    largest_[place + g] = sums_[place + g] = 0;
    if (numbers_ == DecodeNumbers::ring) {
      for (float& score : mine) score = fold(score);
      continue;
    }
    const float scale = 1 / std::sqrt(static_cast<float>(n));
    largest_[place + g] = *std::ranges::max_element(mine) * scale;
    for (float& score : mine) sums_[place + g] += score = std::exp(score * scale - largest_[place + g]);
  }
  code_.blend(values.data() + train::sized(first) * n, tokens, n, scores, heads, parts_.data() + place * n);
}

void DecodeWalk::join_tasks(std::size_t thread) {
  const std::size_t heads = train::sized(group()), n = train::sized(shape_.model.head_dim),
                    each = train::sized(chunks());
  const host::Slice mine = host::slice(batch_ * train::sized(shape_.model.heads), threads_, thread);
  for (std::size_t head = mine.begin; head < mine.end; ++head) {
    const auto place = [&](std::size_t chunk) { return (head / heads * each + chunk) * heads + head % heads; };
    const auto out = std::span(attended_).subspan(head * n, n);
    std::ranges::fill(out, 0.0F);
    float largest = -std::numeric_limits<float>::infinity(), sum = 0;
    for (std::size_t chunk = 0; chunk < each; ++chunk) largest = std::max(largest, largest_[place(chunk)]);
    for (std::size_t chunk = 0; chunk < each; ++chunk) {
      const float weight = std::exp(largest_[place(chunk)] - largest);  // 1 in ring numbers
      sum += sums_[place(chunk)] * weight;
      for (std::size_t d = 0; d < n; ++d) out[d] += parts_[place(chunk) * n + d] * weight;
    }
    for (float& value : out) value = numbers_ == DecodeNumbers::ring ? fold(value) : value / sum;
  }
}

void DecodeWalk::activate(std::size_t thread) {
  const std::size_t n = train::sized(shape_.model.ffn);
  const host::Slice mine = host::slice(n, threads_, thread, kLine);
  for (std::size_t b = 0; b < batch_; ++b) {
    for (std::size_t i = mine.begin; i < mine.end; ++i) {
      const float gate = gate_up_[b * 2 * n + i], up = gate_up_[b * 2 * n + n + i];
      inner_[b * n + i] = numbers_ == DecodeNumbers::ring ? fold(gate * up) : gate / (1 + std::exp(-gate)) * up;
    }
  }
}

void DecodeWalk::add_to_input(std::size_t thread) {
  const std::size_t n = train::sized(shape_.model.hidden);
  const host::Slice mine = host::slice(n, threads_, thread, kLine);
  for (std::size_t b = 0; b < batch_; ++b) {
    for (std::size_t i = mine.begin; i < mine.end; ++i) {
      const float sum = x_[b * n + i] + change_[b * n + i];
      x_[b * n + i] = numbers_ == DecodeNumbers::ring ? fold(sum) : sum;
    }
  }
}

std::uint64_t DecodeWalk::read(std::size_t thread) const {
  constexpr std::size_t kNumbers = sizeof(std::uint64_t) / sizeof(Bf16);
  std::uint64_t sum = 0;
  for (const auto& part : {set_.weights, set_.cache}) {
    const host::Slice mine = host::slice(part.size(), threads_, thread, kLine * 2);  // a line of BF16
    sum += code_.read(reinterpret_cast<const std::uint64_t*>(part.data() + mine.begin),
                      (mine.end - mine.begin) / kNumbers);
  }
  return sum;
}

}  // namespace assay::inference
