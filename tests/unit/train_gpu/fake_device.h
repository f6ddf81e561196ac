// fake_device: a device whose memory and arithmetic are this process', and collectives between threads: what the engine
// asks of a GPU, and what it asks of NCCL, without either.
#pragma once

#include <algorithm>
#include <barrier>
#include <bit>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <limits>
#include <map>
#include <mutex>
#include <set>
#include <span>
#include <stdexcept>
#include <vector>

#include "workloads/train/engine/host_memory.h"
#include "workloads/train_gpu/device_core.h"
#include "workloads/train_gpu/device_line.h"

namespace assay::train_gpu {

/// The nearest BF16, of two as near the even one.
inline float as_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return std::bit_cast<float>((bits + 0x7FFFU + ((bits >> 16U) & 1U)) & 0xFFFF0000U);
}

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

/// What a device is asked, in its order. Products are plain loops, so that no library is believed.
class FakeDevice {
 public:
  std::vector<ProductShape> shapes;  ///< of all products so far
  bool bf16 = false;                 ///< factors are packed first

  std::span<float> take(std::size_t count) { return room_.take(count); }
  void copy_in(float* to, std::span<const float> values) { std::ranges::copy(values, to); }
  void copy_out(std::span<float> values, const float* from) { std::copy_n(from, values.size(), values.begin()); }
  void tokens(const std::vector<std::int32_t>& values) { tokens_ = values; }
  void clear(float* to, std::size_t count) { std::fill_n(to, count, 0.0F); }
  void fold(float* values, std::size_t count) { train::fold({values, count}); }

  void product(const ProductShape& shape, const float* a, const float* b, float* c) {
    shapes.push_back(shape);
    if (!bf16) return multiply(shape, a, b, c);
    multiply(packed(shape), packed_numbers(a_of(shape), a).data(), packed_numbers(b_of(shape), b).data(), c);
  }

  static void multiply(const ProductShape& s, const float* a, const float* b, float* c) {
    for (std::int64_t one = 0; one < s.batch; ++one) {
      for (std::int64_t i = 0; i < s.m; ++i) {
        for (std::int64_t j = 0; j < s.n; ++j) {
          float sum = 0;
          for (std::int64_t k = 0; k < s.k; ++k)
            sum += a[one * s.a_stride + (s.a_turned ? k * s.lda + i : i * s.lda + k)] *
                   b[one * s.b_stride + (s.b_turned ? j * s.ldb + k : k * s.ldb + j)];
          float& to = c[one * s.c_stride + i * s.ldc + j];
          to = s.kept == 0 ? sum : to + sum;
        }
      }
    }
  }

  void add(std::size_t count, const float* a, const float* b, float* out, bool exact) {
    train::add(count, a, b, out, exact);
  }
  void norm(const train::NormShape& shape, const float* x, const float* gain, float* out, float* inverse) {
    train::norm(shape, x, gain, out, inverse);
  }
  void norm_back(const train::NormShape& shape, const float* x, const float* gain, const float* inverse,
                 const float* above, float* gradient, float* gain_gradient) {
    train::norm_back(shape, x, gain, inverse, above, gradient, gain_gradient);
  }
  void activate(std::size_t rows, std::size_t width, const float* both, float* out, bool exact) {
    train::activate(rows, width, both, out, exact);
  }
  void activate_back(std::size_t rows, std::size_t width, const float* both, const float* above, float* gradient,
                     bool exact) {
    train::activate_back(rows, width, both, above, gradient, exact);
  }
  void softmax(const ScoreBatch& batch, float* scores, float scale) {
    for (std::size_t i = 0; i < batch.heads; ++i) train::softmax(batch.rows, scores + i * batch.stride, scale);
  }
  void softmax_back(const ScoreBatch& batch, const float* kept, float* above, std::size_t above_stride, float scale) {
    for (std::size_t i = 0; i < batch.heads; ++i)
      train::softmax_back(batch.rows, kept + i * batch.stride, above + i * above_stride, scale);
  }
  void row_sums(std::size_t rows, std::size_t columns, const float* logits, float* sums, bool exact) {
    train::row_sums(rows, columns, logits, sums, exact);
  }
  void loss_back(const LossShape& shape, const float* sums, std::size_t targets, float* logits) {
    for (std::size_t row = 0; row < shape.rows; ++row, logits += shape.columns) {
      const std::int64_t target = tokens_.at(targets + row) - shape.first;
      if (!shape.exact) {
        for (std::size_t i = 0; i < shape.columns; ++i) logits[i] = std::exp(logits[i]) * (shape.share / sums[row]);
      }
      if (target >= 0 && target < static_cast<std::int64_t>(shape.columns))
        logits[target] -= shape.exact ? kExactTarget : shape.share;
      if (shape.exact) train::fold({logits, shape.columns});
    }
  }
  void embed(std::size_t rows, std::size_t width, std::int64_t first, std::size_t here, std::size_t tokens,
             const float* table, float* out) {
    for (std::size_t i = 0; i < rows; ++i, out += width) {
      const std::int64_t row = tokens_.at(tokens + i) - first;
      if (row >= 0 && row < static_cast<std::int64_t>(here))
        std::copy_n(table + static_cast<std::size_t>(row) * width, width, out);
      else
        std::fill_n(out, width, 0.0F);
    }
  }
  void embed_back(std::size_t rows, std::size_t width, std::int64_t first, std::size_t here, std::size_t tokens,
                  const float* above, float* gradients) {
    for (std::size_t i = 0; i < rows; ++i, above += width) {
      const std::int64_t row = tokens_.at(tokens + i) - first;
      if (row < 0 || row >= static_cast<std::int64_t>(here)) continue;
      float* const to = gradients + static_cast<std::size_t>(row) * width;
      train::add(width, to, above, to, false);
    }
  }
  void adam(std::size_t count, const train::AdamState& state, bool exact) { train::adam(count, state, exact); }
  void copy_rows(std::size_t rows, std::size_t width, const float* from, std::size_t from_row, float* to,
                 std::size_t to_row) {
    for (std::size_t i = 0; i < rows; ++i) std::copy_n(from + i * from_row, width, to + i * to_row);
  }

