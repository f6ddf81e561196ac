// expert_exchange: messages of a mesh, first the numbers of slots, then the slots; nothing allocates while a time is
// taken but what Gloo keeps of its own.
#include "workloads/inference/expert_exchange.h"

#include <algorithm>
#include <chrono>
#include <stdexcept>

#include <fmt/format.h>

#include "probes/core/statistics.h"
#include "probes/gloo/mesh.h"
#include "workloads/inference/exchange_check.h"
#include "workloads/inference/kv_shape.h"
#include "workloads/inference/slot_layout.h"

namespace assay::inference {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kCountTag = 100, kOutTag = 101, kBackTag = 102, kEchoTag = 103;
constexpr int kEchoes = 9, kEchoWarmup = 2;

double since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

}  // namespace

class ExpertExchange::Rank {
 public:
  Rank(gloo::Mesh& mesh, const ExchangeJob& job)
      : mesh_(mesh),
        job_(job),
        sizes_(job),
        most_(job),
        ranks_(train::sized(job.routing.ranks)),
        own_(train::sized(job.rank)),
        check_(job),
        tokens_(most_.tokens * job.out_bytes() / kWord),
        sums_(most_.tokens * job.back_bytes() / kWord),
        experts_(most_.tokens * train::sized(job.routing.top_k)),
        leaving_(sizes_.out_slot(), ranks_, most_.sent),
        came_(sizes_.out_slot(), ranks_, most_.received),
        made_(sizes_.back_slot(), ranks_, most_.received),
        returned_(sizes_.back_slot(), ranks_, most_.sent),
        counts_out_(ranks_),
        counts_in_(ranks_),
        filled_(ranks_),
        count_ways_(mesh, ranks_, std::as_writable_bytes(std::span(counts_out_)),
                    std::as_writable_bytes(std::span(counts_in_))),
        out_ways_(mesh, ranks_, leaving_.memory(), came_.memory()),
        back_ways_(mesh, ranks_, made_.memory(), returned_.memory()) {}

  ExchangeStep step(const Router& router, std::uint64_t number, const Tamper& tamper) {
    ExchangeStep taken;
    prepare(router, number);
    wait_s_ = 0;
    mesh_.barrier();
    auto begin = Clock::now();
    dispatch(number, tamper);
    taken.times.dispatch_s = since(begin);
    taken.findings.take(check_.arrivals(router, number, came_, leaving_));
    mesh_.barrier();
    begin = Clock::now();
    work();
    if (tamper) offer(made_, true, tamper);
    const double work_s = since(begin);
    waiting([&] { mesh_.barrier(); });
    begin = Clock::now();
    combine();
    taken.times.combine_s = since(begin);
    // The barrier's time is part of wait_s and of none of the three.
    taken.times.wait_s = wait_s_;
    taken.times.self_s = taken.times.dispatch_s + work_s + taken.times.combine_s - (wait_s_ - barrier_s_);
    taken.findings.take(check_.results(router, number, tokens_, sums_, returned_, made_));
    taken.traffic = traffic();
    return taken;
  }

  double round_trip(std::size_t peer) {
    const bool leads = own_ < peer;
    if (!leaving_.lay_out(std::vector<std::size_t>(ranks_, 0)) || !came_.lay_out(std::vector<std::size_t>(ranks_, 0)))
      throw std::logic_error("no room for a slot");
    const auto send = [&] {
      out_ways_.out[peer].send(static_cast<int>(peer), kEchoTag, 0, sizes_.out_slot());
      out_ways_.out[peer].wait_sent();
    };
    const auto receive = [&] {
      out_ways_.in[peer].receive(static_cast<int>(peer), kEchoTag, 0, sizes_.out_slot());
      out_ways_.in[peer].wait_received();
    };
    std::vector<double> times;
    for (int i = 0; i < kEchoWarmup + kEchoes; ++i) {
      const auto begin = Clock::now();
      if (leads) send();
      receive();
      if (!leads) send();
      if (i >= kEchoWarmup) times.push_back(since(begin));
    }
    return median(times);
  }

 private:
  /// Windows towards every rank, the own one unused, on two memories.
  struct Ways {
    Ways(gloo::Mesh& mesh, std::size_t ranks, std::span<std::byte> from, std::span<std::byte> into) {
      for (std::size_t i = 0; i < ranks; ++i) {
        out.push_back(mesh.window(from.data(), from.size()));
        in.push_back(mesh.window(into.data(), into.size()));
      }
    }
    std::vector<gloo::Window> out, in;
  };

