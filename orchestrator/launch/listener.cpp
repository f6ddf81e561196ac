// listener: one acceptor, one coroutine for each connection, and a limit on their number.
#include "orchestrator/launch/listener.h"

#include <algorithm>
#include <chrono>
#include <span>
#include <utility>

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <fmt/format.h>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "orchestrator/launch/callers.h"
#include "orchestrator/wire/as_tuple.h"
#include "orchestrator/wire/time_limit.h"
#include "orchestrator/wire/tls.h"

namespace assay::launch {

namespace asio = boost::asio;
using asio::ip::tcp;

namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

using wire::kAsTuple;
constexpr auto kFirstByteTimeout = 3s;     // an agent speaks first and at once; a lost packet costs it a second
constexpr auto kGreetingTimeout = 10s;     // for handshake and greeting; an agent sends both at once
constexpr auto kRefusalTimeout = 2s;       // for a refusal to be written
constexpr auto kAcceptBackoff = 100ms;     // before the next accept when there are too many, or no descriptors left
constexpr std::size_t kMostEndpoints = 8;  // an agent tries them one after another

}  // namespace

struct AgentListener::State {
  State(const asio::any_io_executor& executor, std::unique_ptr<wire::TlsIdentity> given, Admit decide)
      : acceptor(executor), identity(std::move(given)), admit(std::move(decide)) {}
  tcp::acceptor acceptor;
  std::unique_ptr<wire::TlsIdentity> identity;
  Admit admit;
  Callers callers{callers_within_descriptors()};
  bool closed = false;
};

namespace {

/// The greeting on `stream`; nothing if the stream ends or sends anything else.
asio::awaitable<std::optional<wire::Greeting>> greeting_on(wire::Stream& stream) {
  std::string line;
  while (line.size() < wire::kMaxGreetingLine) {
    char byte = 0;  // byte by byte: later bytes belong to the protocol
    const std::span<char> one(&byte, 1);
    const wire::ReadResult read = co_await stream.read_some(one);
    if (read.error) co_return std::nullopt;
    if (byte == '\n') co_return wire::greeting_from(line);
    line += byte;
  }
  co_return std::nullopt;
}

/// Waits until the caller says something; until then it costs a socket and nothing else. Whether it does.
asio::awaitable<bool> speaks(tcp::socket& socket, const std::function<void()>& close) {
  wire::TimeLimit limit(socket.get_executor(), Clock::now() + kFirstByteTimeout, close);
  const auto [error] = co_await socket.async_wait(tcp::socket::wait_read, kAsTuple);
  co_await limit.lift();
  co_return !error;
}

/// Handshake and greeting with a caller that speaks.
template <class State>
asio::awaitable<void> greet(std::shared_ptr<State> state, tcp::socket socket, Callers::Place caller) {
  auto tls = std::make_unique<wire::TlsStream>(
      wire::TlsStream{asio::ssl::stream<tcp::socket>(std::move(socket), state->identity->context)});
  wire::TlsStream* const connection = tls.get();
  const auto close_connection = [connection] {
    boost::system::error_code ignored;  // closing ends every wait on it
    connection->stream.lowest_layer().close(ignored);
  };
  caller->speaks = true;
  caller->close = close_connection;
  wire::TimeLimit greeting_limit(connection->stream.get_executor(), Clock::now() + kGreetingTimeout, close_connection);
  auto [failed] = co_await connection->stream.async_handshake(asio::ssl::stream_base::server, kAsTuple);
  wire::Stream stream(std::move(tls));
  std::optional<wire::Greeting> greeting;
  if (!failed) greeting = co_await greeting_on(stream);
  co_await greeting_limit.lift();
  if (!greeting || state->closed) co_return;
  if (const auto refusal = state->admit(*greeting, caller->from, stream)) {
    wire::TimeLimit refusal_limit(connection->stream.get_executor(), Clock::now() + kRefusalTimeout, close_connection);
    const std::string line = fmt::format("{}{}\n", wire::kGreetingRefused, *refusal);
    (void)co_await stream.write(line);  // the peer may have closed the connection
    co_await refusal_limit.lift();
  }
}

template <class State>
asio::awaitable<void> answer(std::shared_ptr<State> state, tcp::socket socket) {
  boost::system::error_code error;
  const auto remote = socket.remote_endpoint(error);
  const std::string from = error ? "an unknown address" : remote.address().to_string();
  socket.set_option(tcp::no_delay(true), error);
  const std::function<void()> close = [&socket] {
    boost::system::error_code ignored;  // closing ends every wait on it
    socket.close(ignored);
  };
  const auto caller = state->callers.add({.from = from, .since = Clock::now(), .close = close});
  if (co_await speaks(socket, close) && caller->close) co_await greet(state, std::move(socket), caller);
  state->callers.leave(caller);
}

template <class State>
asio::awaitable<void> accept_all(std::shared_ptr<State> state) {
  asio::steady_timer backoff(state->acceptor.get_executor());
  while (!state->closed) {
    bool accepted = false;
    if (state->callers.has_room(Clock::now())) {
      auto [error, socket] = co_await state->acceptor.async_accept(kAsTuple);
      if (state->closed) co_return;
      accepted = !error;
      if (accepted) asio::co_spawn(state->acceptor.get_executor(), answer(state, std::move(socket)), asio::detached);
    }
    if (accepted) continue;
    backoff.expires_after(kAcceptBackoff);
    (void)co_await backoff.async_wait(kAsTuple);
  }
}

/// Binds and listens, on IPv4 and IPv6 where the kernel has both.
boost::system::error_code listen_on(tcp::acceptor& acceptor, int port) {
  boost::system::error_code error;
  for (const auto& protocol : {tcp::v6(), tcp::v4()}) {
    boost::system::error_code ignored;  // it may not be open
    acceptor.close(ignored);
    acceptor.open(protocol, error);
    if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
    if (!error && protocol == tcp::v6()) acceptor.set_option(asio::ip::v6_only(false), error);
    if (!error) acceptor.bind(tcp::endpoint(protocol, static_cast<std::uint16_t>(port)), error);
    if (!error) acceptor.listen(tcp::acceptor::max_listen_connections, error);
    if (!error) break;
  }
  return error;
}

}  // namespace

