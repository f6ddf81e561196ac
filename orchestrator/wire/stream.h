// stream: the byte stream between assay and one agent, over pipes or over TLS.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/system/error_code.hpp>

namespace assay::wire {

struct TlsStream;

/// The result of a read: `size` bytes, or an error.
struct ReadResult {
  boost::system::error_code error;
  std::size_t size = 0;
};

/// Owns both directions. One coroutine may read while another one writes; destroying it closes both.
class Stream {
 public:
  /// Reads from `in` and writes to `out`: pipes or sockets.
  Stream(boost::asio::posix::stream_descriptor in, boost::asio::posix::stream_descriptor out);
  /// A stream whose handshake is done; see tls.h.
  explicit Stream(std::unique_ptr<TlsStream> tls);
  ~Stream();
  Stream(Stream&&) noexcept;
  Stream& operator=(Stream&&) noexcept;

  /// Waits for at least one byte. It has no deadline of its own; cancel_reading ends it.
  boost::asio::awaitable<ReadResult> read_some(std::span<char> buffer);
  /// Writes all of `bytes`, which must outlive the call; the error, if any. Ends by close_writing.
  boost::asio::awaitable<boost::system::error_code> write(std::string_view bytes);
  /// Ends a read that waits, and every later one.
  void cancel_reading();
  /// The other side reads the end of the stream; a write that waits ends with an error.
  void close_writing();
  /// Where its coroutines run.
  [[nodiscard]] boost::asio::any_io_executor executor() const;

 private:
  struct Channel;
  std::unique_ptr<Channel> channel_;
};

}  // namespace assay::wire
