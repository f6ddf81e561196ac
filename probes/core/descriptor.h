// descriptor: an owned file descriptor.
#pragma once

#include <utility>

#include <unistd.h>

namespace assay {

/// Owns a file descriptor and closes it. Empty if moved from.
class Descriptor {
 public:
  Descriptor() = default;
  /// Takes over `number`; negative means empty.
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor() { close(); }

  /// The number, or -1.
  [[nodiscard]] int number() const { return number_; }
  /// True when it holds one.
  explicit operator bool() const { return number_ >= 0; }
  /// Gives it away.
  int release() { return std::exchange(number_, -1); }
  /// Closes it now; harmless when empty.
  void close() {
    if (number_ >= 0) (void)::close(number_);  // nothing was written through it that a failed close could lose
    number_ = -1;
  }

 private:
  int number_ = -1;
};

}  // namespace assay
