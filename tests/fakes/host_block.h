// host_block: the threads of a block of a kernel as fibres of one thread, for kernels with barriers.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include <setjmp.h>
#include <ucontext.h>

#include "probes/cuda/kernel_words.h"

namespace assay::host_block {

/// One block at work. A fibre runs until its barrier; when all have come there, each goes on.
class Block {
 public:
  static constexpr std::size_t kStack = std::size_t{16} << 10;

  Block(unsigned threads, const std::function<void()>& kernel) : kernel_(kernel), fibres_(threads) {
    running = this;
    static std::vector<std::unique_ptr<std::byte[]>> stacks;  // kept for the next block
    while (stacks.size() < threads) stacks.push_back(std::make_unique_for_overwrite<std::byte[]>(kStack));
    cuda::words::host_place.barrier = [] { running->leave(); };
    for (bool any = true; any;) {
      any = false;
      for (now_ = 0; now_ < threads; ++now_) {
        Fibre& fibre = fibres_[now_];
        if (fibre.over) continue;
        any = true;
        cuda::words::host_place.thread = now_;
        resume(fibre, stacks[now_].get());
      }
    }
  }

 private:
  struct Fibre {
    bool begun = false, over = false;
    jmp_buf where = {};
  };
  static void enter() {
    running->kernel_();
    running->fibres_[running->now_].over = true;
    _longjmp(running->back_, 1);
  }
  void resume(Fibre& fibre, std::byte* stack) {
    if (_setjmp(back_) != 0) return;
    if (fibre.begun) _longjmp(fibre.where, 1);
    fibre.begun = true;
    ucontext_t context;
    getcontext(&context);
    context.uc_stack.ss_sp = stack;
    context.uc_stack.ss_size = kStack;
    context.uc_link = nullptr;
    makecontext(&context, &Block::enter, 0);
    setcontext(&context);
  }
  void leave() {
    if (_setjmp(fibres_[now_].where) == 0) _longjmp(back_, 1);
  }

  inline static Block* running = nullptr;
  const std::function<void()>& kernel_;
  std::vector<Fibre> fibres_;
  unsigned now_ = 0;
  jmp_buf back_ = {};
};

/// Every block of a grid, one after the other.
inline void run(unsigned blocks, unsigned threads, const std::function<void()>& kernel) {
  for (unsigned block = 0; block < blocks; ++block) {
    cuda::words::host_place.block = block;
    Block(threads, kernel);
  }
}

}  // namespace assay::host_block
