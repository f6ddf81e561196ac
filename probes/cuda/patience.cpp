// patience: the loop, and the thread that looks at the clock.
#include "probes/cuda/patience.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <future>
#include <mutex>
#include <optional>
#include <thread>

#include <fmt/format.h>

#include "probes/core/leaving.h"
#include "probes/cuda/choice.h"

namespace assay::cuda {
namespace {

using Clock = std::chrono::steady_clock;

/// The environment variable ASSAY_DEVICE_SECONDS, 1 or more, shortens the wait where a test has a GPU that hangs;
/// agents pass it to no probe.
double shortened(Seconds limit) {
  const char* given = std::getenv("ASSAY_DEVICE_SECONDS");
  const double seconds = given == nullptr ? 0 : std::strtod(given, nullptr);
  return seconds >= 1 ? std::min(seconds, limit.count) : limit.count;
}

[[noreturn]] void leave(std::string_view what, double limit_s, const InHand& in_hand = {}) {
  leave_stuck(
      fmt::format("{}: the GPU is not done after {:.3g} s and {}{}{}; hint: look for Xid errors or amdgpu in the "
                  "kernel's log, and reset the GPU",
                  what, limit_s, in_hand.waits ? "waits for others" : "hangs", in_hand.words.empty() ? "" : " in ",
                  in_hand.words),
      in_hand.waits);
}

/// The answer of `ask`, or nothing if it does not come: the driver may hang with the GPU.
InHand answer_of(const std::function<InHand()>& ask) {
  if (!ask) return {};
  constexpr std::chrono::seconds kAnswer{1};
  std::promise<InHand> promise;
  auto answer = promise.get_future();
  std::thread([ask, promise = std::move(promise)]() mutable { promise.set_value(ask()); }).detach();
  return answer.wait_for(kAnswer) == std::future_status::ready ? answer.get() : InHand{};
}

}  // namespace

void poll_or_leave(const std::function<bool()>& done, Seconds limit, std::string_view what) {
  constexpr std::chrono::microseconds kPoll{50};
  const double limit_s = shortened(limit);
  const auto begin = Clock::now();
  while (!done()) {
    if (std::chrono::duration<double>(Clock::now() - begin).count() > limit_s) leave(what, limit_s);
    std::this_thread::sleep_for(kPoll);
  }
}

struct Deadline::State {
  struct Work {
    std::string what;
    double limit_s;
    Clock::time_point until;
    std::function<InHand()> in_hand;
  };

  void watch(const std::stop_token& ended) {
    constexpr std::chrono::milliseconds kLook{50};
    std::unique_lock held(lock);
    while (!ended.stop_requested()) {
      if (work && Clock::now() > work->until) leave(work->what, work->limit_s, answer_of(work->in_hand));
      (void)changed.wait_for(held, ended, kLook, [] { return false; });
    }
  }

  std::mutex lock;
  std::condition_variable_any changed;
  std::optional<Work> work;
  std::jthread watcher{[this](const std::stop_token& ended) { watch(ended); }};  // last: the rest is there
};

Deadline::Deadline() : state_(std::make_unique<State>()) {}
Deadline::~Deadline() = default;

Deadline::Due Deadline::set(std::string what, Seconds limit, std::function<InHand()> in_hand) {
  const double limit_s = shortened(limit);
  const auto until = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(limit_s));
  const std::scoped_lock held(state_->lock);
  state_->work = {
      .what = std::move(what) + of_current(), .limit_s = limit_s, .until = until, .in_hand = std::move(in_hand)};
  return Due(this);
}

void Deadline::clear() noexcept {
  const std::scoped_lock held(state_->lock);
  state_->work.reset();
}

}  // namespace assay::cuda