  template <class Wait>
  void waiting(const Wait& wait) {
    const auto begin = Clock::now();
    wait();
    barrier_s_ = since(begin);
    wait_s_ += barrier_s_;
  }

  /// The tokens of this rank and their experts: the output of the layers before.
  void prepare(const Router& router, std::uint64_t number) {
    first_ = router.first_token(job_.rank);
    count_ = train::sized(router.first_token(job_.rank + 1) - first_);
    const std::size_t k = train::sized(job_.routing.top_k);
    for (std::size_t i = 0; i < count_; ++i) {
      const std::int64_t token = first_ + static_cast<std::int64_t>(i);
      const auto words = std::span(tokens_).subspan(i * sizes_.out / kWord, sizes_.out / kWord);
      cluster_storage::fill_payload(token_key(job_.nonce, number, token), 0, std::as_writable_bytes(words));
      router.choose(number, token, std::span(experts_).subspan(i * k, k));
    }
    traffic_ = {};
    for (std::size_t i = 0; i < count_ * k; ++i)
      traffic_.count_copy(job_, train::sized(job_.routing.rank_of(experts_[i])));
  }

  [[nodiscard]] ExchangeTraffic traffic() {
    for (std::size_t rank = 0; rank < ranks_; ++rank) {
      const std::size_t slots = leaving_.count(rank);
      traffic_.slots += static_cast<std::int64_t>(slots);
      traffic_.count_bytes(job_, rank, slots * (sizes_.out_slot() + sizes_.back_slot()));
    }
    return traffic_;
  }

  void pack(std::uint64_t number) {
    std::ranges::fill(filled_, 0);
    const auto experts = std::span(experts_).first(count_ * train::sized(job_.routing.top_k));
    for_each_copy(job_, experts, [&](std::size_t, std::size_t target, std::uint16_t, bool is_new) {
      filled_[target] += is_new ? 1 : 0;
    });
    if (!leaving_.lay_out(filled_)) throw std::logic_error("more slots leave than were counted");
    std::ranges::fill(filled_, 0);
    std::size_t used = 0;  // experts in the last slot of a target; of one token they may alternate
    for_each_copy(job_, experts, [&](std::size_t i, std::size_t target, std::uint16_t expert, bool is_new) {
      if (!is_new) {
        const auto slot = leaving_.slot(target, filled_[target] - 1);
        for (used = 0; expert_of(slot, used) != kNoExpert;) ++used;
        return set_expert(slot, used, expert);
      }
      const auto slot = leaving_.slot(target, filled_[target]++);
      const std::int64_t token = first_ + static_cast<std::int64_t>(i);
      set_head(slot, {.token = static_cast<std::uint64_t>(token), .proof = proof_of(job_.nonce, number, token)});
      for (std::size_t place = 0; place < sizes_.experts; ++place) set_expert(slot, place, kNoExpert);
      set_expert(slot, 0, expert);
      std::memcpy(slot.data() + sizes_.before(), tokens_.data() + i * sizes_.out / kWord, sizes_.out);
    });
  }

  void offer(SlotRegions& slots, bool back, const Tamper& tamper) {
    for (std::size_t rank = 0; rank < ranks_; ++rank) {
      const std::size_t room = slots.count(rank) + 1;
      tamper({.back = back,
              .target = static_cast<std::int64_t>(rank),
              .count = back ? nullptr : &slots.count(rank),
              .each = slots.slot_bytes(),
              .slots = slots.memory().subspan(slots.offset(rank), room * slots.slot_bytes())});
    }
  }

  void dispatch(std::uint64_t number, const Tamper& tamper) {
    pack(number);
    if (tamper) offer(leaving_, false, tamper);
    for (std::size_t rank = 0; rank < ranks_; ++rank) counts_out_[rank] = leaving_.count(rank);
    for_each_peer([&](std::size_t peer, int to) {
      count_ways_.in[peer].receive(to, kCountTag, peer * kWord, kWord);
      count_ways_.out[peer].send(to, kCountTag, peer * kWord, kWord);
    });
    finish(
        count_ways_, [](std::size_t) { return true; }, [](std::size_t) { return true; });
    counts_in_[own_] = 0;
    if (!came_.lay_out({counts_in_.begin(), counts_in_.end()}))
      throw std::runtime_error(fmt::format("rank {} is to receive more slots than all tokens have", own_));
    move(out_ways_, kOutTag, leaving_, came_);
  }

