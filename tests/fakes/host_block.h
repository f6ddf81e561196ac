// host_block: the threads of a block of a kernel as fibres of one thread, for kernels with barriers.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include <ucontext.h>

#include "probes/cuda/kernel_words.h"

namespace assay::host_block {

/// The threads of one block after the other. A fibre runs until its barrier and jumps from there to the next one; when
/// all have come there, each goes on. It is made once in a thread of the host: at the end of a block it waits for the
/// next, of whatever kernel.
class Block {
 public:
  static constexpr std::size_t kStack = std::size_t{16} << 10;

  Block(unsigned threads, const std::function<void()>& kernel) : kernel_(kernel), threads_(threads) {
    running = this;
    while (fibres_.size() < threads) fibres_.emplace_back();
    cuda::words::host_place.barrier = [] { running->leave(); };
  }
  void run() {
    for (unsigned i = 0; i < threads_; ++i) fibres_[i].over = false;
    for (bool any = true; any;) {
      any = false;
      for (now_ = 0; now_ < threads_; ++now_) {
        if (fibres_[now_].over) continue;
        any = true;
        cuda::words::host_place.thread = now_;
        resume(fibres_[now_]);  // moves now_ to the last that ran
      }
    }
  }

 private:
  /// Where a fibre or its caller goes on. The compiler's own jumps are a few instructions; those of the C library took
  /// most of the time.
  using Place = void* [5];
  struct Fibre {
    bool begun = false, over = false;
    Place where = {};
    std::unique_ptr<std::byte[]> stack = std::make_unique_for_overwrite<std::byte[]>(kStack);
  };
  static std::vector<Fibre>& all_fibres() {
    static thread_local std::vector<Fibre> all;
    return all;
  }
  static void enter() {
    for (;;) {
      running->kernel_();
      running->fibres_[running->now_].over = true;
      running->leave();
    }
  }
  [[noreturn, gnu::noinline]] static void go_to(Place& place) { __builtin_longjmp(place, 1); }
  [[gnu::noinline]] void resume(Fibre& fibre) {
    if (__builtin_setjmp(back_) != 0) return;
    if (fibre.begun) go_to(fibre.where);
    fibre.begun = true;
    ucontext_t context;
    getcontext(&context);
    context.uc_stack.ss_sp = fibre.stack.get();
    context.uc_stack.ss_size = kStack;
    context.uc_link = nullptr;
    makecontext(&context, &Block::enter, 0);
    setcontext(&context);
  }
  [[gnu::noinline]] void leave() {
    if (__builtin_setjmp(fibres_[now_].where) == 0) go_to(next());
  }
  /// Where the next fibre of this round goes on; the caller's place at the end, and before one that has not begun.
  [[gnu::noinline]] Place& next() {
    unsigned number = now_ + 1;
    while (number < threads_ && fibres_[number].over) ++number;
    if (number == threads_ || !fibres_[number].begun) return back_;
    now_ = number;
    cuda::words::host_place.thread = number;
    return fibres_[number].where;
  }

  inline static thread_local Block* running = nullptr;
  const std::function<void()>& kernel_;
  unsigned threads_;
  std::vector<Fibre>& fibres_ = all_fibres();
  unsigned now_ = 0;
  Place back_ = {};
};

/// Every block of a grid, one after the other.
inline void run(unsigned blocks, unsigned threads, const std::function<void()>& kernel) {
  Block all(threads, kernel);
  for (unsigned block = 0; block < blocks; ++block) {
    cuda::words::host_place.block = block;
    all.run();
  }
}

}  // namespace assay::host_block
