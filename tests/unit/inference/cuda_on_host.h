// cuda_on_host: blocks of CUDA kernels on the host, so that the kernels themselves are tested where no GPU is. Every
// thread of a block is a fibre of one thread; a barrier lets the others run until all are there. It defines the words
// of CUDA that kernels use, and so belongs into files that include kernels and nothing of CUDA.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <vector>

#include <ucontext.h>

#define __device__
#define __global__
#define __shared__ static
#define __launch_bounds__(...)

struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
struct HostIndex {
  unsigned x = 0, y = 0, z = 0;
};
inline HostIndex threadIdx, blockIdx;  // of the fibre that runs

namespace assay::cuda_on_host {

constexpr unsigned kWarp = 32;

/// Where fibres wait for each other.
struct Barrier {
  unsigned arrived = 0;
  std::uint64_t round = 0;
};

/// One block at work.
class Block {
 public:
  static constexpr std::size_t kStack = std::size_t{64} << 10;

  Block(unsigned threads, std::function<void()> kernel) : threads_(threads), kernel_(std::move(kernel)) {}
  ~Block() { running_ = nullptr; }

  void run() {
    running_ = this;
    static std::vector<std::unique_ptr<std::byte[]>> stacks;  // kept for the next block
    while (stacks.size() < threads_) stacks.push_back(std::make_unique_for_overwrite<std::byte[]>(kStack));
    fibres_.resize(threads_);
    states_.assign(threads_, {});
    warps_.resize((threads_ + kWarp - 1) / kWarp);
    for (std::size_t i = 0; i < fibres_.size(); ++i) {
      ucontext_t& fibre = fibres_[i];
      getcontext(&fibre);
      fibre.uc_stack.ss_sp = stacks[i].get();
      fibre.uc_stack.ss_size = kStack;
      fibre.uc_link = nullptr;
      makecontext(&fibre, &Block::enter, 0);
    }
    for (bool any = true; any;) {
      any = false;
      bool some = false;
      for (unsigned i = 0; i < threads_; ++i) {
        if (states_[i].over) continue;
        any = true;
        if (states_[i].waits_at != nullptr && states_[i].waits_at->round == states_[i].round) continue;
        some = true;
        threadIdx.x = now_ = i;
        resume(states_[i], fibres_[i]);
      }
      if (any && !some) throw std::logic_error("threads of a block wait for such that never come");
    }
  }
  void wait(Barrier& at, unsigned all) {
    if (++at.arrived == all) {
      at.arrived = 0;
      ++at.round;
      return;
    }
    states_[now_].waits_at = &at;
    states_[now_].round = at.round;
    leave(states_[now_]);
  }
  void wait_for_block() { wait(whole_, threads_); }
  using Words = std::array<std::array<std::uint32_t, 8>, kWarp>;
  /// Shows this lane's words to the others of its warp, and returns theirs. They stay until the next but one.
  const Words& shared(const std::array<std::uint32_t, 8>& mine) {
    Warp& warp = warps_[now_ / kWarp];
    Words& words = warp.words[states_[now_].shown++ % 2];
    words[now_ % kWarp] = mine;
    wait(warp.barrier, kWarp);
    return words;
  }
  static Block& running() { return *running_; }

 private:
  static void enter() {
    Block& block = *running_;
    block.kernel_();
    block.states_[block.now_].over = true;
    go_to(block.back_);
  }
  /// Where a fibre or its caller goes on: for the compiler's own jumps, which are a few instructions.
  using Place = void* [5];
  struct State {
    const Barrier* waits_at = nullptr;
    std::uint64_t round = 0, shown = 0;
    bool begun = false, over = false;
    Place where = {};
  };
  /// Contexts are entered once; later jumps need no call of the kernel.
  [[gnu::noinline]] void resume(State& state, ucontext_t& fibre) {
    if (__builtin_setjmp(back_) != 0) return;
    if (state.begun) go_to(state.where);
    state.begun = true;
    setcontext(&fibre);
  }
  [[gnu::noinline]] void leave(State& state) {
    if (__builtin_setjmp(state.where) == 0) go_to(back_);
  }
  [[noreturn, gnu::noinline]] static void go_to(Place& place) { __builtin_longjmp(place, 1); }
  struct Warp {
    Barrier barrier;
    std::array<Words, 2> words = {};
  };
  inline static Block* running_ = nullptr;
  unsigned threads_, now_ = 0;
  std::function<void()> kernel_;
  std::vector<ucontext_t> fibres_;
  std::vector<State> states_;
  std::vector<Warp> warps_;
  Barrier whole_;
  Place back_ = {};
};

/// Runs every block of a grid, one after the other.
struct Launcher {
  unsigned threads = 256;

  template <class Grid, class... Parameters, class... Arguments>
  void operator()(const Grid& grid, void (*kernel)(Parameters...), const Arguments&... arguments) const {
    for (unsigned z = 0; z < grid.z; ++z) {
      for (unsigned y = 0; y < grid.y; ++y) {
        for (unsigned x = 0; x < grid.x; ++x) {
          blockIdx = {.x = x, .y = y, .z = z};
          Block(threads, [&] { kernel(arguments...); }).run();
        }
      }
    }
  }
};

}  // namespace assay::cuda_on_host

inline void __syncthreads() { assay::cuda_on_host::Block::running().wait_for_block(); }

inline float __shfl_xor_sync(unsigned, float value, int distance) {
  const unsigned lane = threadIdx.x % assay::cuda_on_host::kWarp;
  const auto& words = assay::cuda_on_host::Block::running().shared({std::bit_cast<std::uint32_t>(value)});
  return std::bit_cast<float>(words[lane ^ static_cast<unsigned>(distance)][0]);
}

inline unsigned long long atomicAdd(unsigned long long* to, unsigned long long value) {
  const unsigned long long before = *to;
  *to += value;
  return before;
}
