// local_ranks: children that are asked together, with a deadline.
#include "probes/collective/local_ranks.h"

#include <algorithm>
#include <utility>

#include <poll.h>

#include <fmt/format.h>

#include "probes/core/probe.h"
#include "probes/core/rendezvous_link.h"

namespace assay::collective {
namespace {

constexpr double kMostBetweenLooks_s = 0.5;  // several times the interval between two looks of a running leader

using rendezvous::after;
using rendezvous::Clock;

constexpr std::string_view kError = R"({"error":)";  // as answer_leader() spells it
constexpr std::chrono::milliseconds kSlice{100};     // the longest that a request to stop goes unnoticed

}  // namespace

Seconds Lasting::look(bool lasts, Clock::time_point now) {
  if (!lasts) {
    *this = {};
    return lasted_;
  }
  if (looked_) lasted_.count += std::min(kMostBetweenLooks_s, std::chrono::duration<double>(now - *looked_).count());
  looked_ = now;
  return lasted_;
}

LocalRanks::LocalRanks(const std::vector<RankProgram>& programs, const RankPatience& patience) : patience_(patience) {
  ranks_.reserve(programs.size());
  for (const auto& program : programs) ranks_.emplace_back(program);
}
LocalRanks::~LocalRanks() { kill_all(); }

/// All are sent the signal before the first is waited for.
void LocalRanks::kill_all() noexcept {
  for (auto& rank : ranks_) rank.kill();
  for (auto& rank : ranks_) rank.reap();
}

void LocalRanks::lose(const RankChild& rank, RankLoss loss, const std::string& how) {
  const std::string reason = fmt::format("{} {}", rank.title(), how);
  kill_all();
  throw RankLost(loss, reason);
}

void LocalRanks::demand_life(const std::vector<RankChild*>& waiting) {
  const auto now = Clock::now();
  if (now - sight_.at < kSlice) return;
  sight_.at = now;
  sight_.stopped.resize(ranks_.size());
  Seconds cpu;
  for (RankChild* rank : waiting) {
    const auto sign = rank->sign();
    auto& stopped = sight_.stopped.at(static_cast<std::size_t>(rank - ranks_.data()));
    if (stopped.look(sign && sign->stopped, now) > patience_.stopped)
      lose(*rank, RankLoss::silent, fmt::format("is stopped by a signal, and was for {:g} s", patience_.stopped.count));
    cpu.count += sign ? sign->cpu.count : 0;
  }
  const bool idle = patience_.idle && cpu == std::exchange(sight_.cpu, cpu);
  if (sight_.idle.look(idle, now) > patience_.idle.value_or(Seconds{}))
    lose(*waiting.front(), RankLoss::silent,
         fmt::format("said nothing, and no rank of this node has run for {:g} s", patience_.idle->count));
}

std::vector<std::string> LocalRanks::ask(std::string_view request, Seconds limit,
                                         const std::function<void()>& meanwhile) {
  for (auto& rank : ranks_) rank.ask(request);
  const auto until = after(limit);
  sight_ = {};
  std::vector<std::string> answers(ranks_.size());
  std::vector<bool> here(ranks_.size(), false);
  std::optional<Clock::time_point> given_up;
  while (true) {
    std::vector<pollfd> polled;
    std::vector<RankChild*> waiting;
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      RankChild& rank = ranks_[i];
      rank.write();
      if (!here[i]) {
        if (auto line = rank.line()) {
          answers[i] = std::move(*line);
          here[i] = true;
          if (patience_.after_error && !given_up && answers[i].starts_with(kError))
            given_up = after(*patience_.after_error);
        }
      }
      if (here[i]) continue;
      polled.push_back({.fd = rank.output(), .events = POLLIN, .revents = 0});
      if (rank.unsent()) polled.push_back({.fd = rank.input(), .events = POLLOUT, .revents = 0});
      waiting.push_back(&rank);
    }
    if (waiting.empty()) return answers;
    if (given_up && Clock::now() >= *given_up) {
      for (std::size_t i = 0; i < ranks_.size(); ++i)
        if (!here[i]) answers[i] = "{}";
      return answers;
    }
    if (Clock::now() >= until)
      lose(*waiting.front(), RankLoss::silent, fmt::format("said nothing for {:g} s", limit.count));
    const int ready = poll(polled.data(), polled.size(), static_cast<int>(kSlice.count()));
    if (stop_requested()) throw std::runtime_error("stopped by a signal while ranks were at work");
    if (meanwhile) meanwhile();
    demand_life(waiting);
    if (ready <= 0) continue;
    for (RankChild* rank : waiting) {
      if (const auto wrong = rank->read()) lose(*rank, rank->ended() ? RankLoss::ended : RankLoss::garbled, *wrong);
    }
  }
}

void LocalRanks::finish(Seconds limit) {
  for (auto& rank : ranks_) rank.dismiss();
  const auto until = after(limit);
  for (auto& rank : ranks_) {
    Lasting stopped;
    while (!rank.ended() && Clock::now() < until) {
      (void)poll(nullptr, 0, 1);  // a pause; nothing here is timed
      const auto sign = rank.sign();
      if (stopped.look(sign && sign->stopped, Clock::now()) > patience_.stopped) break;
    }
  }
  kill_all();
}

}  // namespace assay::collective
