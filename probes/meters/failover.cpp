// failover: compares the power before and after a loss, slot by slot; see failover.h.
#include "probes/meters/failover.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include <fmt/format.h>

namespace assay::meters {
namespace {

constexpr std::size_t kBefore = 5, kBalanced = 5;  // readings of a level
constexpr double kCarries = 0.1;                   // of an equal part: less is a standby feed
constexpr double kGone = 0.02;                     // of its power before
constexpr double kBack = 0.5;                      // of its power before
constexpr double kNodeLost = 0.1;                  // of its power before
constexpr double kDip = 0.9;                       // of the rack's power before
constexpr std::ptrdiff_t kSilent = 3;              // intervals

/// Power by slot of the interval; absent slots are 0.
using PowerSlots = std::map<std::int64_t, double>;

PowerSlots slots_of(std::span<const MeterReading> readings, int outlet, double interval_s) {
  PowerSlots slots;
  for (const auto& one : readings) {
    if (one.quantity == Quantity::power && one.outlet == outlet)
      slots[static_cast<std::int64_t>(std::floor(one.taken_s / interval_s))] = one.absent ? 0 : one.value;
  }
  return slots;
}

std::int64_t slot_at(double time_s, double interval_s) {
  return static_cast<std::int64_t>(std::floor(time_s / interval_s));
}

/// The mean of the last kBefore numbers before `slot`; nothing with fewer.
std::optional<double> level_before(const PowerSlots& slots, std::int64_t slot) {
  double sum = 0;
  std::size_t count = 0;
  for (auto one = slots.lower_bound(slot); one != slots.begin() && count < kBefore;) {
    --one;
    sum += one->second;
    ++count;
  }
  if (count < kBefore) return std::nullopt;
  return sum / static_cast<double>(count);
}

/// The feeds of the rack of `feed`, by name, itself among them.
std::map<std::string, PowerSlots> feeds_of(std::span<const FeedReadings> meters, const std::string& rack,
                                           double interval_s) {
  std::map<std::string, PowerSlots> feeds;
  for (const auto& one : meters)
    if (one.meter->subject == "feed" && one.meter->rack == rack)
      feeds.emplace(one.meter->name, slots_of(one.readings, 0, interval_s));
  return feeds;
}

const Meter* meter_named(std::span<const FeedReadings> meters, const std::string& name) {
  const auto found = std::ranges::find_if(meters, [&](const FeedReadings& one) { return one.meter->name == name; });
  return found == meters.end() ? nullptr : found->meter;
}

/// The sum of feeds, slot by slot; the lost one counts 0 if it is silent.
PowerSlots rack_power(const std::map<std::string, PowerSlots>& feeds, const FeedLoss& loss, double interval_s) {
  PowerSlots sum;
  std::map<std::int64_t, std::size_t> known;
  for (const auto& [name, slots] : feeds) {
    for (const auto& [slot, watts] : slots) {
      sum[slot] += watts;
      ++known[slot];
    }
  }
  const std::int64_t lost = slot_at(loss.lost_s, interval_s);
  std::erase_if(sum, [&](const auto& one) {
    const bool silent = one.first >= lost && !feeds.at(loss.feed).contains(one.first);
    return known[one.first] + (silent ? 1 : 0) < feeds.size();
  });
  return sum;
}

/// Whether `others` were read in so many of the slots from `begin` up to `end` that a feed without readings is silent.
bool is_silent(const PowerSlots& others, std::int64_t begin, std::int64_t end) {
  return std::distance(others.lower_bound(begin), others.lower_bound(end)) >= kSilent;
}

/// The first slot in which the feed of these slots is gone; nothing while it is there. `others` has the slots in which
/// another feed was read.
std::optional<std::int64_t> gone_at(const PowerSlots& own, double others_w, const PowerSlots& others,
                                    std::int64_t end) {
  for (auto one = own.begin(); one != own.end(); ++one) {
    const auto next = std::next(one);
    const auto level_w = level_before(own, one->first);
    if (level_w && *level_w > kCarries * others_w && next != own.end() && one->second < kGone * *level_w &&
        next->second < kGone * *level_w)
      return one->first;
    const auto now_w = level_before(own, one->first + 1);
    if (now_w && *now_w > kCarries * others_w &&
        is_silent(others, one->first + 1, next == own.end() ? end : next->first))
      return one->first + 1;
  }
  return std::nullopt;
}

/// When the feed has half of its former power again.
std::optional<std::int64_t> back_at(const PowerSlots& own, std::int64_t lost) {
  const auto level_w = level_before(own, lost);
  if (!level_w) return std::nullopt;
  for (auto one = own.upper_bound(lost); one != own.end(); ++one)
    if (one->second >= kBack * *level_w) return one->first;
  return std::nullopt;
}

double mean_from(const PowerSlots& slots, std::int64_t begin, std::int64_t end) {
  double sum = 0;
  int count = 0;
  for (auto one = slots.lower_bound(begin); one != slots.end() && one->first < end; ++one, ++count) sum += one->second;
  return count == 0 ? 0 : sum / count;
}

}  // namespace

std::vector<FeedLoss> feed_losses(std::span<const FeedReadings> meters, const std::string& only, double interval_s,
                                  double now_s) {
  std::map<std::string, FeedLoss> first;  // by rack
  for (const auto& one : meters) {
    const Meter& meter = *one.meter;
    if (meter.subject != "feed" || meter.rack.empty()) continue;
    if (!only.empty() && meter.name != only && meter.feed != only) continue;
    const auto feeds = feeds_of(meters, meter.rack, interval_s);
    if (feeds.size() < 2) continue;
    const PowerSlots& own = feeds.at(meter.name);
    PowerSlots others;
    double others_w = 0;
    for (const auto& [name, slots] : feeds) {
      if (name == meter.name || slots.empty()) continue;
      others.insert(slots.begin(), slots.end());
      others_w += mean_from(slots, slots.begin()->first, slots.begin()->first + static_cast<std::int64_t>(kBefore));
    }
    const auto gone =
        gone_at(own, others_w / static_cast<double>(feeds.size() - 1), others, slot_at(now_s, interval_s));
    const auto known = first.find(meter.rack);
    if (!gone || (known != first.end() && known->second.lost_s <= static_cast<double>(*gone) * interval_s)) continue;
    FeedLoss loss{.feed = meter.name, .rack = meter.rack, .lost_s = static_cast<double>(*gone) * interval_s};
    if (const auto back = back_at(own, *gone)) loss.restored_s = static_cast<double>(*back) * interval_s;
    first.insert_or_assign(meter.rack, loss);
  }
  std::vector<FeedLoss> losses;
  for (auto& [rack, loss] : first) losses.push_back(std::move(loss));
  return losses;
}

namespace {

/// Each node's own supply, by its meter, else by its outlets over all feeds: a node hangs on both.
std::map<std::string, PowerSlots> nodes_of(std::span<const FeedReadings> meters, const std::string& rack,
                                           const FeedLoss& loss, double interval_s) {
  std::map<std::string, PowerSlots> own;
  std::map<std::string, std::map<std::string, PowerSlots>> outlets;  // by node and meter
  for (const auto& one : meters) {
    if (one.meter->subject == "node") own.emplace(one.meter->nodes.front(), slots_of(one.readings, 0, interval_s));
    if (one.meter->rack != rack || one.meter->subject != "feed") continue;
    for (const auto& [outlet, node] : one.meter->outlets) {
      PowerSlots& sum = outlets[node][one.meter->name];
      for (const auto& [slot, watts] : slots_of(one.readings, outlet, interval_s)) sum[slot] += watts;
    }
  }
  std::map<std::string, PowerSlots> nodes;
  for (const auto& one : meters) {
    if (one.meter->subject == "node" && one.meter->rack == rack)
      nodes.emplace(one.meter->nodes.front(), own.at(one.meter->nodes.front()));
  }
  for (auto& [node, by_meter] : outlets) {
    const auto metered = own.find(node);
    by_meter.try_emplace(loss.feed);  // a node without a plug there loses nothing
    nodes.emplace(node, metered != own.end() ? metered->second : rack_power(by_meter, loss, interval_s));
  }
  return nodes;
}

void look_at_nodes(std::span<const FeedReadings> meters, const std::string& rack, double interval_s, Failover& made) {
  const std::int64_t lost = slot_at(made.loss.lost_s, interval_s);
  for (const auto& [node, slots] : nodes_of(meters, rack, made.loss, interval_s)) {
    const auto level_w = level_before(slots, lost);
    const auto after = slots.lower_bound(lost);
    if (!level_w || after == slots.end()) {
      made.unseen_nodes.push_back(node);
      continue;
    }
    // Two in a row: an average that is late, or one bad answer, is no lost node.
    for (auto one = after; std::next(one) != slots.end(); ++one) {
      if (one->second >= kNodeLost * *level_w || std::next(one)->second >= kNodeLost * *level_w) continue;
      made.lost_nodes.push_back(node);
      break;
    }
  }
}

void look_at_feeds(std::span<const FeedReadings> meters, const std::map<std::string, PowerSlots>& feeds,
                   double interval_s, Failover& made) {
  constexpr std::int64_t kOpenEnd = std::numeric_limits<std::int64_t>::max();
  const std::int64_t lost = slot_at(made.loss.lost_s, interval_s);
  const std::int64_t back = made.loss.restored_s ? slot_at(*made.loss.restored_s, interval_s) : kOpenEnd;
  for (const auto& [name, slots] : feeds) {
    if (name == made.loss.feed) continue;
    const auto before_w = level_before(slots, lost);
    made.rise_w[name] = mean_from(slots, lost + 1, back) - before_w.value_or(0);
    const Meter* meter = meter_named(meters, name);
    if (meter == nullptr || !meter->rating_w) continue;
    double most_w = 0;
    for (auto one = slots.lower_bound(lost); one != slots.end(); ++one) most_w = std::max(most_w, one->second);
    made.rating_share[name] = most_w / *meter->rating_w;
  }
  if (!made.loss.restored_s) return;
  made.outage_s = *made.loss.restored_s - made.loss.lost_s;
  const PowerSlots& own = feeds.at(made.loss.feed);
  if (std::distance(own.lower_bound(back), own.end()) < static_cast<std::ptrdiff_t>(kBalanced)) return;
  const std::int64_t end = own.rbegin()->first + 1, begin = end - static_cast<std::int64_t>(kBalanced);
  double all_w = 0;
  for (const auto& [name, slots] : feeds) all_w += mean_from(slots, begin, end);
  if (all_w > 0) made.imbalance = std::abs(mean_from(own, begin, end) * static_cast<double>(feeds.size()) / all_w - 1);
}

}  // namespace

std::expected<Failover, std::string> failover_of(std::span<const FeedReadings> meters, const FeedLoss& loss,
                                                 double interval_s) {
  const Meter* lost_meter = meter_named(meters, loss.feed);
  if (lost_meter == nullptr) return std::unexpected(fmt::format("There is no meter {}.", loss.feed));
  const auto feeds = feeds_of(meters, lost_meter->rack, interval_s);
  if (feeds.size() < 2) return std::unexpected(fmt::format("Rack {} has no second feed.", lost_meter->rack));
  const std::int64_t lost = slot_at(loss.lost_s, interval_s);
  for (const auto& [name, slots] : feeds) {
    if (!level_before(slots, lost))
      return std::unexpected(fmt::format("{} has less than {} readings before the loss.", name, kBefore));
    if (name != loss.feed && slots.upper_bound(lost) == slots.end())
      return std::unexpected(fmt::format("{} was not read after the loss.", name));
  }
  Failover made{.loss = loss};
  look_at_feeds(meters, feeds, interval_s, made);
  look_at_nodes(meters, lost_meter->rack, interval_s, made);
  const PowerSlots all = rack_power(feeds, loss, interval_s);
  const double before_w = level_before(all, lost).value_or(0);
  if (before_w > 0) {
    for (auto one = all.lower_bound(lost); one != all.end(); ++one) {
      made.dip = std::min(made.dip, one->second / before_w);
      if (one->second < kDip * before_w) made.dip_s += interval_s;
    }
  }
  return made;
}

}  // namespace assay::meters
