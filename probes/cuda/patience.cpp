// patience: the loop.
#include "probes/cuda/patience.h"

#include <chrono>
#include <thread>

#include <fmt/format.h>

#include "probes/core/probe.h"

namespace assay::cuda {

void poll_or_leave(const std::function<bool()>& done, Seconds limit, std::string_view what) {
  constexpr std::chrono::microseconds kPoll{50};
  const auto begin = std::chrono::steady_clock::now();
  while (!done()) {
    if (std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() > limit.count) {
      leave_stuck(
          fmt::format("{}: the GPU is not done after {:g} s and hangs; hint: look for Xid errors in the kernel's log, "
                      "and reset the GPU",
                      what, limit.count));
    }
    std::this_thread::sleep_for(kPoll);
  }
}

}  // namespace assay::cuda
