// collective_queue: one thread that takes posted collectives from a list of fixed size, in order.
#include "workloads/train/engine/collective_queue.h"

namespace assay::train {

CollectiveQueue::CollectiveQueue(const Carry& carry, std::size_t most)
    : carry_(carry), posted_(most), thread_([this] { live(); }) {}

CollectiveQueue::~CollectiveQueue() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void CollectiveQueue::restart() {
  const std::lock_guard lock(mutex_);
  done_ = count_ = 0;
}

std::size_t CollectiveQueue::post(std::size_t op) {
  const std::lock_guard lock(mutex_);
  posted_[count_++] = op;
  changed_.notify_all();
  return count_;
}

void CollectiveQueue::wait(std::size_t count) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return done_ >= count || failure_; });
  if (failure_) std::rethrow_exception(failure_);
}

void CollectiveQueue::live() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return over_ || done_ < count_; });
    if (over_) return;
    const std::size_t op = posted_[done_];
    lock.unlock();
    std::exception_ptr failure;
    try {
      carry_(op);
    } catch (...) {  // thrown on by wait()
      failure = std::current_exception();
    }
    lock.lock();
    ++done_;
    if (failure) failure_ = failure;
    changed_.notify_all();
    if (failure) return;
  }
}

}  // namespace assay::train
