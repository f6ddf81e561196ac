// feed_watch: starts a thread for each meter, waits for a signal, a deadline or the guard, and writes the record.
#include "probes/meters/feed_watch.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <memory>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "probes/core/probe.h"
#include "probes/meters/feed_record.h"
#include "probes/meters/feed_spec.h"

namespace assay::meters {
namespace {

constexpr double kShortestInterval_s = 0.5, kLongestInterval_s = 60;
// A stop gives ten seconds: six of them for answers under way, the rest for the record.
constexpr double kGrace_s = 6;
constexpr double kPatience = 10;  // intervals without an answer, after which a guard is blind
constexpr auto kLook = std::chrono::milliseconds(100);

/// Whether the readings are over. The threads that ask may outlive everything else.
std::atomic<bool>& feed_is_over() {
  static std::atomic<bool> over{false};
  return over;
}

std::vector<Meter> meters_of(const Parameters& given) {
  const std::string& path = given.text("meters");
  if (path.empty()) throw Skip("no meters: the site has no list meters, or the parameter meters names no file");
  const auto text = read_file(path);
  if (!text) throw Skip(text.error().text());
  auto meters = read_meters_of(*text, path);
  if (!meters) throw std::runtime_error(meters.error().text());
  return *meters;
}

/// Why a meter gave nothing.
std::string why_unread(const WatchedMeter& one, const MeterHistory& history) {
  if (!history.not_there.empty()) return history.not_there;
  return history.last_fault.empty() ? fault_text(one.meter(), "no answer yet") : history.last_fault;
}

}  // namespace

FeedWatch::FeedWatch(const Parameters& given)
    : interval_s_(given.seconds("interval").count),
      limit_w_(static_cast<double>(given.count("limit"))),
      guards_(given.text("guard") == "yes") {
  const double asked_s = given.seconds("duration").count;
  duration_s_ = asked_s > 0 ? asked_s : kLongestFeed_s;
  if (interval_s_ < kShortestInterval_s || interval_s_ > kLongestInterval_s)
    throw std::runtime_error(fmt::format("interval: {} s is not between {} s and {} s", interval_s_,
                                         kShortestInterval_s, kLongestInterval_s));
  for (auto& meter : meters_of(given)) watched_.push_back(std::make_shared<WatchedMeter>(std::move(meter)));
  feed_is_over() = false;
  const auto stop = +[] { return stop_requested() || feed_is_over().load(); };
  for (const auto& one : watched_)
    std::thread([one, interval_s = interval_s_, stop] { one->watch(interval_s, stop); }).detach();
}

std::string FeedWatch::wait(const std::function<bool()>& look) const {
  const double patience_s = kPatience * std::max(interval_s_, 1.0);
  const double begin_s = utc_now_s();
  while (!stop_requested() && utc_now_s() - begin_s < duration_s_) {
    sleep_until_stopped(kLook);
    if (look && look()) return "";
    if (!guards_) continue;
    const double now_s = utc_now_s();
    if (auto words = over_limit(watched_, limit_w_, now_s - patience_s); !words.empty()) {
      // The limit for the first answer, too; a meter that answered is judged from its first reading on.
      const bool blind = words.ends_with("unseen");
      if (!blind || now_s - begin_s > patience_s) return words;
    }
  }
  return "";
}

void FeedWatch::stop() const {
  feed_is_over() = true;
  const auto limit = std::chrono::steady_clock::now() + std::chrono::duration<double>(kGrace_s);
  const auto all_ended = [&] { return std::ranges::all_of(watched_, [](const auto& one) { return one->ended(); }); };
  while (!all_ended() && std::chrono::steady_clock::now() < limit)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
}

void FeedWatch::record(const std::string& over_limit, Recorder& record) const {
  std::string reasons;
  std::deque<MeterHistory> histories;
  std::vector<MeteredHistory> answered;
  for (const auto& one : watched_) {
    const MeterHistory& history = histories.emplace_back(one->history());
    if (history.answers > 0) {
      record_meter(one->meter(), history, interval_s_, record);
      answered.push_back({.meter = &one->meter(), .history = &history});
    } else {
      reasons += (reasons.empty() ? "" : "; ") + why_unread(*one, history);
    }
  }
  if (answered.empty()) throw Skip(reasons.substr(0, kLongestReason));
  record_derived(answered, record);
  record.condition("interval_s", interval_s_);
  if (!over_limit.empty()) record.condition("over_limit", over_limit);
  if (!reasons.empty()) record.condition("meters_unread", reasons.substr(0, kLongestValue));
}

}  // namespace assay::meters
