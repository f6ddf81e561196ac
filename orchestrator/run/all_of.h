// all_of: runs several coroutines at once and waits until all have ended.
#pragma once

#include <cstddef>
#include <exception>
#include <memory>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace assay::run {

/// Runs each(0) to each(count - 1), coroutines of type awaitable<void>, at once on the caller's executor and returns
/// when all have ended. Rethrows the first of their errors, once all have ended.
template <class Each>
boost::asio::awaitable<void> side_by_side(std::size_t count, Each each) {
  namespace asio = boost::asio;
  const auto executor = co_await asio::this_coro::executor;
  const auto left = std::make_shared<std::size_t>(count);
  const auto failure = std::make_shared<std::exception_ptr>();
  // Its cancellation wakes this coroutine; each of the others has deadlines of its own.
  const auto ended = std::make_shared<asio::steady_timer>(executor, asio::steady_timer::time_point::max());
  for (std::size_t i = 0; i < count; ++i) {
    asio::co_spawn(executor, each(i), [left, failure, ended](const std::exception_ptr& thrown) {
      if (thrown && !*failure) *failure = thrown;
      if (--*left == 0) ended->cancel();
    });
  }
  boost::system::error_code woken;
  while (*left > 0) co_await ended->async_wait(asio::redirect_error(asio::use_awaitable, woken));
  if (*failure) std::rethrow_exception(*failure);
}

}  // namespace assay::run
