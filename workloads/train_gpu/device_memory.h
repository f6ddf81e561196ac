// device_memory: one memory, given out piece by piece: the need of a rank is known to the byte before anything is
// allocated.
#pragma once

#include <cstddef>
#include <span>
#include <stdexcept>

namespace assay::train_gpu {

/// Pieces of `memory` one after the other, each at a multiple of 256 B, as cudaMalloc gives them.
class Arena {
 public:
  Arena() = default;
  explicit Arena(std::span<std::byte> memory) : memory_(memory) {}

  /// Throws std::logic_error when no more is left: the rehearsal took less.
  template <class Kind>
  std::span<Kind> take(std::size_t count) {
    const std::size_t size = (count * sizeof(Kind) + kPiece - 1) / kPiece * kPiece;
    if (size > memory_.size() - used_) throw std::logic_error("a step takes more memory than its rehearsal did");
    auto* const begin = reinterpret_cast<Kind*>(memory_.data() + used_);
    used_ += size;
    return {count == 0 ? nullptr : begin, count};
  }
  /// B given out so far.
  [[nodiscard]] std::size_t used() const { return used_; }

 private:
  static constexpr std::size_t kPiece = 256;
  std::span<std::byte> memory_;
  std::size_t used_ = 0;
};

}  // namespace assay::train_gpu