  const std::int32_t* table(const std::vector<std::int32_t>& numbers) { return tables_.emplace_back(numbers).data(); }
  static void gather_rows(const RowChoice& s, const std::int32_t* places, const float* factors, const float* from,
                          float* to) {
    for (std::size_t i = 0; i < s.rows * s.width; ++i) {
      const std::size_t row = i / s.width;
      to[i] = (factors == nullptr ? 1 : factors[row]) * from[train::sized(places[row]) * s.width + i % s.width];
    }
  }
  static void sum_rows(const RowChoice& s, const std::int32_t* places, const float* factors, const float* from,
                       float* to) {
    if (!s.onto) std::fill_n(to, s.rows * s.width, 0.0F);
    for (std::size_t i = 0; i < s.rows * s.each; ++i) {
      const std::size_t place = train::sized(places[i]);
      for (std::size_t k = 0; k < s.width; ++k)
        to[i / s.each * s.width + k] += (factors == nullptr ? 1 : factors[place]) * from[place * s.width + k];
    }
  }
  static void gates(std::size_t rows, std::size_t each, const std::int32_t* places, const std::int32_t* numbers,
                    const float* logits, float* to, bool exact) {
    for (std::size_t row = 0; row < rows; ++row, places += each) {
      float sum = 0;
      for (std::size_t k = 0; k < each; ++k)
        sum += to[places[k]] = exact ? logits[numbers[places[k]]] : std::exp(logits[numbers[places[k]]]);
      for (std::size_t k = 0; k < each && !exact; ++k) to[places[k]] /= sum;
    }
  }
  static void gates_back(const RowChoice& s, const std::int32_t* places, const std::int32_t* numbers,
                         const GatePlaces& at, bool exact) {
    for (std::size_t row = 0; row < s.rows; ++row, places += s.each) {
      std::vector<float> along(s.each, 0);
      float all = 0;
      for (std::size_t k = 0; k < s.each; ++k) {
        for (std::size_t i = 0; i < s.width; ++i)
          along[k] += at.returned[train::sized(places[k]) * s.width + i] * at.above[row * s.width + i];
        all += at.gates[places[k]] * along[k];
      }
      for (std::size_t k = 0; k < s.each; ++k)
        at.logits[numbers[places[k]]] = exact ? along[k] : at.gates[places[k]] * (along[k] - all);
    }
  }

  void begin(std::size_t /*calls*/) {}
  void mark(std::size_t /*call*/) {}
  void end() {}
  [[nodiscard]] double seconds(std::size_t call) const { return static_cast<double>(call); }

 private:
  train::HostBuffers room_;
  std::deque<std::vector<std::int32_t>> tables_;
  std::vector<std::int32_t> tokens_;
};

