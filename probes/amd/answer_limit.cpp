// answer_limit: one thread that sleeps until the open question's time is over.
#include "probes/amd/answer_limit.h"

#include <utility>

#include <fmt/format.h>

#include "probes/core/probe.h"

namespace assay::amd {

AnswerLimit::AnswerLimit(Seconds limit) : limit_(limit), watcher_([this] { watch(); }) {}

AnswerLimit::~AnswerLimit() {
  {
    const std::lock_guard guard(lock_);
    over_ = true;
  }
  changed_.notify_all();
  watcher_.join();
}

void AnswerLimit::asking(std::string question) {
  {
    const std::lock_guard guard(lock_);
    question_ = std::move(question);
    since_ = Clock::now();
  }
  changed_.notify_all();
}

void AnswerLimit::watch() {
  const auto limit = std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(limit_.count));
  std::unique_lock guard(lock_);
  while (!over_) {
    if (question_.empty()) {
      changed_.wait(guard);
    } else if (const auto end = since_ + limit; Clock::now() < end) {
      changed_.wait_until(guard, end);
    } else {
      leave_stuck(
          fmt::format("{}: no answer for {:g} s, the driver hangs; hint: look for amdgpu in the kernel's log, "
                      "and reset the GPU or restart the node",
                      question_, limit_.count));
    }
  }
}

}  // namespace assay::amd
