// device_exchange: one rank's part of an exchange whose rows are in a device's memory. Knows neither CUDA nor NCCL: a
// unit test runs it on a fake device and a fake wire.
//
// Up to eight steps at a time. Their tables and tokens are made first, the ranks compare how many slots they expect of
// each other, and pairs of dispatch and combine that do not count warm up. Then all steps are enqueued behind a gate
// and begin together; between parts that are timed the ranks meet on the device, and every slot and sum is checked
// there:
//
//   meet | pack  send | check slots  meet | work | meet | send back  add up | check results and sums | meet | pack ...
//        |- dispatch -|                                 |---- combine -----|
//
// At last the same steps run as a row of pairs in which no rank waits but for its data: the time of one pair. The sums
// of the row are checked at its end.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "probes/core/statistics.h"
#include "probes/cuda/patience.h"
#include "workloads/inference/kv_shape.h"
#include "workloads/inference/moe_evidence.h"
#include "workloads/inference/put_plan.h"
#include "workloads/inference/row_plan.h"

namespace assay::inference {

/// Calls of Device and Wire are enqueued in one order, and reading waits for them. `Device` has memory, runs RowWork,
/// marks times and holds its work back behind a gate; `Wire` sends parts of memory between ranks, lets them meet, and
/// waits for all work within a limit. Its exchange() gets where in the memory of each rank a part lands, and at its end
/// either all ranks have come to that end, or only the pair of a round trip: a wire that puts parts into the memory of
/// others waits for nothing before.
template <class Device, class Wire>
class DeviceExchange {
 public:
  /// Takes all memory. `device` and `wire` outlive this object.
  DeviceExchange(const ExchangeJob& job, Device& device, Wire& wire)
      : job_(job), device_(device), wire_(wire), rooms_(job), all_(row_view(job)) {
    all_.leaving = take<std::uint64_t>(rooms_.leaving);
    all_.came = take<std::uint64_t>(rooms_.came);
    all_.made = take<std::uint64_t>(rooms_.made);
    all_.returned = take<std::uint64_t>(rooms_.returned);
    all_.seen = take<std::uint32_t>(rooms_.seen);
    all_.found = take<std::uint64_t>(rooms_.found);
    wire_.lands(all_.came, rooms_.came);
    wire_.lands(all_.returned, rooms_.returned);
    for (std::size_t i = 0; i < kMostSteps; ++i) {
      RowView& view =
          steps_.emplace_back(Step{.view = all_, .plan = {}, .out = {}, .in = {}, .made = {}, .back = {}}).view;
      view.found = all_.found + i * found_words(view.ranks);
      view.tokens = take<std::uint64_t>(rooms_.tokens);
      view.sums = take<std::uint64_t>(rooms_.sums);
    }
    for (Step& step : steps_) {
      step.view.to = take<std::uint64_t>(rooms_.ranks);
      step.view.from = take<std::uint64_t>(rooms_.ranks);
      step.view.firsts = take<std::int64_t>(rooms_.ranks);
      step.view.tokens_of = take<std::uint32_t>(rooms_.tokens_of);
      step.view.experts = take<std::uint16_t>(rooms_.experts);
      step.view.rows_of = take<std::uint64_t>(rooms_.rows_of);
      step.view.routes = take<std::uint16_t>(rooms_.routes);
    }
  }

  /// Steps `first` to `first + count` of `router`'s family after `lead` pairs that do not count, each checked; `rest`
  /// is called when only the steps are left to do. Without a lead nothing is sent before them, and no row of pairs
  /// follows.
  MoeSteps steps(const Router& router, std::uint64_t first, std::uint64_t count, std::uint64_t lead,
                 const std::function<void()>& rest = {}) {
    if (count == 0 || count > kMostSteps) throw std::logic_error("more steps at a time than there is memory for");
    count_ = count;
    for (std::uint64_t i = 0; i < count; ++i) prepare(steps_[i], row_plan(job_, router, first + i));
    if (lead > 0) agree();
    for (std::uint64_t i = 0; i < lead; ++i) enqueue_pair(steps_[i % count]);
    wire_.finish();
    if (rest) rest();
    MoeSteps taken;
    chain(taken);
    judge(router.family(), taken);
    if (lead == 0) return taken;
    taken.pair = row();
    judge(router.family(), taken);
    return taken;
  }

