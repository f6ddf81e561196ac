// barrier: runs threads over a common barrier and reports the first failure.
#include "probes/cuda/barrier.h"

#include <chrono>
#include <exception>
#include <stdexcept>
#include <thread>
#include <vector>

namespace assay::cuda {
namespace {

/// Thrown to the other participants when one failed: a consequence, never the cause.
struct Abandoned : std::runtime_error {
  Abandoned() : std::runtime_error("another device failed") {}
};

}  // namespace

void Barrier::wait_for_all() {
  std::unique_lock lock(mutex_);
  if (abandoned_) throw Abandoned();
  const std::size_t round = round_;
  if (++waiting_ == participants_) {
    waiting_ = 0;
    ++round_;
    changed_.notify_all();
    return;
  }
  const bool came = changed_.wait_for(lock, std::chrono::duration<double>(kLongestWait.count),
                                      [&] { return round_ != round || abandoned_; });
  if (!came) throw std::runtime_error("the other devices did not reach the common start in time");
  if (round_ == round) throw Abandoned();
}

void Barrier::finish() {
  const std::scoped_lock lock(mutex_);
  ++finished_;
}

bool Barrier::all_finished() {
  const std::scoped_lock lock(mutex_);
  return abandoned_ || finished_ >= participants_;
}

void Barrier::abandon() {
  const std::scoped_lock lock(mutex_);
  abandoned_ = true;
  changed_.notify_all();
}

void for_each_index(std::size_t count, std::string_view schedule,
                    const std::function<void(std::size_t, Barrier&)>& work) {
  if (schedule != "together") {
    for (std::size_t index = 0; index < count; ++index) {
      Barrier alone(1);
      work(index, alone);
    }
    return;
  }
  Barrier barrier(count);
  std::vector<std::exception_ptr> failures(count);
  std::vector<char> echoes(count, 0);
  {
    std::vector<std::jthread> threads;
    threads.reserve(count);
    for (std::size_t index = 0; index < count; ++index) {
      threads.emplace_back([&, index] {
        try {
          work(index, barrier);
          return;
        } catch (const Abandoned&) {
          failures[index] = std::current_exception();
          echoes[index] = 1;
        } catch (...) {
          failures[index] = std::current_exception();
        }
        barrier.abandon();
      });
    }
  }
  for (const bool echo : {false, true}) {
    for (std::size_t index = 0; index < count; ++index) {
      if (failures[index] && (echoes[index] != 0) == echo) std::rethrow_exception(failures[index]);
    }
  }
}

}  // namespace assay::cuda
