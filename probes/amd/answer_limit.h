// answer_limit: a time limit for questions to a library that may never answer.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "probes/core/units.h"

namespace assay::amd {

/// Gives each question a time limit. After it a call of the driver hangs, which nothing ends: the process leaves
/// (leave_stuck) with the GPU and the question as its reason.
class AnswerLimit {
 public:
  explicit AnswerLimit(Seconds limit);
  ~AnswerLimit();
  AnswerLimit(const AnswerLimit&) = delete;
  AnswerLimit& operator=(const AnswerLimit&) = delete;

  /// Begins a question, in place of the one before; empty: none is open.
  void asking(std::string question);

 private:
  void watch();

  using Clock = std::chrono::steady_clock;
  const Seconds limit_;
  std::mutex lock_;
  std::condition_variable changed_;
  std::string question_;
  Clock::time_point since_ = Clock::now();
  bool over_ = false;
  std::thread watcher_;  // last: it uses all of the above
};

}  // namespace assay::amd
