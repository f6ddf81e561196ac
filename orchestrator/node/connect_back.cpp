// connect_back: token from stdin, TLS with the pinned key, one line each way.
#include "orchestrator/node/connect_back.h"

#include <array>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <span>
#include <utility>

#include <poll.h>
#include <unistd.h>

#include <fmt/format.h>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "orchestrator/wire/dial.h"
#include "orchestrator/wire/time_limit.h"
#include "orchestrator/wire/tls.h"

namespace assay::node {

namespace asio = boost::asio;
using asio::ip::tcp;

namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr auto kAsTuple = asio::as_tuple(asio::use_awaitable);
constexpr auto kAttempt =
    5s;  // for one home to connect and shake hands: an address behind a firewall says nothing at all
constexpr auto kWelcome =
    600s;  // beyond the patience: assay may have hundreds of slower nodes to start first; when it dies we read the end
constexpr auto kPause = 500ms;  // before the homes are tried again: the listener may be a moment behind under load

/// A home as an endpoint; the address is numeric because a static program has no name service.
std::expected<tcp::endpoint, std::string> endpoint_of(const std::string& home) {
  const auto colon = home.rfind(':');
  std::string address = home.substr(0, colon);
  if (address.starts_with('[') && address.ends_with(']')) address = address.substr(1, address.size() - 2);
  boost::system::error_code error;
  const auto numeric = asio::ip::make_address(address, error);
  const std::string port = colon == std::string::npos ? "" : home.substr(colon + 1);
  constexpr int kLastPort = 65535;
  const int number = port.empty() || port.size() > 5 || port.find_first_not_of("0123456789") != std::string::npos
                         ? 0
                         : std::stoi(port);
  if (error || number < 1 || number > kLastPort)
    return std::unexpected(fmt::format("'{}' is not ADDRESS:PORT with a numeric address", home));
  return tcp::endpoint(numeric, static_cast<std::uint16_t>(number));
}

/// The first line of stdin, without its newline.
std::expected<std::string, std::string> token_from_stdin(Clock::time_point deadline) {
  std::string line;
  while (line.size() <= wire::kTokenDigits) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd wait = {STDIN_FILENO, POLLIN, 0};
    if (left <= 0 || poll(&wait, 1, static_cast<int>(left)) <= 0) return std::unexpected("no token came on stdin");
    char byte = 0;  // byte by byte: what follows is not ours
    if (read(STDIN_FILENO, &byte, 1) != 1) return std::unexpected("stdin ended before the token");
    if (byte == '\n') break;
    line += byte;
  }
  if (!wire::is_dial_token(line)) return std::unexpected("what came on stdin is no token");
  return line;
}

std::string own_node_name() {
  const char* const slurm = std::getenv("SLURMD_NODENAME");
  if (slurm != nullptr && *slurm != '\0') return slurm;
  std::array<char, 256> name = {};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

class Caller {
 public:
  Caller(asio::io_context& context, const DialOptions& options, wire::PinnedTls tls, wire::Greeting greeting)
      : context_(context),
        options_(options),
        tls_(std::move(tls)),
        greeting_(std::move(greeting)),
        deadline_(Clock::now() +
                  std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(options.patience.count))) {}

  asio::awaitable<std::expected<wire::Stream, std::string>> call(std::vector<tcp::endpoint> homes) {
    std::string last = "there is no home to dial";
    while (Clock::now() < deadline_) {
      for (const auto& home : homes) {
        auto stream = co_await connect(home);
        if (stream) co_return co_await introduce(std::move(*stream));
        last = stream.error();
      }
      asio::steady_timer pause(context_, kPause);
      (void)co_await pause.async_wait(kAsTuple);
    }
    co_return std::unexpected("nobody answers at home: " + last);
  }

 private:
  /// Connected and shaken hands with the holder of the pinned key.
  asio::awaitable<std::expected<std::unique_ptr<wire::TlsStream>, std::string>> connect(tcp::endpoint home) {
    auto tls =
        std::make_unique<wire::TlsStream>(wire::TlsStream{asio::ssl::stream<tcp::socket>(context_, tls_.context)});
    auto& socket = tls->stream.lowest_layer();
    wire::TimeLimit limit(context_.get_executor(), Clock::now() + kAttempt, [&socket] {
      boost::system::error_code ignored;  // closing ends what waits on the socket
      (void)socket.close(ignored);
    });
    const std::string where = fmt::format("{}:{}", home.address().to_string(), home.port());
    auto [error] = co_await socket.async_connect(home, kAsTuple);
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

  /// Says who we are and waits for the welcome.
  asio::awaitable<std::expected<wire::Stream, std::string>> introduce(std::unique_ptr<wire::TlsStream> tls) {
    wire::Stream stream(std::move(tls));
    wire::TimeLimit limit(context_.get_executor(), deadline_ + kWelcome, [&stream] { stream.cancel_reading(); });
    const std::string answer = co_await answer_to(wire::to_line(greeting_), stream);
    co_await limit.lift();
    if (answer == wire::kDialWelcome) co_return std::move(stream);
    if (!answer.ends_with('\n')) co_return std::unexpected("assay hung up without a welcome");
    co_return std::unexpected("assay does not want us: " + answer.substr(0, answer.size() - 1));
  }

  /// The line that comes back for `line`; without its newline when the stream ended before.
  static asio::awaitable<std::string> answer_to(std::string line, wire::Stream& stream) {
    std::string answer;
    if (co_await stream.write(line)) co_return answer;
    while (!answer.ends_with('\n') && answer.size() < wire::kMaxDialLine) {
      char byte = 0;  // byte by byte: the protocol's frames follow
      const std::span<char> one(&byte, 1);
      const wire::ReadResult read = co_await stream.read_some(one);
      if (read.error) break;
      answer += byte;
    }
    co_return answer;
  }

  asio::io_context& context_;
  const DialOptions& options_;
  wire::PinnedTls tls_;
  wire::Greeting greeting_;
  Clock::time_point deadline_;
};

}  // namespace

std::expected<wire::Stream, std::string> dial_home(asio::io_context& context, const DialOptions& options) {
  std::vector<tcp::endpoint> homes;
  for (const auto& home : options.homes) {
    auto endpoint = endpoint_of(home);
    if (!endpoint) return std::unexpected(endpoint.error());
    homes.push_back(*endpoint);
  }
  auto tls = wire::pinned_tls(options.pin);
  if (!tls) return std::unexpected(tls.error());
  auto token = token_from_stdin(Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                                   std::chrono::duration<double>(options.patience.count)));
  if (!token) return std::unexpected(token.error());
  Caller caller(context, options, std::move(*tls), {.token = std::move(*token), .node = own_node_name()});
  std::expected<wire::Stream, std::string> result = std::unexpected("the call did not end");
  const auto call = [&]() -> asio::awaitable<void> { result = co_await caller.call(std::move(homes)); };
  asio::co_spawn(context, call(), asio::detached);
  context.run();
  context.restart();
  return result;
}

}  // namespace assay::node
