// watched_fleet: one broadcast of orders and one gathering of reports a tick; the drawing is in the header.
#include "probes/collective/watched_fleet.h"

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <utility>

#include <poll.h>

#include <fmt/format.h>

#include "probes/core/json_io.h"
#include "probes/core/probe.h"
#include "probes/core/rendezvous_link.h"

namespace assay::collective {
namespace {

constexpr double kNano = 1e-9;
constexpr std::int64_t kLook_ns = 100'000'000;  // between two looks at processes
constexpr int kSlice_ms = 50;                   // the longest that a request to stop goes unnoticed

using nlohmann::json;

constexpr Seconds kTick = {0.02};            // waiting for events; far below a heartbeat
constexpr double kSurelyAlive = 1.5;         // periods since a beat: none is missing yet
constexpr const char* kEndOfTicks = "over";  // instead of orders: no tick follows

json ages_json(const std::vector<std::optional<RankAges>>& all) {
  json ages = json::array();
  for (const auto& one : all) {
    if (!one)
      ages.push_back(nullptr);
    else
      ages.push_back({one->beat_s, one->heard_s, one->struck_s ? json(*one->struck_s) : json(), one->has_beaten});
  }
  return ages;
}

std::optional<RankAges> ages_in(const json& one) {
  if (one.is_null()) return std::nullopt;
  RankAges ages{.beat_s = one.at(0), .heard_s = one.at(1), .struck_s = {}, .has_beaten = one.at(3)};
  if (!one.at(2).is_null()) ages.struck_s = one.at(2).get<double>();
  return ages;
}

}  // namespace

WatchedRanks::WatchedRanks(RankBoard& board, Programs programs)
    : board_(board), programs_(std::move(programs)), slots_(board.ranks()) {
  for (std::size_t slot = 0; slot < slots_.size(); ++slot) replace(slot);
}

void WatchedRanks::ask(std::size_t slot, std::string_view line) {
  if (slots_.at(slot)) slots_[slot]->child.ask(line);
}

void WatchedRanks::watch(const std::vector<std::size_t>& slots) {
  const std::int64_t now = monotonic_ns();
  for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
    if (!slots_[slot]) continue;
    const bool wanted = std::ranges::find(slots, slot) != slots.end();
    if (wanted && !slots_[slot]->watched) slots_[slot]->watched_ns = now;
    slots_[slot]->watched = wanted;
  }
}

void WatchedRanks::give_up(std::size_t slot, std::int64_t number) { board_.page(slot).give_up = number; }

void WatchedRanks::end(std::size_t slot) { slots_.at(slot).reset(); }

void WatchedRanks::replace(std::size_t slot) {
  board_.clear(slot);
  slots_.at(slot).emplace(Slot{.child = RankChild(programs_(slot))});
}

std::vector<std::optional<RankAges>> WatchedRanks::ages() const {
  std::vector<std::optional<RankAges>> all(slots_.size());
  const std::int64_t now = monotonic_ns();
  for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
    if (!slots_[slot] || !slots_[slot]->watched) continue;
    const RankPage& page = board_.page(slot);
    const auto age = [&](std::int64_t at) { return static_cast<double>(now - at) * kNano; };
    const std::int64_t from = slots_[slot]->watched_ns, struck = page.struck_ns;
    all[slot] = RankAges{.beat_s = age(std::max<std::int64_t>(page.beat_ns, from)),
                         .heard_s = age(std::max<std::int64_t>({page.heard_ns, page.joined_ns, from})),
                         .struck_s = struck != 0 ? std::optional(age(struck)) : std::nullopt,
                         .has_beaten = page.beat_ns != 0};
  }
  return all;
}

void WatchedRanks::hear(std::vector<RankEvent>& events) {
  for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
    auto& one = slots_[slot];
    if (!one || one->lost) continue;
    one->child.write();
    const auto wrong = one->child.read();
    while (auto line = one->child.line()) events.push_back({.slot = slot, .words = std::move(*line)});
    if (!wrong) continue;
    one->lost = true;
    events.push_back({.slot = slot, .lost = true, .words = *wrong});
  }
}

/// A rank that beats shows by its beats that it is stopped; for the others the kernel is asked.
void WatchedRanks::look(std::vector<RankEvent>& events) {
  const std::int64_t now = monotonic_ns();
  if (now - looked_ns_ < kLook_ns) return;
  looked_ns_ = now;
  constexpr Seconds kLimit = RankPatience{}.stopped;
  for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
    auto& one = slots_[slot];
    if (!one || one->lost) continue;
    const auto sign = one->watched ? std::nullopt : one->child.sign();
    if (one->stopped.look(sign && sign->stopped, Lasting::Clock::now()) <= kLimit) continue;
    one->lost = true;
    events.push_back(
        {.slot = slot, .lost = true, .words = fmt::format("is stopped by a signal, and was for {:g} s", kLimit.count)});
  }
}

std::vector<RankEvent> WatchedRanks::poll(Seconds limit) {
  const auto until = rendezvous::after(limit);
  std::vector<RankEvent> events;
  while (true) {
    hear(events);
    look(events);
    const auto now = rendezvous::Clock::now();
    if (!events.empty() || now >= until) return events;
    std::vector<pollfd> polled;
    for (const auto& one : slots_) {
      if (!one || one->lost) continue;
      polled.push_back({.fd = one->child.output(), .events = POLLIN, .revents = 0});
      if (one->child.unsent()) polled.push_back({.fd = one->child.input(), .events = POLLOUT, .revents = 0});
    }
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - now).count();
    (void)::poll(polled.data(), polled.size(),
                 static_cast<int>(std::min<std::int64_t>(left, kSlice_ms)));  // an interrupted poll is a short one
    if (stop_requested()) throw std::runtime_error("stopped by a signal while ranks were at work");
  }
}

