// time_limit: an action for an operation that takes too long.
#pragma once

#include <chrono>
#include <functional>
#include <utility>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace assay::wire {

/// Calls `act` at `end`, unless it is lifted before. Single-threaded.
class TimeLimit {
 public:
  TimeLimit(const boost::asio::any_io_executor& executor, std::chrono::steady_clock::time_point end,
            std::function<void()> act)
      : timer_(executor, end) {
    timer_.async_wait([act = std::move(act)](const boost::system::error_code& error) {
      if (!error) act();
    });
  }

  /// Afterwards `act` has either run or never will, so its references may be destroyed. Every path must call this.
  boost::asio::awaitable<void> lift() {
    timer_.cancel();
    // An `act` that is already due is in the loop's queue before this.
    co_await boost::asio::post(timer_.get_executor(), boost::asio::use_awaitable);
  }

 private:
  boost::asio::steady_timer timer_;
};

}  // namespace assay::wire
