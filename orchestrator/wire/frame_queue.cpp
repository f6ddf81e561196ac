// frame_queue: a timer that never expires serves as a condition variable.
#include "orchestrator/wire/frame_queue.h"

#include <utility>

#include "orchestrator/wire/as_tuple.h"

namespace assay::wire {

namespace asio = boost::asio;

FrameQueue::FrameQueue(Stream& stream)
    : stream_(stream), changed_(stream.executor(), asio::steady_timer::time_point::max()) {}

void FrameQueue::push(std::string bytes) {
  if (closed_ || finishing_) return;
  waiting_bytes_ += bytes.size();
  waiting_.push_back(std::move(bytes));
  changed_.cancel();
}

asio::awaitable<bool> FrameQueue::push_when_room(std::string bytes) {
  while (!has_room() && !closed_ && !finishing_) (void)co_await changed_.async_wait(kAsTuple);  // ends by cancel
  if (closed_ || finishing_) co_return false;
  push(std::move(bytes));
  co_return true;
}

asio::awaitable<void> FrameQueue::write_all() {
  while (!closed_) {
    if (waiting_.empty()) {
      if (finishing_) break;
      (void)co_await changed_.async_wait(kAsTuple);  // ends by cancel
      continue;
    }
    const std::string bytes = std::move(waiting_.front());
    waiting_.pop_front();
    const auto error = co_await stream_.write(bytes);
    if (error || closed_) break;
    waiting_bytes_ -= bytes.size();
    changed_.cancel();
  }
  close();
}

void FrameQueue::finish() {
  finishing_ = true;
  changed_.cancel();
}

void FrameQueue::close() {
  closed_ = true;
  waiting_.clear();
  waiting_bytes_ = 0;
  changed_.cancel();
}

}  // namespace assay::wire