  /// The part of steps that the device is at, by has_passed(mark). From any thread.
  template <class HasPassed>
  [[nodiscard]] cuda::InHand in_hand(const HasPassed& has_passed) const {
    constexpr std::array<std::pair<const char*, bool>, kMarks> kParts = {{{"meeting before a step", true},
                                                                          {"packing", false},
                                                                          {"dispatch", true},
                                                                          {"checking slots and meeting", true},
                                                                          {"work of experts", false},
                                                                          {"meeting before combine", true},
                                                                          {"combine", true},
                                                                          {"adding up", false}}};
    for (std::size_t i = 0; chained_ && i < count_ * kMarks; ++i) {
      if (!has_passed(i))
        return {.words = fmt::format("{}, step {} of {}", kParts[i % kMarks].first, i / kMarks + 1, count_),
                .waits = kParts[i % kMarks].second};
    }
    return {.words = "pairs of dispatch and combine", .waits = all_.ranks > 1};
  }

  /// The median time in s of one slot to `peer` and back while nothing else is sent; the lower of the two ranks leads.
  double round_trip(std::int64_t peer) {
    constexpr std::size_t kEchoes = 9, kWarmup = 2;
    std::vector<collective::Part> none(all_.ranks), one(all_.ranks);
    one.at(train::sized(peer)).bytes = all_.out_slot() * sizeof(std::uint64_t);
    const std::vector<std::uint64_t> at(all_.ranks);
    const auto send = [&] { wire_.exchange(all_.leaving, one, all_.came, none, {.at = at, .all = false}); };
    const auto receive = [&] { wire_.exchange(all_.leaving, none, all_.came, one, {.at = at, .all = false}); };
    const bool leads = job_.rank < peer;
    for (std::size_t i = 0; i < kEchoes + kWarmup; ++i) {
      device_.mark(2 * i);
      if (leads) send();
      receive();
      if (!leads) send();
      device_.mark(2 * i + 1);
    }
    wire_.finish();
    std::vector<double> times;
    for (std::size_t i = kWarmup; i < kEchoes + kWarmup; ++i) times.push_back(device_.seconds(2 * i, 2 * i + 1));
    return median(times);
  }

 private:
  /// The marks of a step, in their order.
  enum Mark : std::size_t { begun, packed, sent, working, worked, met, returned, added, kMarks };
  struct Step {
    RowView view;
    RowPlan plan;
    std::vector<collective::Part> out, in, made, back;  ///< of messages, by rank
  };

  template <class Number>
  Number* take(std::uint64_t bytes) {
    return reinterpret_cast<Number*>(device_.take(bytes));
  }
  template <class Number>
  void put(const Number* to, const std::vector<Number>& table) {
    device_.put(const_cast<Number*>(to), std::as_bytes(std::span(table)));  // kernels only read it
  }

  void prepare(Step& step, RowPlan plan) {
    RowView& view = step.view;
    view.step = plan.step;
    put(view.to, plan.to);
    put(view.from, plan.from);
    put(view.firsts, plan.firsts);
    put(view.tokens_of, plan.tokens_of);
    put(view.experts, plan.experts);
    put(view.rows_of, plan.rows_of);
    put(view.routes, plan.routes);
    step.out = row_parts(plan.to, view.out_slot(), view.own, view.loops);
    step.in = row_parts(plan.from, view.out_slot(), view.own, view.loops);
    step.made = row_parts(plan.from, view.back_slot(), view.own, view.loops);
    step.back = row_parts(plan.to, view.back_slot(), view.own, view.loops);
    step.plan = std::move(plan);
    run(RowWork::make, step);
  }

  /// Every rank says how many slots it has for every other, which must be as many as that one expects.
  void agree() {
    const std::size_t ranks = all_.ranks;
    std::vector<collective::Part> words(ranks);
    for (std::size_t rank = 0; rank < ranks; ++rank)
      if (rank != all_.own) words[rank] = {.offset = rank * sizeof(std::uint64_t), .bytes = sizeof(std::uint64_t)};
    std::vector<std::uint64_t> counts(ranks), told(ranks);
    const std::vector<std::uint64_t> at(ranks, all_.own * sizeof(std::uint64_t));
    wire_.barrier();  // slots of round trips are read
    for (std::size_t i = 0; i < count_; ++i) {
      const RowPlan& plan = steps_[i].plan;
      for (std::size_t rank = 0; rank < ranks; ++rank) counts[rank] = plan.to[rank + 1] - plan.to[rank];
      put(all_.leaving, counts);
      wire_.exchange(all_.leaving, words, all_.came, words, {.at = at});
      wire_.finish();
      device_.get(std::as_writable_bytes(std::span(told)), all_.came);
      wire_.barrier();  // all have read the counts, and slots may come
      for (std::size_t rank = 0; rank < ranks; ++rank) {
        const std::uint64_t due = plan.from[rank + 1] - plan.from[rank];
        if (rank != all_.own && told[rank] != due)
          throw std::runtime_error(
              fmt::format("rank {} has {} slots for rank {}, which expects {}", rank, told[rank], all_.own, due));
      }
    }
  }