  /// Result of this rank's experts for each slot; of several, the sum.
  void work() {
    std::vector<std::size_t> counts(counts_in_.begin(), counts_in_.end());
    counts[own_] = leaving_.count(own_);
    if (!made_.lay_out(counts)) throw std::logic_error("no room for what experts make");
    for (std::size_t source = 0; source < ranks_; ++source) {
      SlotRegions& slots = source == own_ ? leaving_ : came_;
      for (std::size_t i = 0; i < counts[source]; ++i) {
        const auto slot = slots.slot(source, i), result = made_.slot(source, i);
        ExpertMap map;
        for (std::size_t place = 0; place < sizes_.experts && expert_of(slot, place) != kNoExpert; ++place)
          map.add(job_.nonce, expert_of(slot, place));
        set_head(result, head_of(slot));
        apply(map, words_from(slot, sizes_.before()), words_from(result, sizeof(SlotHead)));
      }
    }
  }

  void combine() {
    std::vector<std::size_t>& counts = filled_;
    for (std::size_t rank = 0; rank < ranks_; ++rank) counts[rank] = rank == own_ ? 0 : leaving_.count(rank);
    if (!returned_.lay_out(counts)) throw std::logic_error("no room for what comes back");
    move(back_ways_, kBackTag, made_, returned_);
    std::ranges::fill(sums_, 0);
    const std::size_t back = sizes_.back / kWord;
    for (std::size_t rank = 0; rank < ranks_; ++rank) {
      SlotRegions& slots = rank == own_ ? made_ : returned_;
      for (std::size_t i = 0; i < slots.count(rank); ++i) {
        const auto slot = slots.slot(rank, i);
        const std::uint64_t at = head_of(slot).token - static_cast<std::uint64_t>(first_);
        if (at < count_)  // else the sum that it is missing in shows
          add_words(words_from(slot, sizeof(SlotHead)), std::span(sums_).subspan(at * back, back));
      }
    }
  }

  template <class Work>
  void for_each_peer(const Work& work) const {
    for (std::size_t i = 1; i < ranks_; ++i) {  // each begins with the one behind it: no rank is first for all
      const std::size_t peer = (own_ + i) % ranks_;
      work(peer, static_cast<int>(peer));
    }
  }

  template <class Sends, class Receives>
  void finish(Ways& ways, const Sends& sends, const Receives& receives) {
    const auto begin = Clock::now();
    for_each_peer([&](std::size_t peer, int) {
      if (receives(peer)) ways.in[peer].wait_received();
    });
    for_each_peer([&](std::size_t peer, int) {
      if (sends(peer)) ways.out[peer].wait_sent();
    });
    wait_s_ += since(begin);
  }

  void move(Ways& ways, std::uint64_t tag, SlotRegions& from, SlotRegions& into) {
    for_each_peer([&](std::size_t peer, int to) {
      if (into.count(peer) > 0) ways.in[peer].receive(to, tag, into.offset(peer), into.bytes(peer));
    });
    for_each_peer([&](std::size_t peer, int to) {
      if (from.count(peer) > 0) ways.out[peer].send(to, tag, from.offset(peer), from.bytes(peer));
    });
    finish(
        ways, [&](std::size_t peer) { return from.count(peer) > 0; },
        [&](std::size_t peer) { return into.count(peer) > 0; });
  }

  gloo::Mesh& mesh_;
  ExchangeJob job_;
  SlotSizes sizes_;
  MostSlots most_;
  std::size_t ranks_, own_;
  ExchangeCheck check_;
  std::vector<std::uint64_t> tokens_, sums_;
  std::vector<std::int64_t> experts_;  ///< of this rank's tokens, top_k each
  std::int64_t first_ = 0;             ///< this rank's first token
  std::size_t count_ = 0;              ///< this rank's tokens
  SlotRegions leaving_, came_, made_, returned_;
  std::vector<std::uint64_t> counts_out_, counts_in_;
  std::vector<std::size_t> filled_;
  Ways count_ways_, out_ways_, back_ways_;  // before their memory goes, the windows go
  ExchangeTraffic traffic_;
  double wait_s_ = 0, barrier_s_ = 0;
};

ExpertExchange::ExpertExchange(gloo::Mesh& mesh, const ExchangeJob& job) : rank_(std::make_unique<Rank>(mesh, job)) {}
ExpertExchange::~ExpertExchange() = default;
ExchangeStep ExpertExchange::step(const Router& router, std::uint64_t number, const Tamper& tamper) {
  return rank_->step(router, number, tamper);
}
double ExpertExchange::round_trip(std::int64_t peer) { return rank_->round_trip(train::sized(peer)); }

}  // namespace assay::inference
