// frame_queue: outgoing frames of one stream, in order and bounded.
#pragma once

#include <deque>
#include <string>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>

#include "orchestrator/wire/stream.h"

namespace assay::wire {

/// A queue before a byte stream; one writer coroutine empties it. Single-threaded. It must outlive every coroutine that
/// waits in it: close it and let them end.
class FrameQueue {
 public:
  /// Bytes that wait before push_when_room does: some frames of data, so that the stream never idles.
  static constexpr std::size_t kRoom = 1 << 20;

  /// Writes to `stream`, which must outlive the queue.
  explicit FrameQueue(Stream& stream);

  /// Appends without waiting: for small frames whose number is bounded by the caller. Dropped when closed.
  void push(std::string bytes);
  /// Whether fewer than kRoom bytes wait.
  [[nodiscard]] bool has_room() const { return waiting_bytes_ < kRoom; }
  /// Appends once it has room. Returns false when the queue is closed. It waits as long as the other
  /// side does not read; the owner of the queue closes it when that side falls silent.
  boost::asio::awaitable<bool> push_when_room(std::string bytes);
  /// Writes pushed frames until the queue is closed or the stream breaks; closes the queue in the end.
  boost::asio::awaitable<void> write_all();
  /// Ends write_all after the frames already pushed. Pushing ends at once.
  void finish();
  /// Ends everything at once.
  void close();

 private:
  Stream& stream_;
  boost::asio::steady_timer changed_;  // never expires; cancelled at every change
  std::deque<std::string> waiting_;
  std::size_t waiting_bytes_ = 0;
  bool finishing_ = false;
  bool closed_ = false;
};

}  // namespace assay::wire
