// patience: the loop.
#include "probes/cuda/patience.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <thread>

#include <fmt/format.h>

#include "probes/core/probe.h"

namespace assay::cuda {
namespace {

/// The environment variable ASSAY_DEVICE_SECONDS, 1 or more, shortens the wait where a test has a GPU that hangs;
/// agents pass it to no probe.
double shortened(Seconds limit) {
  const char* given = std::getenv("ASSAY_DEVICE_SECONDS");
  const double seconds = given == nullptr ? 0 : std::strtod(given, nullptr);
  return seconds >= 1 ? std::min(seconds, limit.count) : limit.count;
}

}  // namespace

void poll_or_leave(const std::function<bool()>& done, Seconds limit, std::string_view what) {
  constexpr std::chrono::microseconds kPoll{50};
  const double limit_s = shortened(limit);
  const auto begin = std::chrono::steady_clock::now();
  while (!done()) {
    if (std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() > limit_s) {
      leave_stuck(
          fmt::format("{}: the GPU is not done after {:g} s and hangs; hint: look for Xid errors or amdgpu in the "
                      "kernel's log, and reset the GPU",
                      what, limit_s));
    }
    std::this_thread::sleep_for(kPoll);
  }
}

}  // namespace assay::cuda
