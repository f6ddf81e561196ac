// rendezvous_link: framing over a non-blocking socket.
#include "probes/core/rendezvous_link.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fmt/format.h>

#include "probes/core/probe.h"

namespace assay::rendezvous {
namespace {

constexpr std::uint32_t kMagic =
    0x32565241;                           // "ARV2": a stranger that speaks another protocol is known by its first word
constexpr std::size_t kHeader = 16;       // magic, kind, sequence, length
constexpr std::size_t kChunk = 64 << 10;  // one read; a page of 4 KiB would make a 64 MiB gather 16384 calls

/// The kind named by `word`; nothing for any other word.
std::optional<Kind> kind_of(std::uint32_t word) {
  for (const Kind kind : {Kind::hello, Kind::challenge, Kind::proof, Kind::welcome, Kind::refused, Kind::gather,
                          Kind::spread, Kind::failed}) {
    if (static_cast<std::uint32_t>(kind) == word) return kind;
  }
  return std::nullopt;
}

}  // namespace

void put_u32(std::string& to, std::uint32_t value) {
  for (int shift = 0; shift < 32; shift += 8) to.push_back(static_cast<char>(value >> shift & 0xff));
}

std::uint32_t u32_at(std::string_view from, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) value |= std::uint32_t{static_cast<unsigned char>(from[at + i])} << (8 * i);
  return value;
}

bool equal_in_constant_time(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  volatile unsigned char difference = 0;  // volatile: the loop must not end early
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference =
        static_cast<unsigned char>(difference | (static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i])));
  }
  return difference == 0;
}

Link::Link(Descriptor socket, std::string peer, std::size_t limit)
    : socket_(std::move(socket)), peer_(std::move(peer)), limit_(limit) {
  const int flags = fcntl(socket_.number(), F_GETFL);
  if (flags < 0 || fcntl(socket_.number(), F_SETFL, flags | O_NONBLOCK) != 0) {
    throw std::system_error(errno, std::generic_category(), "a socket cannot be made non-blocking");
  }
  const int on = 1;  // small frames in lock step: waiting to fill a segment would cost 40 ms each
  (void)setsockopt(socket_.number(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);  // slower without, not wrong
}

void Link::close(std::string trouble) {
  closed_ = true;
  out_.clear();
  if (trouble_.empty()) trouble_ = std::move(trouble);
}

void Link::queue(const Frame& frame) {
  if (closed_) return;
  put_u32(out_, kMagic);
  put_u32(out_, static_cast<std::uint32_t>(frame.kind));
  put_u32(out_, frame.sequence);
  put_u32(out_, static_cast<std::uint32_t>(frame.payload.size()));
  out_ += frame.payload;
}

void Link::flush() {
  while (!out_.empty() && !closed_) {
    const ssize_t sent = send(socket_.number(), out_.data(), out_.size(), MSG_NOSIGNAL);
    if (sent >= 0) {
      out_.erase(0, static_cast<std::size_t>(sent));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      return;
    } else if (errno != EINTR) {
      // Frames of the peer before its end may still be waiting: only the sending side is over.
      out_.clear();
      return;
    }
  }
}

void Link::read() {
  std::array<char, kChunk> chunk;
  // One frame over the limit is enough to refuse it; a sender cannot make this buffer grow beyond that.
  while (!closed_ && in_.size() <= kHeader + limit_) {
    const ssize_t got = recv(socket_.number(), chunk.data(), chunk.size(), 0);
    if (got > 0) {
      in_.append(chunk.data(), static_cast<std::size_t>(got));
    } else if (got == 0) {
      close("");
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      return;
    } else if (errno != EINTR) {
      close(std::strerror(errno));
    }
  }
}

std::optional<Frame> Link::next() {
  if (in_.size() < kHeader) return std::nullopt;
  const auto kind = kind_of(u32_at(in_, 4));
  const std::uint32_t length = u32_at(in_, 12);
  std::string trouble;
  if (u32_at(in_, 0) != kMagic || !kind)
    trouble = "it sent something else than a rendezvous frame";
  else if (length > limit_)
    trouble = fmt::format("it sent a frame of {} B, over the limit of {} B", length, limit_);
  if (!trouble.empty()) {
    in_.clear();
    close(std::move(trouble));
    return std::nullopt;
  }
  if (in_.size() < kHeader + length) return std::nullopt;
  Frame frame{.kind = *kind, .sequence = u32_at(in_, 8), .payload = in_.substr(kHeader, length)};
  in_.erase(0, kHeader + length);
  return frame;
}

namespace {

/// Waits for `longest` at most until a link can move, then reads and writes as much as they can, or until `listener`
/// has a caller.
void move_within(std::span<Link* const> links, int listener, std::chrono::milliseconds longest) {
  std::vector<pollfd> polled;
  std::vector<Link*> at;
  for (Link* link : links) {
    if (link->closed()) continue;
    polled.push_back({.fd = link->descriptor(),
                      .events = static_cast<short>(link->flushed() ? POLLIN : POLLIN | POLLOUT),
                      .revents = 0});
    at.push_back(link);
  }
  if (listener >= 0) polled.push_back({.fd = listener, .events = POLLIN, .revents = 0});
  const int ready = poll(polled.data(), polled.size(), static_cast<int>(longest.count()));
  if (stop_requested()) throw std::runtime_error("stopped by a signal while waiting for other ranks");
  if (ready < 0 && errno != EINTR) throw std::system_error(errno, std::generic_category(), "poll of the rendezvous");
  for (std::size_t i = 0; ready > 0 && i < at.size(); ++i) {
    if ((polled[i].revents & POLLOUT) != 0) at[i]->flush();
    if ((polled[i].revents & (POLLIN | POLLHUP | POLLERR)) != 0) at[i]->read();
  }
}

}  // namespace

bool wait_for(std::span<Link* const> links, int listener, Clock::time_point until) {
  constexpr std::chrono::milliseconds kSlice{200};  // the longest that a request to stop goes unnoticed
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now());
  if (left.count() <= 0) return false;
  move_within(links, listener, std::min(left, kSlice));
  return true;
}

void move_now(std::span<Link* const> links) { move_within(links, -1, std::chrono::milliseconds(0)); }

}  // namespace assay::rendezvous
