// feed_watch: starts a thread for each meter, waits for a signal, a deadline or the guard, and writes the record.
#include "probes/meters/feed_watch.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <deque>
#include <iterator>
#include <stdexcept>
#include <string_view>
#include <thread>

#include <fmt/format.h>

#include "probes/core/probe.h"
#include "probes/meters/derived.h"
#include "probes/meters/feed_record.h"
#include "probes/meters/feed_spec.h"

namespace assay::meters {
namespace {

constexpr int kMostDoublings = 6;  // of the wait after a fault: a minute at most

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

void WatchedMeter::watch(double interval_s, bool (*stop)()) noexcept {
  MeterSession session;
  try {
    session = open_meter(meter_);
  } catch (const std::exception& error) {  // Skip and MeterFault, or no memory: the meter is not read
    const std::lock_guard guard(mutex_);
    history_.not_there = error.what();
    ended_ = true;
    return;
  }
  int faults_in_a_row = 0;
  while (!stop()) {
    const double begin_s = utc_now_s();
    std::vector<MeterReading> answer;
    std::string fault;
    try {
      answer = session();
    } catch (const std::exception& error) {
      fault = error.what();
    }
    const double end_s = utc_now_s();
    {
      const std::lock_guard guard(mutex_);
      history_.longest_answer_s = std::max(history_.longest_answer_s, end_s - begin_s);
      if (!fault.empty()) {
        ++history_.faults;
        history_.last_fault = fault;
      }
    }
    if (fault.empty()) take(answer, interval_s);
    // A login that is refused again and again locks the account of many BMCs.
    faults_in_a_row = fault.empty() ? 0 : std::min(faults_in_a_row + 1, kMostDoublings);
    if (faults_in_a_row > 1) sleep_until_stopped(std::chrono::duration<double>((1 << faults_in_a_row) - 2));
    // The middle of the next slot, so that neither an early nor a late answer falls into another one.
    const double now_s = utc_now_s();
    const double next_s = (std::floor(now_s / interval_s - 0.5) + 1.5) * interval_s;
    sleep_until_stopped(std::chrono::duration<double>(next_s - now_s));
  }
  const std::lock_guard guard(mutex_);
  ended_ = true;
}

void WatchedMeter::take(const std::vector<MeterReading>& answer, double interval_s) {
  const std::lock_guard guard(mutex_);
  take_answer(meter_, answer, interval_s, history_);
}

MeterHistory WatchedMeter::history() const {
  const std::lock_guard guard(mutex_);
  return history_;
}

std::optional<MeterReading> WatchedMeter::newest_power() const {
  const std::lock_guard guard(mutex_);
  for (auto one = history_.latest.rbegin(); one != history_.latest.rend(); ++one)
    if (!one->absent && std::isfinite(one->value)) return *one;
  return std::nullopt;
}

bool WatchedMeter::ended() const {
  const std::lock_guard guard(mutex_);
  return ended_;
}

namespace {

/// Whether power_of_racks_w counts `one`: no better meter of its rack was ever read.
bool counts_towards_racks(const WatchedMeter& one, const Watched& watched) {
  constexpr std::string_view kBestFirst[] = {"rack", "feed", "shelf"};  // as power_of_racks_w takes them
  const auto* own = std::ranges::find(kBestFirst, one.meter().subject);
  if (own == std::end(kBestFirst) || one.meter().rack.empty()) return false;
  return std::ranges::none_of(watched, [&](const auto& other) {
    return other->meter().rack == one.meter().rack && other->newest_power() &&
           std::ranges::find(kBestFirst, other->meter().subject) < own;
  });
}

/// The first meter that is needed and was not read since `oldest_s`.
std::string unseen(const Watched& watched, double limit_w, double oldest_s) {
  for (const auto& one : watched) {
    const auto newest = one->newest_power();
    if (newest && newest->taken_s >= oldest_s) continue;
    const std::string& name = one->meter().name;
    if (one->meter().rating_w)
      return fmt::format("{} has a rating and does not answer: a load must not continue unseen", name);
    if (limit_w > 0 && newest && counts_towards_racks(*one, watched))
      return fmt::format(
          "{} counts towards the limit of all racks and answers no more: a load must not continue unseen", name);
  }
  return "";
}

}  // namespace

std::string over_limit(const Watched& watched, double limit_w, double oldest_s) {
  std::vector<MeterPower> powers;
  for (const auto& one : watched) {
    const Meter& meter = one->meter();
    const auto newest = one->newest_power();
    if (!newest) continue;
    powers.push_back({.meter = &meter, .power_w = newest->value});
    if (meter.rating_w && newest->value > *meter.rating_w)
      return fmt::format("{} is at {:.0f} W, its rating is {:.0f} W", meter.name, newest->value, *meter.rating_w);
  }
  const double all_w = power_of_racks_w(powers);
  if (limit_w > 0 && all_w > limit_w)
    return fmt::format("all racks together are at {:.0f} W, the limit is {:.0f} W", all_w, limit_w);
  return unseen(watched, limit_w, oldest_s);
}

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
