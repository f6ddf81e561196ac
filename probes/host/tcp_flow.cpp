// tcp_flow: a block is its number and a payload that both sides can make, so that a lost, doubled, misplaced or changed
// one is seen.
#include "probes/host/tcp_flow.h"

#include <array>
#include <cstring>

namespace assay::host {
namespace {

constexpr std::size_t kNumber = sizeof(std::uint64_t);
constexpr std::uint64_t kEnd = UINT64_MAX;  // the number that no block has

std::uint64_t payload_seed(std::uint64_t seed, std::size_t stream) { return seed * 0x10001 + stream; }

}  // namespace

std::vector<std::byte> block_payload(std::size_t size, std::uint64_t seed) {
  std::vector<std::byte> bytes(size);
  std::uint64_t state = seed;
  for (std::size_t at = 0; at + sizeof state <= size; at += sizeof state) {
    state += 0x9E3779B97F4A7C15;
    std::uint64_t word = state;
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9;
    word = (word ^ (word >> 27)) * 0x94D049BB133111EB;
    word ^= word >> 31;
    std::memcpy(bytes.data() + at, &word, sizeof word);
  }
  return bytes;
}

Crowd::~Crowd() {
  abandoned_ = true;
  for (auto& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

void Crowd::check() {
  const std::lock_guard lock(mutex_);
  if (failure_) std::rethrow_exception(failure_);
}

void Crowd::join() {
  for (auto& thread : threads_) thread.join();
  check();
}

Sender::Sender(const Streams& streams, Bytes block, std::uint64_t seed) {
  for (std::size_t i = 0; i < streams.size(); ++i) {
    crowd_.add([this, socket = streams[i].number(), i, block, seed] { send_blocks(socket, i, block, seed); });
  }
}

void Sender::send_blocks(int socket, std::size_t number, Bytes block, std::uint64_t seed) {
  const auto payload = block_payload(block.count - kNumber, payload_seed(seed, number));
  std::array<std::byte, kNumber> head;
  std::uint64_t next = 0;
  for (; !ending_; ++next) {
    std::memcpy(head.data(), &next, kNumber);
    send_all(socket, head, crowd_.abandoned(), true);
    send_all(socket, payload, crowd_.abandoned());
    sent_.fetch_add(block.count, std::memory_order_relaxed);
  }
  std::memcpy(head.data(), &kEnd, kNumber);
  send_all(socket, head, crowd_.abandoned());
}

std::uint64_t Sender::finish() {
  ending_ = true;
  crowd_.join();
  return sent_;
}

Receiver::Receiver(const Streams& streams, Bytes block, std::uint64_t seed) {
  for (std::size_t i = 0; i < streams.size(); ++i) {
    crowd_.add([this, socket = streams[i].number(), i, block, seed] { receive_blocks(socket, i, block, seed); });
  }
}

void Receiver::receive_blocks(int socket, std::size_t number, Bytes block, std::uint64_t seed) {
  const auto expected = block_payload(block.count - kNumber, payload_seed(seed, number));
  std::vector<std::byte> came(expected.size());
  std::array<std::byte, kNumber> head;
  std::atomic<std::uint64_t> heads = 0;  // a block's number counts with its block: no end mark is payload
  for (std::uint64_t next = 0;; ++next) {
    receive_all(socket, head, crowd_.abandoned(), heads);
    std::uint64_t told = 0;
    std::memcpy(&told, head.data(), kNumber);
    if (told == kEnd) return;
    bytes_.fetch_add(kNumber, std::memory_order_relaxed);
    receive_all(socket, came, crowd_.abandoned(), bytes_);
    ++blocks_;
    bool right = told == next;
    if (next % kCheckEvery == 0) {
      ++checked_;
      right = right && came == expected;
    }
    if (!right) ++mismatches_;
  }
}

std::uint64_t Receiver::received() {
  crowd_.check();
  return bytes_.load(std::memory_order_relaxed);
}

Received Receiver::finish() {
  crowd_.join();
  return {.bytes = bytes_, .blocks = blocks_, .checked = checked_, .mismatches = mismatches_};
}

}  // namespace assay::host
