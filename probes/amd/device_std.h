// device_std: what the kernels use of the standard library, for a compiler that has none of it (hiprtc). It stands
// before the kernels in the text of kernel_text.cmake, which puts its name in the place of the library's.
#pragma once

namespace device_std {
using uint32_t = unsigned;
using uint64_t = unsigned long;
using size_t = unsigned long;

constexpr uint64_t rotl(uint64_t word, int bits) {
  return word << (static_cast<unsigned>(bits) & 63) | word >> (-static_cast<unsigned>(bits) & 63);
}
static_assert(rotl(1, 0) == 1 && rotl(1, 63) == uint64_t{1} << 63 && rotl(uint64_t{1} << 63, 1) == 1);
}  // namespace device_std
