// packed_figures: what was packed is what is unpacked, and bytes of another form are refused.
#include "orchestrator/history/packed_figures.h"

#include <bit>
#include <limits>

#include <gtest/gtest.h>

namespace assay::history {

TEST(PackedFigures, every_figure_comes_back_to_the_last_bit) {
  const std::vector<PackedFigure> given = {
      {.series = 1, .value = 0.1, .samples = 1},
      {.series = 2, .value = -0.0, .samples = 0},
      {.series = 300'000, .value = std::numeric_limits<double>::denorm_min(), .samples = 4'294'967'295},
      {.series = 7, .value = std::numeric_limits<double>::max(), .samples = 128},
      {.series = std::numeric_limits<std::int64_t>::max(), .value = -1e-300, .samples = 16'384}};
  std::vector<PackedFigure> read = {{.series = 5}};
  ASSERT_TRUE(unpack(packed(given), read));
  EXPECT_EQ(read, given);
  EXPECT_EQ(std::bit_cast<std::uint64_t>(read[1].value), std::bit_cast<std::uint64_t>(-0.0));
  ASSERT_TRUE(unpack("", read));
  EXPECT_TRUE(read.empty());
}

TEST(PackedFigures, have_the_same_bytes_everywhere) {
  const std::string bytes = packed({{.series = 100, .value = 1.5, .samples = 3}, {.series = 99, .value = 0}});
  EXPECT_EQ(bytes,
            std::string("\xc8\x01\x03\x00\x00\x00\x00\x00\x00\xf8\x3f\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00", 21));
}

TEST(PackedFigures, bytes_that_end_early_or_hold_too_large_a_number_are_refused) {
  const std::string whole = packed({{.series = 300, .value = 2, .samples = 300}});
  std::vector<PackedFigure> read;
  for (std::size_t size = 1; size < whole.size(); ++size) EXPECT_FALSE(unpack(whole.substr(0, size), read)) << size;
  EXPECT_FALSE(unpack(std::string(40, '\xff'), read));  // a number without end
  EXPECT_FALSE(unpack(std::string("\x02\xff\xff\xff\xff\x7f", 6) + std::string(8, '\0'), read));  // over 32 bits
}

}  // namespace assay::history