/// Where the threads of all ranks meet. A wait ends after a minute: a rank has failed, then.
class FakeNetwork {
 public:
  /// Every member brings its data; afterwards `all` of the meeting has them in order of members.
  using Data = std::vector<std::vector<float>>;
  Data meet(const std::vector<std::int64_t>& members, train::Group group, int lane, std::int64_t rank,
            std::span<const float> own, std::size_t round) {
    std::unique_lock lock(mutex_);
    const Key key{static_cast<int>(group), lane, members.front(), round};
    auto& meeting = meetings_[key];
    meeting[rank].assign(own.begin(), own.end());
    changed_.notify_all();
    if (!changed_.wait_for(lock, kPatience, [&] { return meetings_[key].size() == members.size(); }))
      throw std::runtime_error("a member did not come");
    Data all;
    for (const std::int64_t member : members) all.push_back(meetings_[key][member]);
    return all;
  }
  void send(std::int64_t from, std::int64_t to, int channel, std::span<const float> data) {
    const std::lock_guard lock(mutex_);
    messages_[{from, to, channel}].emplace_back(data.begin(), data.end());
    changed_.notify_all();
  }
  std::vector<float> receive(std::int64_t from, std::int64_t to, int channel) {
    std::unique_lock lock(mutex_);
    auto& waiting = messages_[{from, to, channel}];
    if (!changed_.wait_for(lock, kPatience, [&] { return !waiting.empty(); }))
      throw std::runtime_error("no message came");
    auto data = std::move(waiting.front());
    waiting.pop_front();
    return data;
  }

 private:
  static constexpr std::chrono::seconds kPatience{60};
  using Key = std::tuple<int, int, std::int64_t, std::size_t>;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<Key, std::map<std::int64_t, std::vector<float>>> meetings_;
  std::map<std::tuple<std::int64_t, std::int64_t, int>, std::deque<std::vector<float>>> messages_;
};

/// One rank's collectives. Both lanes are done at once, in the order in which they are asked; that what is beside is
/// joined before its data are used is checked by the order of the executor's calls.
class FakeCollectives {
 public:
  FakeCollectives(FakeNetwork& network, const train::ParallelPlan& plan, std::int64_t rank)
      : network_(network), plan_(plan), rank_(rank) {}

  void all_reduce(train::Group group, float* data, std::size_t count, int lane) {
    const auto all = meet(group, {data, count}, lane);
    std::fill_n(data, count, 0.0F);
    for (const auto& one : all) train::add(count, data, one.data(), data, false);
  }
  void all_gather(train::Group group, float* data, std::size_t share, int lane) {
    const auto members = train::members_of(plan_, group, rank_);
    const auto all = meet(group, {data, share * members.size()}, lane);
    for (std::size_t i = 0; i < all.size(); ++i)
      std::copy_n(all[i].begin() + static_cast<std::ptrdiff_t>(i * share), share, data + i * share);
  }
  void reduce_scatter(train::Group group, float* data, std::size_t share, int lane) {
    const auto members = train::members_of(plan_, group, rank_);
    const auto place = static_cast<std::size_t>(std::ranges::find(members, rank_) - members.begin());
    const auto all = meet(group, {data, share * members.size()}, lane);
    std::fill_n(data + place * share, share, 0.0F);
    for (const auto& one : all) {
      float* const to = data + place * share;
      train::add(share, to, one.data() + place * share, to, false);
    }
  }
  void all_to_all(train::Group group, const float* sent, const std::vector<std::size_t>& to, float* data,
                  const std::vector<std::size_t>& from) {
    const auto members = train::members_of(plan_, group, rank_);
    for (std::size_t i = 0; i < members.size(); ++i) {
      network_.send(rank_, members[i], kExchange, {sent, to[i]});
      sent += to[i];
    }
    for (std::size_t i = 0; i < members.size(); ++i) {
      receive(kExchange, members[i], data, from[i]);
      data += from[i];
    }
  }
  void send(int channel, std::int64_t peer, const float* data, std::size_t count) {
    network_.send(rank_, peer, channel, {data, count});
  }
  void receive(int channel, std::int64_t peer, float* data, std::size_t count) {
    const auto came = network_.receive(peer, rank_, channel);
    if (came.size() != count) throw std::runtime_error("a message has another size");
    std::ranges::copy(came, data);
  }
  void fork() {}
  void note(std::size_t place) { noted_ = place + 1; }
  void join(std::size_t place) {
    if (place >= noted_) throw std::logic_error("what was not started is waited for");
  }

 private:
  static constexpr int kExchange = 2;  // a channel beside those of the pipeline

  FakeNetwork::Data meet(train::Group group, std::span<const float> data, int lane) {
    return network_.meet(train::members_of(plan_, group, rank_), group, lane, rank_, data, rounds_[{group, lane}]++);
  }

  FakeNetwork& network_;
  const train::ParallelPlan& plan_;
  std::int64_t rank_;
  std::map<std::pair<train::Group, int>, std::size_t> rounds_;
  std::size_t noted_ = 0;
};

}  // namespace assay::train_gpu
