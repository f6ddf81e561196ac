// connections: one stream of tcp_streams.h each, whose hello is the question.
#include "probes/host/connections.h"

#include <array>
#include <chrono>
#include <cstring>
#include <stdexcept>

#include <fmt/format.h>
#include <sys/socket.h>

namespace assay::host {
namespace {

using rendezvous::Clock;
using rendezvous::Descriptor;

constexpr Seconds kTurn = {0.2};  // the longest an end goes unnoticed
constexpr Seconds kOpen = {30};   // a lossy network may lose a connection's first packets three times over

/// Waits until the other end has closed, at most as long as a caller may take.
void wait_for_end(const Descriptor& stream) {
  const auto until = rendezvous::after(kOpen);
  char unwanted = 0;
  while (Clock::now() < until && !stop_requested()) {
    const auto got = recv(stream.number(), &unwanted, 1, 0);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)) return;
  }
}

}  // namespace

Answerer::Answerer(const Descriptor& listener, const std::string& token, std::size_t threads) {
  for (std::size_t i = 0; i < threads; ++i) crowd_.add([this, &listener, token] { answer_callers(listener, token); });
}

void Answerer::answer_callers(const Descriptor& listener, const std::string& token) {
  while (!ending_ && !crowd_.abandoned()) {
    if (stop_requested()) throw std::runtime_error("stopped while connections were opened");
    const auto [stream, number] = accept_stream(listener, token, rendezvous::after(kTurn));
    if (!stream) continue;
    std::array<std::byte, sizeof number> answer;
    std::memcpy(answer.data(), &number, sizeof number);
    if (send(stream.number(), answer.data(), answer.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(answer.size()))
      continue;  // its caller has gone, and says why
    ++answered_;
    wait_for_end(stream);
  }
}

std::uint64_t Answerer::finish() {
  ending_ = true;
  crowd_.join();
  return answered_;
}

Caller::Caller(const Endpoint& at, const std::string& token, std::size_t threads) : times_(threads) {
  for (std::size_t i = 0; i < threads; ++i) crowd_.add([this, at, token, i] { call(at, token, i); });
}

void Caller::call(const Endpoint& at, const std::string& token, std::size_t thread) {
  const linger reset = {.l_onoff = 1, .l_linger = 0};
  std::atomic<std::uint64_t> counted = 0;
  const std::size_t most = kMostTimes / times_.size();
  for (std::uint32_t number = 0; !ending_ && !crowd_.abandoned(); ++number) {
    const auto begin = Clock::now();
    const Descriptor stream = dial_stream(at, token, number, rendezvous::after(kOpen));
    std::array<std::byte, sizeof number> answer;
    receive_all(stream.number(), answer, crowd_.abandoned(), counted);
    const std::chrono::duration<double> taken = Clock::now() - begin;
    if (std::memcmp(answer.data(), &number, sizeof number) != 0)
      throw std::runtime_error(
          fmt::format("connection {} of {} port {} was answered as another", number, at.host, at.port));
    ++completed_;
    if (times_[thread].size() < most) times_[thread].push_back(taken.count());
    (void)setsockopt(stream.number(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset);  // else it closes in the usual way
  }
}

std::uint64_t Caller::completed() {
  crowd_.check();
  return completed_.load(std::memory_order_relaxed);
}

std::uint64_t Caller::finish() {
  ending_ = true;
  crowd_.join();
  return completed_;
}

std::vector<double> Caller::times() const {
  std::vector<double> all;
  for (const auto& some : times_) all.insert(all.end(), some.begin(), some.end());
  return all;
}

}  // namespace assay::host
