// Link modes: the kernel's bits, and the fastest of them.
#include <vector>

#include <gtest/gtest.h>

#include "probes/core/link_modes.h"

namespace assay {
namespace {

using Modes = std::vector<std::uint32_t>;

/// A bitmap with these bits.
Modes with(const std::vector<unsigned>& bits) {
  Modes modes(4);
  for (const unsigned bit : bits) modes[bit / 32] |= 1U << (bit % 32);
  return modes;
}

}  // namespace

TEST(link_modes, the_fastest_of_the_modes_is_the_rate) {
  EXPECT_EQ(fastest_mode(with({5, 12, 31, 36})), BytesPerSecond{12.5e9});
  EXPECT_EQ(fastest_mode(with({31, 85})), BytesPerSecond{50e9});
  EXPECT_EQ(fastest_mode(with({5})), BytesPerSecond{125e6});
}

TEST(link_modes, bits_that_are_no_mode_tell_nothing) {
  EXPECT_EQ(fastest_mode(with({6, 7, 10, 13, 14, 16, 49, 50, 51, 74})), std::nullopt);  // media, pause and FEC
  EXPECT_EQ(fastest_mode(Modes{}), std::nullopt);
  EXPECT_EQ(fastest_mode(Modes{1U << 12}), BytesPerSecond{1.25e9});  // a kernel with fewer words
}

TEST(link_modes, a_port_that_is_not_there_tells_nothing) {
  EXPECT_EQ(fastest_mode_of("nosuchport0"), std::nullopt);
  EXPECT_EQ(fastest_mode_of(""), std::nullopt);
  EXPECT_EQ(fastest_mode_of("a_name_that_is_longer_than_a_port_can_have"), std::nullopt);
}

}  // namespace assay