std::vector<std::optional<std::string>> losses_of(const std::vector<std::optional<RankAges>>& ranks,
                                                  const HeartbeatLimits& limits) {
  std::vector<std::optional<std::string>> losses(ranks.size());
  const auto surely_alive = [&](const auto& rank) {
    return rank && rank->has_beaten && rank->beat_s < kSurelyAlive * limits.period.count;
  };
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (!ranks[i]) continue;
    if (ranks[i]->beat_s > limits.silence_s()) {
      losses[i] = fmt::format("gave no sign of life for {:g} s", limits.silence_s());
      continue;
    }
    if (ranks[i]->heard_s <= limits.silence_s()) continue;
    for (std::size_t other = 0; other < ranks.size(); ++other) {
      if (other == i || !surely_alive(ranks[other])) continue;
      losses[i] = fmt::format("heard no other rank for {:g} s and is cut off", limits.silence_s());
    }
  }
  return losses;
}

WatchedFleet::WatchedFleet(WatchedRanks& here, std::size_t slots_here, Rendezvous* group, const HeartbeatLimits& limits)
    : here_(here), slots_here_(slots_here), group_(group), limits_(limits) {
  if (group_ != nullptr) {
    node_ = static_cast<std::size_t>(group_->rank());
    nodes_ = static_cast<std::size_t>(group_->world());
  }
  reported_lost_.assign(slots(), false);
  orders_ = json::array_t(nodes_, json::array());
}

void WatchedFleet::order(std::size_t slot, const char* what, json with) {
  orders_.at(node_of(slot)).push_back({what, slot % slots_here_, std::move(with)});
}
void WatchedFleet::ask(std::size_t slot, const json& request) { order(slot, "ask", request.dump()); }
void WatchedFleet::give_up(std::size_t slot, std::int64_t number) { order(slot, "give_up", number); }
void WatchedFleet::end(std::size_t slot) { order(slot, "end", nullptr); }
void WatchedFleet::replace(std::size_t slot) {
  reported_lost_[slot] = false;
  order(slot, "replace", nullptr);
}
void WatchedFleet::watch(const std::vector<std::size_t>& slots) {
  for (std::size_t node = 0; node < nodes_; ++node) {
    json there = json::array();
    for (const std::size_t slot : slots) {
      if (node_of(slot) == node) there.push_back(slot % slots_here_);
    }
    order(node * slots_here_, "watch", there);
  }
}

void WatchedFleet::carry_out(const json& orders) {
  for (const auto& one : orders) {
    const std::string what = one.at(0);
    const auto slot = one.at(1).get<std::size_t>();
    const json& with = one.at(2);
    if (what == "ask") here_.ask(slot, with.get<std::string>());
    if (what == "watch") here_.watch(with.get<std::vector<std::size_t>>());
    if (what == "give_up") here_.give_up(slot, with.get<std::int64_t>());
    if (what == "end") here_.end(slot);
    if (what == "replace") here_.replace(slot);
  }
}

std::string WatchedFleet::report() {
  json events = json::array();
  for (auto& event : here_.poll(kTick)) events.push_back({event.slot, event.lost, std::move(event.words)});
  return json{{"events", events}, {"ages", ages_json(here_.ages())}}.dump(-1, ' ', false,
                                                                          json::error_handler_t::replace);
}

std::vector<FleetEvent> WatchedFleet::tick() {
  const json orders = std::exchange(orders_, json::array_t(nodes_, json::array()));
  if (group_ != nullptr) (void)group_->broadcast(orders.dump());  // it returns the message
  carry_out(orders.at(0));
  const std::string mine = report();
  const auto reports = group_ != nullptr ? group_->all_gather(mine) : std::vector{mine};
  std::vector<FleetEvent> events;
  std::vector<std::optional<RankAges>> ages;
  for (std::size_t node = 0; node < reports.size(); ++node) {
    const json one = parse_json_or_throw(reports[node], "report of a node");
    for (const auto& rank : one.at("ages")) ages.push_back(ages_in(rank));
    for (const auto& event : one.at("events")) {
      const std::size_t slot = node * slots_here_ + event.at(0).get<std::size_t>();
      const auto words = event.at(2).get<std::string>();
      if (event.at(1).get<bool>())
        events.push_back({.slot = slot, .lost = true, .answer = {}, .how = words, .since_s = {}});
      else
        events.push_back(
            {.slot = slot, .answer = parse_json_or_throw(words, "answer of a rank"), .how = {}, .since_s = {}});
    }
  }
  const auto losses = losses_of(ages, limits_);
  for (std::size_t slot = 0; slot < losses.size(); ++slot) {
    if (losses[slot]) events.push_back({.slot = slot, .lost = true, .answer = {}, .how = *losses[slot], .since_s = {}});
  }
  std::erase_if(events, [&](FleetEvent& event) {
    if (!event.lost) return false;
    if (ages.at(event.slot)) event.since_s = ages[event.slot]->struck_s;
    const bool known = reported_lost_.at(event.slot);
    reported_lost_[event.slot] = true;
    return known;
  });
  return events;
}

void WatchedFleet::follow() {
  while (true) {
    const std::string orders = group_->broadcast("");
    if (orders == kEndOfTicks) return;
    carry_out(parse_json_or_throw(orders, "orders of rank 0").at(node_));
    (void)group_->all_gather(report());  // the leader of rank 0 judges them
  }
}

void WatchedFleet::release() {
  if (group_ != nullptr) (void)group_->broadcast(kEndOfTicks);  // it returns the message
}

}  // namespace assay::collective
