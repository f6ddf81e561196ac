// connect_back: token from stdin, TLS with the pinned key, greeting and answer.
#include "orchestrator/node/connect_back.h"

#include <array>
#include <chrono>
#include <cstdlib>
#include <span>
#include <utility>

#include <poll.h>
#include <unistd.h>

#include <fmt/format.h>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "orchestrator/wire/as_tuple.h"
#include "orchestrator/wire/protocol.h"
#include "orchestrator/wire/time_limit.h"
#include "orchestrator/wire/tls.h"

namespace assay::node {

namespace asio = boost::asio;
using asio::ip::tcp;

namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

using wire::kAsTuple;
constexpr auto kAttempt = 5s;   // for connecting and the handshake: an address behind a firewall does not answer
constexpr auto kAnswer = 600s;  // beyond the patience: assay may wait for hundreds of slower nodes first
constexpr auto kPause = 500ms;  // before the endpoints are tried again: under load the listener may start late

/// Parses an endpoint; the address is numeric because a static program has no name service.
std::expected<tcp::endpoint, std::string> endpoint_of(const std::string& text) {
  const auto colon = text.rfind(':');
  std::string address = text.substr(0, colon);
  if (address.starts_with('[') && address.ends_with(']')) address = address.substr(1, address.size() - 2);
  boost::system::error_code error;
  const auto numeric = asio::ip::make_address(address, error);
  const std::string port = colon == std::string::npos ? "" : text.substr(colon + 1);
  constexpr int kLastPort = 65535;
  const int number = port.empty() || port.size() > 5 || port.find_first_not_of("0123456789") != std::string::npos
                         ? 0
                         : std::stoi(port);
  if (error || number < 1 || number > kLastPort)
    return std::unexpected(fmt::format("'{}' is not ADDRESS:PORT with a numeric address", text));
  return tcp::endpoint(numeric, static_cast<std::uint16_t>(number));
}

/// The first line of stdin, without its newline.
std::expected<std::string, std::string> token_from_stdin(Clock::time_point deadline) {
  std::string line;
  while (line.size() <= wire::kTokenDigits) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd wait = {STDIN_FILENO, POLLIN, 0};
    if (left <= 0 || poll(&wait, 1, static_cast<int>(left)) <= 0) return std::unexpected("no token came on stdin");
    char byte = 0;  // byte by byte: later bytes are not for this process
    if (read(STDIN_FILENO, &byte, 1) != 1) return std::unexpected("stdin ended before the token");
    if (byte == '\n') break;
    line += byte;
  }
  if (!wire::is_greeting_token(line)) return std::unexpected("the line on stdin is not a token");
  return line;
}

std::string own_node_name() {
  const char* const slurm = std::getenv("SLURMD_NODENAME");
  if (slurm != nullptr && *slurm != '\0') return slurm;
  std::array<char, 256> name = {};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

/// Connects, greets and waits for the answer.
class Connector {
 public:
  Connector(asio::io_context& context, const ConnectBackOptions& options, wire::PinnedTls tls, wire::Greeting greeting)
      : context_(context),
        options_(options),
        tls_(std::move(tls)),
        greeting_(std::move(greeting)),
        deadline_(Clock::now() +
                  std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(options.patience.count))) {}

  asio::awaitable<std::expected<wire::Stream, std::string>> run(std::vector<tcp::endpoint> endpoints) {
    std::string last = "no endpoint was given";
    while (Clock::now() < deadline_) {
      for (const auto& endpoint : endpoints) {
        auto stream = co_await connect(endpoint);
        if (stream) co_return co_await greet(std::move(*stream));
        last = stream.error();
      }
      asio::steady_timer pause(context_, kPause);
      (void)co_await pause.async_wait(kAsTuple);
    }
    co_return std::unexpected("cannot connect back to the head node: " + last);
  }

 private:
  /// A TLS stream to the holder of the pinned key.
  asio::awaitable<std::expected<std::unique_ptr<wire::TlsStream>, std::string>> connect(tcp::endpoint endpoint) {
    auto tls =
        std::make_unique<wire::TlsStream>(wire::TlsStream{asio::ssl::stream<tcp::socket>(context_, tls_.context)});
    auto& socket = tls->stream.lowest_layer();
    wire::TimeLimit limit(context_.get_executor(), Clock::now() + kAttempt, [&socket] {
      boost::system::error_code ignored;  // closing ends every wait on the socket
      (void)socket.close(ignored);
    });
    const std::string where = fmt::format("{}:{}", endpoint.address().to_string(), endpoint.port());
    auto [error] = co_await socket.async_connect(endpoint, kAsTuple);
    std::string reason = error ? fmt::format("{}: {}", where, error.message()) : "";
    if (!error) {
      socket.set_option(tcp::no_delay(true), error);
      std::tie(error) = co_await tls->stream.async_handshake(asio::ssl::stream_base::client, kAsTuple);
      if (error) reason = fmt::format("{} does not hold the pinned key: {}", where, error.message());
    }
    co_await limit.lift();
    if (!reason.empty()) co_return std::unexpected(reason);
    co_return std::move(tls);
  }

  /// Sends the greeting and waits until it is accepted.
  asio::awaitable<std::expected<wire::Stream, std::string>> greet(std::unique_ptr<wire::TlsStream> tls) {
    wire::Stream stream(std::move(tls));
    wire::TimeLimit limit(context_.get_executor(), deadline_ + kAnswer, [&stream] { stream.cancel_reading(); });
    const std::string answer = co_await answer_to(wire::to_line(greeting_), stream);
    co_await limit.lift();
    if (answer == wire::kGreetingAccepted) co_return std::move(stream);
    if (!answer.ends_with('\n')) co_return std::unexpected("the head node closed the connection without an answer");
    co_return std::unexpected("the head node refused this agent: " + answer.substr(0, answer.size() - 1));
  }

  /// The answer to `line`; without its newline when the stream ended before.
  static asio::awaitable<std::string> answer_to(std::string line, wire::Stream& stream) {
    std::string answer;
    if (co_await stream.write(line)) co_return answer;
    while (!answer.ends_with('\n') && answer.size() < wire::kMaxGreetingLine) {
      char byte = 0;  // byte by byte: the protocol's frames follow
      const std::span<char> one(&byte, 1);
      const wire::ReadResult read = co_await stream.read_some(one);
      if (read.error) break;
      answer += byte;
    }
    co_return answer;
  }

  asio::io_context& context_;
  const ConnectBackOptions& options_;
  wire::PinnedTls tls_;
  wire::Greeting greeting_;
  Clock::time_point deadline_;
};

}  // namespace

std::expected<wire::Stream, std::string> connect_back(asio::io_context& context, const ConnectBackOptions& options) {
  std::vector<tcp::endpoint> endpoints;
  for (const auto& text : options.endpoints) {
    auto endpoint = endpoint_of(text);
    if (!endpoint) return std::unexpected(endpoint.error());
    endpoints.push_back(*endpoint);
  }
  auto tls = wire::pinned_tls(options.pin);
  if (!tls) return std::unexpected(tls.error());
  auto token = token_from_stdin(Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                                   std::chrono::duration<double>(options.patience.count)));
  if (!token) return std::unexpected(token.error());
  Connector connector(context, options, std::move(*tls), {.token = std::move(*token), .node = own_node_name()});
  std::expected<wire::Stream, std::string> result = std::unexpected("the connection attempt did not end");
  const auto attempt = [&]() -> asio::awaitable<void> { result = co_await connector.run(std::move(endpoints)); };
  asio::co_spawn(context, attempt(), asio::detached);
  context.run();
  context.restart();
  return result;
}

}  // namespace assay::node
