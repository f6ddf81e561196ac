// loaded_loop: the latency of a walk of pointers beside one core that reads memory, as a plain program has it; the
// yardstick of host_loaded_latency. Prints the median latency in s, or the median rate of the reader in B/s.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>

#include "probes/core/statistics.h"

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::size_t kHugePage = 2 << 20, kLine = 64, kBurst = 512;

using Memory = std::unique_ptr<std::uint64_t[], decltype(&std::free)>;

Memory memory_of(std::size_t bytes) {
  Memory memory(static_cast<std::uint64_t*>(std::aligned_alloc(kHugePage, bytes)), &std::free);
  if (memory != nullptr) (void)madvise(memory.get(), bytes, MADV_HUGEPAGE);  // advice may be refused
  return memory;
}

void pin(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  if (pthread_setaffinity_np(pthread_self(), sizeof set, &set) != 0) std::exit(1);
}

/// Every line holds the index of the next one of a random cycle through all of them.
void make_cycle(std::uint64_t* memory, std::size_t lines) {
  std::vector<std::uint64_t> order(lines);
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin() + 1, order.end(), std::mt19937_64(7));
  const std::size_t words = kLine / sizeof *memory;
  for (std::size_t i = 0; i < lines; ++i) memory[order[i] * words] = order[(i + 1) % lines] * words;
}

void read_on(const std::uint64_t* memory, std::size_t words, std::int64_t delay_ns, std::atomic<std::uint64_t>& bytes,
             const std::atomic<bool>& over) {
  std::uint64_t all = 0;
  for (std::size_t at = 0; !over.load(std::memory_order_relaxed); at = at + 2 * kBurst > words ? 0 : at + kBurst) {
    for (std::size_t i = 0; i < kBurst; ++i) all ^= memory[at + i];
    bytes.store(bytes.load(std::memory_order_relaxed) + kBurst * sizeof *memory, std::memory_order_relaxed);
    if (delay_ns == 0) continue;
    const auto until = Clock::now() + std::chrono::nanoseconds(delay_ns);
    while (Clock::now() < until) {
    }
  }
  if (all == 1) std::cerr << ' ';  // so that the loads stay
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) {
    std::cerr << "usage: loaded_loop CYCLE_BYTES ARRAY_BYTES DELAY_NS|idle CHUNKS latency|rate\n"
                 "Example: loaded_loop 268435456 134217728 0 10 latency    (CPU 0 walks, CPU 1 reads)\n";
    return 2;
  }
  const std::size_t cycle = std::stoul(argv[1]) / kHugePage * kHugePage;
  const std::size_t array = std::stoul(argv[2]) / kHugePage * kHugePage;
  const bool idle = std::string(argv[3]) == "idle";
  const std::int64_t delay_ns = idle ? 0 : std::stoll(argv[3]);
  const int chunks = std::stoi(argv[4]);
  if (cycle == 0 || array == 0 || chunks < 1) return 2;
  pin(0);
  const Memory walked = memory_of(cycle);
  if (walked == nullptr) return 1;
  make_cycle(walked.get(), cycle / kLine);

  std::atomic<std::uint64_t> bytes = 0;
  std::atomic<bool> over = false, ready = idle;
  std::thread reader([&] {
    if (idle) return;
    pin(1);
    const Memory read = memory_of(array);
    if (read == nullptr) std::exit(1);
    std::fill_n(read.get(), array / sizeof(std::uint64_t), 2);
    ready = true;
    read_on(read.get(), array / sizeof(std::uint64_t), delay_ns, bytes, over);
  });
  while (!ready) sched_yield();
  constexpr std::uint64_t kSteps = 400'000;  // some 50 ms
  std::vector<double> latencies, rates;
  std::uint64_t at = 0;
  for (int chunk = 0; chunk < chunks + 3; ++chunk) {
    const std::uint64_t before = bytes;
    const auto begin = Clock::now();
    for (std::uint64_t i = 0; i < kSteps; ++i) at = walked[at];
    const double time_s = std::chrono::duration<double>(Clock::now() - begin).count();
    if (chunk < 3) continue;  // warm-up
    latencies.push_back(time_s / kSteps);
    rates.push_back(static_cast<double>(bytes - before) / time_s);
  }
  over = true;
  reader.join();
  if (at == 1) return 1;  // never: indices are multiples of a line; so that the loads stay
  std::cout.precision(10);
  std::cout << assay::median(std::string(argv[5]) == "rate" ? rates : latencies) << '\n';
  return 0;
}
