// collective_queue: collectives that run concurrently with the engine's thread, in the order in which they were posted.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace assay::train {

/// Does the collective at place `op` of the operations and returns when this rank's part is done and its data may be
/// used; a send returns at once, and its data may be used, too. From the engine's thread, or from that of a lane.
using Carry = std::function<void(std::size_t op)>;

/// A thread that does collectives. Nothing is allocated after construction.
class CollectiveQueue {
 public:
  /// At most `most` are posted between two restarts. `carry` outlives the lane.
  CollectiveQueue(const Carry& carry, std::size_t most);
  /// Waits for the collective that is under way.
  ~CollectiveQueue();
  CollectiveQueue(const CollectiveQueue&) = delete;
  CollectiveQueue& operator=(const CollectiveQueue&) = delete;

  /// Forgets the posted collectives; all of them are done.
  void restart();
  /// Starts collective `op` when those before it are done. Returns how many have been posted with this one.
  std::size_t post(std::size_t op);
  /// Returns when `count` of the posted ones are done; rethrows the error of one of them. Bounded: the collective in
  /// progress has a deadline of its own, after which the carrier gives it up.
  void wait(std::size_t count);

 private:
  void live();

  const Carry& carry_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::size_t> posted_;
  std::size_t count_ = 0, done_ = 0;
  bool over_ = false;
  std::exception_ptr failure_;
  std::thread thread_;
};

}  // namespace assay::train