std::expected<std::unique_ptr<AgentListener>, std::string> AgentListener::open(const asio::any_io_executor& executor,
                                                                               int port, Admit admit) {
  auto identity = wire::make_tls_identity();
  if (!identity) return std::unexpected(identity.error());
  auto state = std::make_shared<State>(executor, std::move(*identity), std::move(admit));
  if (const auto error = listen_on(state->acceptor, port)) {
    return std::unexpected(fmt::format("cannot listen for agents on port {}: {}", port, error.message()));
  }
  asio::co_spawn(executor, accept_all(state), asio::detached);
  return std::unique_ptr<AgentListener>(new AgentListener(std::move(state)));  // the constructor is private
}

AgentListener::~AgentListener() {
  state_->closed = true;
  state_->admit = nullptr;
  boost::system::error_code ignored;  // no caller depends on them
  state_->acceptor.close(ignored);
  state_->callers.close_all();
}

const std::string& AgentListener::pin() const { return state_->identity->pin; }

int AgentListener::port() const {
  boost::system::error_code error;
  const auto endpoint = state_->acceptor.local_endpoint(error);
  return error ? 0 : endpoint.port();
}

namespace {

std::string endpoint_text(const asio::ip::address& address, int port) {
  return address.is_v6() ? fmt::format("[{}]:{}", address.to_string(), port)
                         : fmt::format("{}:{}", address.to_string(), port);
}

/// The address of an entry of getifaddrs that is up and not link-local, which would need a zone.
std::optional<asio::ip::address> usable(const ifaddrs& entry) {
  if (entry.ifa_addr == nullptr || (entry.ifa_flags & IFF_UP) == 0) return std::nullopt;
  if (entry.ifa_addr->sa_family == AF_INET) {
    const auto& raw = reinterpret_cast<const sockaddr_in*>(entry.ifa_addr)->sin_addr;
    return asio::ip::address_v4(ntohl(raw.s_addr));
  }
  if (entry.ifa_addr->sa_family != AF_INET6) return std::nullopt;
  const auto& raw = reinterpret_cast<const sockaddr_in6*>(entry.ifa_addr)->sin6_addr;
  asio::ip::address_v6::bytes_type bytes;
  std::ranges::copy(raw.s6_addr, bytes.begin());
  asio::ip::address_v6 address(bytes);
  if (address.is_link_local()) return std::nullopt;
  return address;
}

std::vector<asio::ip::address> own_addresses() {
  std::vector<asio::ip::address> all;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) == 0) {
    for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
      if (const auto address = usable(*entry)) all.push_back(*address);
    }
    freeifaddrs(list);
  }
  // IPv4 first: more networks route it. Loopback is of no use to other machines.
  std::ranges::stable_sort(all, {}, [](const asio::ip::address& address) { return address.is_v6(); });
  const auto loopback =
      std::ranges::stable_partition(all, [](const asio::ip::address& address) { return !address.is_loopback(); });
  if (loopback.begin() != all.begin()) all.erase(loopback.begin(), all.end());
  return all;
}

}  // namespace

std::expected<std::vector<std::string>, std::string> listen_endpoints(const std::string& name, int port) {
  std::vector<asio::ip::address> addresses;
  if (name.empty()) {
    addresses = own_addresses();
  } else {
    asio::io_context context;
    tcp::resolver resolver(context);
    boost::system::error_code error;
    for (const auto& entry : resolver.resolve(name, std::to_string(port), error))
      addresses.push_back(entry.endpoint().address());
    if (error) return std::unexpected(fmt::format("slurm.address '{}': {}", name, error.message()));
  }
  if (addresses.empty()) return std::unexpected("this machine has no address that agents could connect to");
  if (addresses.size() > kMostEndpoints) addresses.resize(kMostEndpoints);
  std::vector<std::string> endpoints;
  for (const auto& address : addresses) endpoints.push_back(endpoint_text(address, port));
  return endpoints;
}

}  // namespace assay::launch
