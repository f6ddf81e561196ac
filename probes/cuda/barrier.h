// barrier: the same work on several devices, one after the other or all at once, with a common start and end.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <string_view>

#include "probes/core/units.h"

namespace assay::cuda {

/// Where the threads of devices meet that are measured at once. For one participant nothing waits.
class Barrier {
 public:
  /// Longest wait for the others; the slowest has operands to make and algorithms to try.
  static constexpr Seconds kLongestWait = {600};

  /// A barrier of `participants`, at least 1.
  explicit Barrier(std::size_t participants) : participants_(participants) {}

  /// Waits until every participant is here; may be called any number of times, by all of them each time. Throws
  /// std::runtime_error when another participant failed or kLongestWait is over.
  void wait_for_all();
  /// Says that this participant has its numbers. Once only.
  void finish();
  /// Whether all have called finish() or one has failed. Those that are done keep their device under load until then,
  /// so that the others are measured in the company they were promised.
  [[nodiscard]] bool all_finished();
  /// Releases all waiting participants, because one failed.
  void abandon();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t participants_, waiting_ = 0, finished_ = 0, round_ = 0;
  bool abandoned_ = false;
};

/// Calls `work(index, barrier)` for 0 <= index < count: `one_by_one` in this thread, each with a barrier of its own;
/// `together` in one thread for each, all with one barrier. After all have ended, the first failure by index that is
/// not the echo of another is thrown on. `schedule` is one of the choices of kScheduleParameter.
void for_each_index(std::size_t count, std::string_view schedule,
                    const std::function<void(std::size_t, Barrier&)>& work);

}  // namespace assay::cuda
