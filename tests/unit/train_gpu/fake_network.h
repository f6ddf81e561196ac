// fake_network: collectives between threads, each of which is a rank: what the engine asks of NCCL, without it.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <span>
#include <stdexcept>
#include <vector>

#include "tests/unit/train_gpu/fake_device.h"
#include "workloads/train_gpu/device_line.h"

namespace assay::train_gpu {

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

  template <class Number>
  void all_reduce(train::Group group, Number* data, std::size_t count, int lane) {
    const auto all = meet(group, data, count, lane);
    keep(sum_of(all, 0, count), data);
  }
  template <class Number>
  void all_gather(train::Group group, Number* data, std::size_t share, int lane) {
    const auto members = train::members_of(plan_, group, rank_);
    const auto all = meet(group, data, share * members.size(), lane);
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto begin = all[i].begin() + static_cast<std::ptrdiff_t>(i * share);
      keep({begin, begin + static_cast<std::ptrdiff_t>(share)}, data + i * share);
    }
  }
  template <class Number>
  void reduce_scatter(train::Group group, Number* data, std::size_t share, int lane) {
    const auto members = train::members_of(plan_, group, rank_);
    const auto place = static_cast<std::size_t>(std::ranges::find(members, rank_) - members.begin());
    const auto all = meet(group, data, share * members.size(), lane);
    keep(sum_of(all, place * share, share), data + place * share);
  }
  template <class Number>
  void all_to_all(train::Group group, const Number* sent, const std::vector<std::size_t>& to, Number* data,
                  const std::vector<std::size_t>& from) {
    const auto members = train::members_of(plan_, group, rank_);
    for (std::size_t i = 0; i < members.size(); ++i) {
      send(kExchange, members[i], sent, to[i]);
      sent += to[i];
    }
    for (std::size_t i = 0; i < members.size(); ++i) {
      receive(kExchange, members[i], data, from[i]);
      data += from[i];
    }
  }
  template <class Number>
  void send(int channel, std::int64_t peer, const Number* data, std::size_t count) {
    network_.send(rank_, peer, channel, {Wide(data, count).data(), count});
  }
  template <class Number>
  void receive(int channel, std::int64_t peer, Number* data, std::size_t count) {
    const auto came = network_.receive(peer, rank_, channel);
    if (came.size() != count) throw std::runtime_error("a message has another size");
    keep(came, data);
  }
  void fork() {}
  void note(std::size_t place) { noted_ = place + 1; }
  void join(std::size_t place) {
    if (place >= noted_) throw std::logic_error("what was not started is waited for");
  }

 private:
  static constexpr int kExchange = 2;  // a channel beside those of the pipeline

  template <class Number>
  FakeNetwork::Data meet(train::Group group, const Number* data, std::size_t count, int lane) {
    return network_.meet(train::members_of(plan_, group, rank_), group, lane, rank_, {Wide(data, count).data(), count},
                         rounds_[{group, lane}]++);
  }
  /// The sum of all members' numbers from `begin` on, in their order.
  static std::vector<float> sum_of(const FakeNetwork::Data& all, std::size_t begin, std::size_t count) {
    std::vector<float> sum(count, 0);
    for (const auto& one : all) train::add(count, sum.data(), one.data() + begin, sum.data(), false);
    return sum;
  }
  template <class Number>
  static void keep(const std::vector<float>& from, Number* to) {
    for (std::size_t i = 0; i < from.size(); ++i) to[i] = train::narrowed<Number>(from[i]);
  }

  FakeNetwork& network_;
  const train::ParallelPlan& plan_;
  std::int64_t rank_;
  std::map<std::pair<train::Group, int>, std::size_t> rounds_;
  std::size_t noted_ = 0;
};

}  // namespace assay::train_gpu
