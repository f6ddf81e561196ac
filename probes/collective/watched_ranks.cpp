// watched_ranks: pipes carry ranks' answers and their end, the board how long ago they were alive.
#include "probes/collective/watched_ranks.h"

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <utility>

#include <poll.h>

#include <fmt/format.h>

#include "probes/core/probe.h"
#include "probes/core/rendezvous_link.h"

namespace assay::collective {
namespace {

constexpr double kNano = 1e-9;
constexpr std::int64_t kLook_ns = 100'000'000;  // between two looks at processes
constexpr int kSlice_ms = 50;                   // the longest that a request to stop goes unnoticed

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

}  // namespace assay::collective