  void run(RowWork work, const Step& step) { device_.run(work, step.view, step.plan.rows(work)); }
  void dispatch(const Step& step) {
    wire_.exchange(all_.leaving, step.out, all_.came, step.in, {.at = step.plan.came_at});
  }
  void combine(const Step& step) {
    wire_.exchange(all_.made, step.made, all_.returned, step.back, {.at = step.plan.returned_at});
  }

  void enqueue_pair(const Step& step) {
    run(RowWork::pack, step);
    dispatch(step);
    run(RowWork::work, step);
    combine(step);
    run(RowWork::add_up, step);
  }

  /// Old content cannot pass for new.
  void overwrite_slots(const Step& step) {
    const RowView& view = step.view;
    device_.overwrite(view.came, region_words(step.plan.from.back(), view.ranks, view.out_slot()) * sizeof *view.came);
    device_.overwrite(view.returned,
                      region_words(step.plan.to.back(), view.ranks, view.back_slot()) * sizeof *view.returned);
    device_.clear(view.seen, rooms_.seen);
  }

  void enqueue_checked(const Step& step, std::size_t mark) {
    overwrite_slots(step);
    wire_.barrier();
    device_.mark(mark + Mark::begun);
    run(RowWork::pack, step);
    device_.mark(mark + Mark::packed);
    dispatch(step);
    device_.mark(mark + Mark::sent);
    run(RowWork::check_came, step);
    run(RowWork::check_experts, step);
    wire_.barrier();
    device_.mark(mark + Mark::working);
    run(RowWork::work, step);
    device_.mark(mark + Mark::worked);
    wire_.barrier();
    device_.mark(mark + Mark::met);
    combine(step);
    device_.mark(mark + Mark::returned);
    run(RowWork::add_up, step);
    device_.mark(mark + Mark::added);
    run(RowWork::check_returned, step);
    run(RowWork::check_sums, step);
  }

  /// Begins on all ranks together; `enqueue` is done before anything of it runs.
  template <class Enqueue>
  void together(const Enqueue& enqueue) {
    device_.clear(all_.found, rooms_.found);
    for (std::size_t i = 0; i < count_; ++i) device_.overwrite(steps_[i].view.sums, rooms_.sums);
    wire_.barrier();
    wire_.finish();
    device_.close();
    enqueue();
    device_.open();
    wire_.finish();
  }

  void chain(MoeSteps& taken) {
    chained_ = true;
    together([&] {
      for (std::size_t i = 0; i < count_; ++i) enqueue_checked(steps_[i], i * Mark::kMarks);
    });
    chained_ = false;
    for (std::size_t i = 0; i < count_; ++i) {
      const std::size_t at = i * Mark::kMarks;
      const auto between = [&](Mark from, Mark to) { return device_.seconds(at + from, at + to); };
      ExchangeStep one{.times = {}, .traffic = steps_[i].plan.traffic, .findings = {}};
      one.times = {.dispatch_s = between(begun, sent),
                   .combine_s = between(met, added),
                   .self_s = between(begun, packed) + between(working, worked) + between(returned, added),
                   .wait_s = between(packed, sent) + between(worked, returned)};
      for (std::size_t rank = 0; rank < all_.ranks; ++rank)
        one.traffic.count_bytes(job_, rank, steps_[i].out[rank].bytes + steps_[i].back[rank].bytes);
      taken.add(one);
    }
  }

  /// Seconds of one pair.
  double row() {
    together([&] {
      wire_.barrier();
      device_.mark(0);
      for (std::size_t i = 0; i < count_; ++i) enqueue_pair(steps_[i]);
      device_.mark(1);
      for (std::size_t i = 0; i < count_; ++i) run(RowWork::check_sums, steps_[i]);
    });
    return device_.seconds(0, 1) / static_cast<double>(count_);
  }

  /// Takes the findings of the steps that were just run.
  void judge(Family family, MoeSteps& taken) {
    std::vector<std::uint64_t> found(found_words(all_.ranks));
    for (std::size_t i = 0; i < count_; ++i) {
      device_.get(std::as_writable_bytes(std::span(found)), steps_[i].view.found);
      taken.findings.take(row_findings(job_, family, steps_[i].plan.step, found));
    }
  }

  ExchangeJob job_;
  Device& device_;
  Wire& wire_;
  RowRooms rooms_;
  RowView all_;  ///< shared by all steps
  std::vector<Step> steps_;
  std::size_t count_ = 0;
  std::atomic<bool> chained_ = false;  ///< the marks are those of steps
};

/// Marks that a DeviceExchange uses at most.
inline constexpr std::size_t kExchangeMarks = kMostSteps * 8;

}  // namespace assay::inference
