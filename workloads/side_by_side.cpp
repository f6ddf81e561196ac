// side_by_side: threads and their failures.
#include "workloads/side_by_side.h"

#include <chrono>
#include <exception>
#include <thread>

namespace assay {

std::vector<double> run_side_by_side(std::size_t count, const std::function<void(std::size_t)>& work) {
  std::vector<double> times_s(count);
  std::vector<std::exception_ptr> failures(count);
  const auto begin = std::chrono::steady_clock::now();
  {
    std::vector<std::jthread> threads;
    for (std::size_t number = 0; number < count; ++number) {
      threads.emplace_back([&, number] {
        try {
          work(number);
        } catch (...) {
          failures[number] = std::current_exception();
        }
        times_s[number] = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
      });
    }
  }
  for (const auto& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
  return times_s;
}

}  // namespace assay
