// virtual_time: advances each rank until it waits for another, in turns, until none can advance; a collective ends with
// its last member.
#include "workloads/train/graph/virtual_time.h"

#include <algorithm>
#include <deque>
#include <map>
#include <stdexcept>
#include <tuple>
#include <utility>

#include <fmt/format.h>

namespace assay::train {
namespace {

/// One collective of one group: members that have arrived.
struct Meeting {
  std::size_t arrived = 0;
  double ready_s = 0, takes_s = 0;
};

/// A rank on its way.
struct Walker {
  std::size_t next = 0;  ///< operation
  double now_s = 0;
  bool joined = false;                                     ///< its current collective counts it already
  std::deque<std::pair<std::size_t, double>> beside = {};  ///< overlapped operations, and when each was posted
  double beside_s = 0;                                     ///< when the last of those ended
  bool beside_joined = false;
  std::map<std::int64_t, double> buckets = {};  ///< when the gradients of a bucket were reduced, negative: not yet
  std::map<std::tuple<Group, std::int64_t, bool>, std::size_t> meetings = {};  ///< so far, by group, first member, lane
};

class Walk {
 public:
  Walk(const ParallelPlan& plan, const std::vector<std::vector<Op>>& graphs, const Duration& duration)
      : plan_(plan), graphs_(graphs), duration_(duration), walkers_(graphs.size()) {
    for (const auto& ops : graphs) line_.ranks.emplace_back(ops.size());
  }

  Timeline run() {
    bool going = true;
    while (going) {
      going = false;
      for (std::size_t rank = 0; rank < walkers_.size(); ++rank) {
        while (step_beside(rank) || step(rank)) going = true;
      }
    }
    for (std::size_t rank = 0; rank < walkers_.size(); ++rank) {
      const Walker& walker = walkers_[rank];
      if (walker.next < graphs_[rank].size() || !walker.beside.empty())
        throw std::runtime_error(
            fmt::format("rank {} waits forever in operation {} of {}", rank, walker.next, graphs_[rank].size()));
      line_.total_s = std::max({line_.total_s, walker.now_s, walker.beside_s});
    }
    return std::move(line_);
  }

 private:
  using Key = std::tuple<Group, std::int64_t, bool, std::size_t>;

  bool step(std::size_t rank) {
    Walker& walker = walkers_[rank];
    if (walker.next >= graphs_[rank].size()) return false;
    const Op& op = graphs_[rank][walker.next];
    if (op.beside) {
      walker.beside.emplace_back(walker.next, walker.now_s);
      walker.buckets[op.bucket] = -1;
      ++walker.next;
      return true;
    }
    double begin_s = walker.now_s;
    if (op.kind == OpKind::optimizer) {
      if (const auto bucket = walker.buckets.find(op.bucket); bucket != walker.buckets.end()) {
        if (bucket->second < 0) return false;
        begin_s = std::max(begin_s, bucket->second);
      }
    }
    if (op.motion == Motion::send) {
      sent_[{static_cast<std::int64_t>(rank), op.peer}].push_back(begin_s + duration_(rank, op, false));
      return place(rank, begin_s, begin_s);
    }
    if (op.motion == Motion::receive) {
      auto& messages = sent_[{op.peer, static_cast<std::int64_t>(rank)}];
      if (messages.empty()) return false;
      const double end_s = std::max(begin_s, messages.front());
      messages.pop_front();
      return place(rank, begin_s, end_s);
    }
    if (op.kind != OpKind::collective) return place(rank, begin_s, begin_s + duration_(rank, op, is_accompanied(rank)));
    const auto end_s = meet(rank, op, begin_s, walker.joined);
    return end_s && place(rank, begin_s, *end_s);
  }

  /// Whether an overlapped operation of `rank` that takes time is under way.
  bool is_accompanied(std::size_t rank) {
    return std::ranges::any_of(walkers_[rank].beside,
                               [&](const auto& one) { return duration_(rank, graphs_[rank][one.first], false) > 0; });
  }

  bool step_beside(std::size_t rank) {
    Walker& walker = walkers_[rank];
    if (walker.beside.empty()) return false;
    const auto [index, posted_s] = walker.beside.front();
    const Op& op = graphs_[rank][index];
    const double begin_s = std::max(posted_s, walker.beside_s);
    const auto end_s = meet(rank, op, begin_s, walker.beside_joined);
    if (!end_s) return false;
    line_.ranks[rank][index] = {begin_s, *end_s};
    walker.buckets[op.bucket] = walker.beside_s = *end_s;
    walker.beside_joined = false;
    walker.beside.pop_front();
    return true;
  }

  bool place(std::size_t rank, double begin_s, double end_s) {
    Walker& walker = walkers_[rank];
    line_.ranks[rank][walker.next++] = {begin_s, end_s};
    walker.now_s = end_s;
    walker.joined = false;
    return true;
  }

  /// When the collective of `op` ends, once all members have come.
  std::optional<double> meet(std::size_t rank, const Op& op, double ready_s, bool& joined) {
    const auto [first, members] = group_of(rank, op.group);
    auto& count = walkers_[rank].meetings[{op.group, first, op.beside}];
    Meeting& meeting = meetings_[Key{op.group, first, op.beside, count}];
    if (!joined) {
      joined = true;
      ++meeting.arrived;
      meeting.ready_s = std::max(meeting.ready_s, ready_s);
      meeting.takes_s = std::max(meeting.takes_s, duration_(rank, op, false));
    }
    if (meeting.arrived < members) return std::nullopt;
    ++count;
    return meeting.ready_s + meeting.takes_s;
  }

  /// First member and number of the ranks of `group` that `rank` belongs to.
  std::pair<std::int64_t, std::size_t> group_of(std::size_t rank, Group group) {
    const auto [known, is_new] = groups_.try_emplace({group, rank});
    if (is_new) {
      const auto members = members_of(plan_, group, static_cast<std::int64_t>(rank));
      known->second = {members.front(), members.size()};
    }
    return known->second;
  }

  const ParallelPlan& plan_;
  const std::vector<std::vector<Op>>& graphs_;
  const Duration& duration_;
  std::vector<Walker> walkers_;
  std::map<std::pair<std::int64_t, std::int64_t>, std::deque<double>> sent_;
  std::map<Key, Meeting> meetings_;
  std::map<std::pair<Group, std::size_t>, std::pair<std::int64_t, std::size_t>> groups_;
  Timeline line_;
};

}  // namespace

Timeline walk(const ParallelPlan& plan, const std::vector<std::vector<Op>>& graphs, const Duration& duration) {
  return Walk(plan, graphs, duration).run();
}

std::optional<double> overlap_efficiency(double full_s, double comp_s, double comm_s) {
  const double shorter_s = std::min(comp_s, comm_s);
  if (shorter_s <= 0) return std::nullopt;
  return (comp_s + comm_s - full_s) / shorter_s;
}

}  // namespace assay::train
