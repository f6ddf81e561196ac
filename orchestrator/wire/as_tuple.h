// as_tuple: the completion token with which co_await returns an error instead of throwing it.
#pragma once

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace assay::wire {

/// co_await of an operation yields (error, results...).
inline constexpr auto kAsTuple = boost::asio::as_tuple(boost::asio::use_awaitable);

}  // namespace assay::wire
