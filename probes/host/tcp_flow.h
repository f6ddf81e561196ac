// tcp_flow: payload in one direction over all streams of a pair, in numbered blocks that the receiver checks.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "probes/core/units.h"
#include "probes/host/tcp_streams.h"

namespace assay::host {

/// Every how many blocks the receiver compares a whole block with its expected bytes; the number of a block is always
/// compared.
inline constexpr std::uint64_t kCheckEvery = 16;

/// Content of all blocks of a stream after their number: `size` bytes from SplitMix64 (Steele et al. 2014), whole
/// words.
std::vector<std::byte> block_payload(std::size_t size, std::uint64_t seed);

/// One thread for each stream and their common state. The first exception of any of them ends all.
class Crowd {
 public:
  ~Crowd();
  Crowd() = default;
  Crowd(const Crowd&) = delete;
  Crowd& operator=(const Crowd&) = delete;

  /// Starts one more thread.
  template <typename Work>
  void add(Work work) {
    threads_.emplace_back([this, work] { guarded(work); });
  }
  /// Rethrows a thread's error.
  void check();
  /// Waits for all of them, then check().
  void join();
  /// Turns true when the work has lost its sense.
  [[nodiscard]] const std::atomic<bool>& abandoned() const { return abandoned_; }

 private:
  template <typename Work>
  void guarded(const Work& work) {
    try {
      work();
    } catch (...) {  // carried to the thread that calls check()
      const std::lock_guard lock(mutex_);
      if (!failure_) failure_ = std::current_exception();
      abandoned_ = true;
    }
  }

  std::atomic<bool> abandoned_ = false;
  std::mutex mutex_;
  std::exception_ptr failure_;
  std::vector<std::thread> threads_;
};

/// Sends blocks of `block` bytes over every stream as fast as they go, from construction until finish().
class Sender {
 public:
  /// `seed` selects the payload of this direction; `streams` outlive the sender.
  Sender(const Streams& streams, Bytes block, std::uint64_t seed);
  /// Marks the end of every stream and waits until all is handed to the kernel; B sent. Rethrows a stream's error.
  std::uint64_t finish();

 private:
  void send_blocks(int socket, std::size_t number, Bytes block, std::uint64_t seed);

  std::atomic<bool> ending_ = false;
  std::atomic<std::uint64_t> sent_ = 0;
  Crowd crowd_;
};

/// Bytes received over all streams.
struct Received {
  std::uint64_t bytes = 0;
  std::uint64_t blocks = 0;
  std::uint64_t checked = 0;     ///< blocks compared byte for byte
  std::uint64_t mismatches = 0;  ///< blocks with another number or content than they must have
};

/// Receives from a Sender with the same block and seed.
class Receiver {
 public:
  Receiver(const Streams& streams, Bytes block, std::uint64_t seed);
  /// B received until now, over all streams. Rethrows a stream's error.
  [[nodiscard]] std::uint64_t received();
  /// Waits for the marks. Rethrows a stream's error.
  Received finish();

 private:
  void receive_blocks(int socket, std::size_t number, Bytes block, std::uint64_t seed);

  std::atomic<std::uint64_t> bytes_ = 0, blocks_ = 0, checked_ = 0, mismatches_ = 0;
  Crowd crowd_;
};

}  // namespace assay::host
