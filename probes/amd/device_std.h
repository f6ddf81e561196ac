// device_std: the part of the standard library that the kernels use, for a compiler without one (hiprtc). The text of
// kernel_text.cmake begins with it, and has its name in the place of the library's.
#pragma once

namespace device_std {
using int8_t = signed char;
using int32_t = int;
using int64_t = long;
using uint8_t = unsigned char;
using uint16_t = unsigned short;
using uint32_t = unsigned;
using uint64_t = unsigned long;
using size_t = unsigned long;

enum class byte : unsigned char {};
inline double sqrt(double number) { return __builtin_sqrt(number); }
template <class To, class From>
constexpr To bit_cast(const From& from) {
  return __builtin_bit_cast(To, from);
}

constexpr uint64_t rotl(uint64_t word, int bits) {
  return word << (static_cast<unsigned>(bits) & 63) | word >> (-static_cast<unsigned>(bits) & 63);
}
static_assert(rotl(1, 0) == 1 && rotl(1, 63) == uint64_t{1} << 63 && rotl(uint64_t{1} << 63, 1) == 1);
}  // namespace device_std
