// stream: two descriptors or one TLS stream behind the same four operations.
#include "orchestrator/wire/stream.h"

#include <tuple>
#include <utility>
#include <variant>

#include <boost/asio/buffer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include "orchestrator/wire/as_tuple.h"
#include "orchestrator/wire/tls.h"

namespace assay::wire {

namespace asio = boost::asio;

namespace {

struct Pipes {
  asio::posix::stream_descriptor in, out;
};

}  // namespace

struct Stream::Channel {
  std::variant<Pipes, std::unique_ptr<TlsStream>> side;
  bool reading_cancelled = false;
};

Stream::Stream(asio::posix::stream_descriptor in, asio::posix::stream_descriptor out)
    : channel_(std::make_unique<Channel>(Channel{.side = Pipes{std::move(in), std::move(out)}})) {}
Stream::Stream(std::unique_ptr<TlsStream> tls) : channel_(std::make_unique<Channel>(Channel{.side = std::move(tls)})) {}
Stream::~Stream() = default;
Stream::Stream(Stream&&) noexcept = default;
Stream& Stream::operator=(Stream&&) noexcept = default;

asio::awaitable<ReadResult> Stream::read_some(std::span<char> buffer) {
  ReadResult result;
  if (channel_->reading_cancelled) {
    result.error = asio::error::operation_aborted;
  } else if (auto* pipes = std::get_if<Pipes>(&channel_->side)) {
    std::tie(result.error, result.size) =
        co_await pipes->in.async_read_some(asio::buffer(buffer.data(), buffer.size()), kAsTuple);
  } else {
    auto& tls = std::get<std::unique_ptr<TlsStream>>(channel_->side)->stream;
    std::tie(result.error, result.size) =
        co_await tls.async_read_some(asio::buffer(buffer.data(), buffer.size()), kAsTuple);
    // Both sides end a stream by ending its TCP connection, and every message has its own length, so a missing
    // close_notify adds no information.
    if (result.error == asio::ssl::error::stream_truncated) result.error = asio::error::eof;
  }
  co_return result;
}

asio::awaitable<boost::system::error_code> Stream::write(std::string_view bytes) {
  boost::system::error_code error;
  std::size_t size = 0;
  if (auto* pipes = std::get_if<Pipes>(&channel_->side)) {
    std::tie(error, size) = co_await asio::async_write(pipes->out, asio::buffer(bytes), kAsTuple);
  } else {
    auto& tls = std::get<std::unique_ptr<TlsStream>>(channel_->side)->stream;
    std::tie(error, size) = co_await asio::async_write(tls, asio::buffer(bytes), kAsTuple);
  }
  co_return error;
}

void Stream::cancel_reading() {
  channel_->reading_cancelled = true;
  boost::system::error_code ignored;  // a stream that is already broken needs no cancelling
  if (auto* pipes = std::get_if<Pipes>(&channel_->side)) {
    (void)pipes->in.cancel(ignored);
  } else {
    (void)std::get<std::unique_ptr<TlsStream>>(channel_->side)
        ->stream.lowest_layer()
        .shutdown(asio::ip::tcp::socket::shutdown_receive, ignored);
  }
}

void Stream::close_writing() {
  boost::system::error_code ignored;  // the stream is abandoned, for any result of close
  if (auto* pipes = std::get_if<Pipes>(&channel_->side)) {
    (void)pipes->out.close(ignored);
  } else {
    (void)std::get<std::unique_ptr<TlsStream>>(channel_->side)
        ->stream.lowest_layer()
        .shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
  }
}

asio::any_io_executor Stream::executor() const {
  if (auto* pipes = std::get_if<Pipes>(&channel_->side)) return pipes->in.get_executor();
  return std::get<std::unique_ptr<TlsStream>>(channel_->side)->stream.get_executor();
}

}  // namespace assay::wire
