// device_std: the part of the standard library that the kernels use, for a compiler without one (hiprtc). The text of
// kernel_text.cmake begins with it, and has its name in the place of the library's.
#pragma once

namespace device_std {
using uint16_t = unsigned short;
using uint32_t = unsigned;
using uint64_t = unsigned long;
using size_t = unsigned long;

constexpr uint64_t rotl(uint64_t word, int bits) {
  return word << (static_cast<unsigned>(bits) & 63) | word >> (-static_cast<unsigned>(bits) & 63);
}
static_assert(rotl(1, 0) == 1 && rotl(1, 63) == uint64_t{1} << 63 && rotl(uint64_t{1} << 63, 1) == 1);
}  // namespace device_std
