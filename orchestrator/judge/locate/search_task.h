// search_task: a coroutine that waits for other coroutines and for the outcomes of tests, so that an adaptive search
// reads from top to bottom. It has no thread and no loop of its own: the caller that has an outcome resumes it.
#pragma once

#include <coroutine>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

namespace assay::judge {

/// A piece of a search that ends with a T. It begins when it is awaited or started, and the tasks that it waits for die
/// with it.
template <class T>
class [[nodiscard]] Search {
 public:
  /// Its coroutine state while it waits.
  struct promise_type {
    std::optional<T> value;
    std::coroutine_handle<> caller = std::noop_coroutine();  ///< resumed when this has ended
    std::size_t* open = nullptr;  ///< how many of several are still open; the last one resumes

    Search get_return_object() { return Search(std::coroutine_handle<promise_type>::from_promise(*this)); }
    std::suspend_always initial_suspend() noexcept { return {}; }
    auto final_suspend() noexcept {
      struct Resume {
        bool await_ready() noexcept { return false; }
        std::coroutine_handle<> await_suspend(std::coroutine_handle<promise_type> ended) noexcept {
          auto& promise = ended.promise();
          if (promise.open != nullptr && --*promise.open > 0) return std::noop_coroutine();
          return promise.caller;
        }
        void await_resume() noexcept {}
      };
      return Resume{};
    }
    void return_value(T result) { value = std::move(result); }
    void unhandled_exception() { throw; }
  };

  Search(Search&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Search(const Search&) = delete;
  Search& operator=(const Search&) = delete;
  Search& operator=(Search&&) = delete;
  ~Search() {
    if (handle_) handle_.destroy();
  }

  /// Runs it up to its first wait; nothing is resumed when it ends.
  void start() { handle_.resume(); }
  /// Whether it has ended.
  [[nodiscard]] bool done() const { return handle_.done(); }
  /// Its result; only once it is done.
  [[nodiscard]] const T& result() const { return *handle_.promise().value; }

  bool await_ready() const noexcept { return false; }
  std::coroutine_handle<> await_suspend(std::coroutine_handle<> caller) noexcept {
    handle_.promise().caller = caller;
    return handle_;
  }
  T await_resume() { return std::move(*handle_.promise().value); }

  /// Waits for all of `searches`, which run concurrently; their results stay if they are.
  static auto all(std::vector<Search>& searches) {
    struct Together {
      std::vector<Search>& searches;
      std::size_t open;
      bool await_ready() const noexcept { return searches.empty(); }
      bool await_suspend(std::coroutine_handle<> caller) {
        ++open;  // this call itself, so that the caller is not resumed while it is still being suspended
        for (auto& search : searches) {
          search.handle_.promise().caller = caller;
          search.handle_.promise().open = &open;
          search.handle_.resume();
        }
        return --open > 0;
      }
      void await_resume() const noexcept {}
    };
    return Together{searches, searches.size()};
  }

 private:
  explicit Search(std::coroutine_handle<promise_type> handle) : handle_(handle) {}
  std::coroutine_handle<promise_type> handle_;
};

}  // namespace assay::judge
