// load_engine: parts of a node that work at a share of their time, so that power follows a level.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace assay {
class Recorder;
}  // namespace assay

namespace assay::power {

/// A unit of the load: a CPU, or a GPU with the thread that feeds it. All that is not const is called by one thread
/// of its own.
class LoadUnit {
 public:
  virtual ~LoadUnit() = default;
  /// Makes operands and all else that the first work() would have to wait for.
  virtual void prepare() = 0;
  /// Works for about a millisecond. May return while that much is still to be done.
  virtual void work() = 0;
  /// Returns when nothing is still to be done.
  virtual void finish() {}
  /// Frees the resources of prepare().
  virtual void close() {}
  /// Floating-point operations of one work(); good after prepare().
  [[nodiscard]] virtual double flop_of_work() const = 0;
  /// Wrong results so far, of a unit that checks them; may be called by any thread.
  [[nodiscard]] virtual std::uint64_t mismatches() const { return 0; }
  /// Records its checks; called by another thread while the unit rests.
  virtual void record(Recorder& /*record*/) const {}
};

/// One unit of a load. `places` of them share a level: those before it work all the time when it works for a part.
struct LoadPart {
  std::unique_ptr<LoadUnit> unit;
  std::size_t place = 0, places = 1;
  bool counted = true;  ///< whether its operations are in flop()
};

/// The units of this machine, each with a thread. At level x the first x of those that share it work all the time and
/// one more for the rest of x, in slices much shorter than a meter's averaging window; the others sleep.
class LoadEngine {
 public:
  /// Prepares every unit, which then sleeps. Throws the errors of their prepare().
  explicit LoadEngine(std::vector<LoadPart> parts);
  LoadEngine(const LoadEngine&) = delete;
  LoadEngine& operator=(const LoadEngine&) = delete;
  /// Ends the threads within one work().
  ~LoadEngine();

  /// Works at `level`, 0 to 1, from now on.
  void work_at(double level);
  /// The least level at which something works, which shows that all can begin and is no step of the whole.
  [[nodiscard]] double least_level() const;
  /// Floating-point operations so far, of all counted units.
  [[nodiscard]] double flop() const;
  /// Waits until the units that the first work_at() has woken have begun, and returns when the last of them did. Throws
  /// std::runtime_error when one has not in a second.
  [[nodiscard]] std::chrono::steady_clock::time_point last_begin() const;
  /// Throws the error that ended a unit since the begin, if any.
  void check() const;
  /// Works at 0 and waits until nothing is to be done any more. Throws std::runtime_error when that takes ten seconds,
  /// and the errors of check().
  void rest();
  /// Calls use(unit) for every unit.
  void each(const std::function<void(const LoadUnit&)>& use) const;

 private:
  struct Driven {
    LoadPart part;
    std::atomic<std::uint64_t> begun{0};                         ///< calls of work()
    std::atomic<std::chrono::steady_clock::time_point> first{};  ///< when the first of them began
    std::atomic<bool> rests{false};                              ///< whether nothing is to be done
  };
  void live(Driven& driven);
  void drive(Driven& driven);
  void end();

  std::atomic<double> level_{0};
  std::atomic<std::uint32_t> change_{0};  ///< sleepers wait for it
  std::atomic<bool> over_{false};
  std::atomic<std::size_t> ready_{0};  ///< prepared, or failed
  mutable std::mutex mutex_;           ///< of failure_
  std::exception_ptr failure_;         ///< the first
  std::deque<Driven> units_;
  std::vector<std::jthread> threads_;
};

}  // namespace assay::power
