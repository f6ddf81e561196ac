// packet_flow: batches of datagrams by sendmmsg and recvmmsg, one thread a flow and end.
#include "probes/host/packet_flow.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <system_error>

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "probes/core/json_io.h"

namespace assay::host {
namespace {

using rendezvous::Descriptor;

constexpr std::size_t kBatch = 64;  // datagrams of one call
constexpr int kBuffer = 4 << 20;    // B asked for a socket, so that a thread which sleeps for a moment loses nothing
constexpr timeval kSlice = {.tv_sec = 0, .tv_usec = 100'000};  // the longest an end goes unnoticed

std::system_error failure(const std::string& what) { return {errno, std::generic_category(), what}; }

struct FreeAddresses {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};

std::unique_ptr<addrinfo, FreeAddresses> address_of(const std::string& host, std::uint16_t port) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_DGRAM;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  addrinfo* list = nullptr;
  const int failed = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &list);
  if (failed != 0) throw std::runtime_error(fmt::format("{}: {}", host, gai_strerror(failed)));
  return std::unique_ptr<addrinfo, FreeAddresses>(list);
}

/// A batch of buffers of one size, as the kernel takes it.
struct Batch {
  explicit Batch(std::size_t size) : bytes(kBatch * size) {
    for (std::size_t i = 0; i < kBatch; ++i) {
      parts[i] = {.iov_base = bytes.data() + i * size, .iov_len = size};
      headers[i] = {};
      headers[i].msg_hdr.msg_iov = &parts[i];
      headers[i].msg_hdr.msg_iovlen = 1;
    }
  }
  std::vector<std::byte> bytes;
  std::array<iovec, kBatch> parts;
  std::array<mmsghdr, kBatch> headers;
};

/// Errors of one call after which the next may go well: a full queue, and the answer of a port that was not there yet.
bool passes() {
  return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR || errno == ENOBUFS || errno == ECONNREFUSED;
}

}  // namespace

Streams open_packet_flows(Rendezvous& group, const std::string& own, const std::string& peer, std::size_t count) {
  Streams sockets;
  std::vector<std::uint16_t> ports;
  for (std::size_t i = 0; i < count; ++i) {
    const auto address = address_of(own, 0);
    Descriptor made(::socket(address->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (!made || bind(made.number(), address->ai_addr, address->ai_addrlen) != 0)
      throw failure(fmt::format("a datagram socket at {}", own));
    (void)setsockopt(made.number(), SOL_SOCKET, SO_RCVBUF, &kBuffer, sizeof kBuffer);  // the kernel may give less
    if (setsockopt(made.number(), SOL_SOCKET, SO_RCVTIMEO, &kSlice, sizeof kSlice) != 0 ||
        setsockopt(made.number(), SOL_SOCKET, SO_SNDTIMEO, &kSlice, sizeof kSlice) != 0)
      throw failure("a datagram socket cannot be prepared");
    ports.push_back(port_of(made));
    sockets.push_back(std::move(made));
  }
  const auto said = group.all_gather(nlohmann::json(ports).dump());
  const auto other = parse_json_or_throw(said[group.rank() == 0 ? 1 : 0], "ports of the other rank");
  for (std::size_t i = 0; i < count; ++i) {
    const auto address = address_of(peer, other.at(i).get<std::uint16_t>());
    if (connect(sockets[i].number(), address->ai_addr, address->ai_addrlen) != 0)
      throw failure(fmt::format("datagrams to {}", peer));
  }
  return sockets;
}

PacketSender::PacketSender(const Streams& flows, Bytes size, std::string mark, rendezvous::Clock::time_point until)
    : mark_(std::move(mark)), until_(until) {
  for (const auto& flow : flows)
    crowd_.add([this, socket = flow.number(), size] { send_datagrams(socket, size.count); });
}

void PacketSender::send_datagrams(int socket, std::size_t size) {
  Batch batch(size);
  for (std::size_t i = 0; i < kBatch; ++i) std::memcpy(batch.bytes.data() + i * size, mark_.data(), mark_.size());
  std::uint64_t next = 0;
  while (!ending_ && !crowd_.abandoned() && rendezvous::Clock::now() < until_) {
    for (std::size_t i = 0; i < kBatch; ++i) {
      const std::uint64_t number = next + i;
      std::memcpy(batch.bytes.data() + i * size + mark_.size(), &number, sizeof number);
    }
    const int taken = sendmmsg(socket, batch.headers.data(), kBatch, 0);
    if (taken > 0) {
      next += static_cast<std::uint64_t>(taken);
      sent_.fetch_add(static_cast<std::uint64_t>(taken), std::memory_order_relaxed);
    } else if (!passes()) {
      throw failure("datagrams cannot be sent");
    }
    if (stop_requested()) throw std::runtime_error("stopped while payload was moving");
  }
}

std::uint64_t PacketSender::finish() {
  ending_ = true;
  crowd_.join();
  return sent_;
}

PacketReceiver::PacketReceiver(const Streams& flows, Bytes size, std::string mark) : mark_(std::move(mark)) {
  for (const auto& flow : flows)
    crowd_.add([this, socket = flow.number(), size] { receive_datagrams(socket, size.count); });
}

void PacketReceiver::receive_datagrams(int socket, std::size_t size) {
  Batch batch(size);
  while (!ending_ && !crowd_.abandoned()) {
    const int came = recvmmsg(socket, batch.headers.data(), kBatch, MSG_WAITFORONE, nullptr);
    if (came < 0 && !passes()) throw failure("datagrams cannot be received");
    std::uint64_t ours = 0;
    for (int i = 0; i < came; ++i) {
      const auto at = static_cast<std::size_t>(i);
      const bool whole = batch.headers[at].msg_len == size && (batch.headers[at].msg_hdr.msg_flags & MSG_TRUNC) == 0;
      if (whole && std::memcmp(batch.bytes.data() + at * size, mark_.data(), mark_.size()) == 0) ++ours;
    }
    received_.fetch_add(ours, std::memory_order_relaxed);
    if (stop_requested()) throw std::runtime_error("stopped while payload was moving");
  }
}

std::uint64_t PacketReceiver::received() {
  crowd_.check();
  return received_.load(std::memory_order_relaxed);
}

std::uint64_t PacketReceiver::finish() {
  ending_ = true;
  crowd_.join();
  return received_;
}

}  // namespace assay::host
