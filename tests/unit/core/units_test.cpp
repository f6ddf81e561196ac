// Sizes, durations and names as people write them.
#include <limits>

#include <gtest/gtest.h>

#include "probes/core/scale.h"
#include "probes/core/suggest.h"
#include "probes/core/units.h"
#include "probes/core/utc_time.h"

namespace assay {

TEST(units, binary_and_decimal_prefixes_differ) {
  EXPECT_EQ(parse_bytes("64KiB")->count, 65536U);
  EXPECT_EQ(parse_bytes("64kB")->count, 64000U);
  EXPECT_EQ(parse_bytes("1.5GiB")->count, 1610612736U);
  EXPECT_EQ(parse_bytes("4096")->count, 4096U);
}

TEST(units, a_size_that_is_no_size_is_refused) {
  for (const char* bad : {"", "KiB", "-1", "1e3", "12 parsecs", "0x10", "1.5", "99999999999TiB", "nan", "inf"}) {
    EXPECT_FALSE(parse_bytes(bad).has_value()) << bad;
  }
}

TEST(units, durations_are_seconds) {
  EXPECT_DOUBLE_EQ(parse_seconds("250ms")->count, 0.25);
  EXPECT_DOUBLE_EQ(parse_seconds("2min")->count, 120);
  EXPECT_FALSE(parse_seconds("10 minutes").has_value());
}

TEST(units, only_base_units_may_be_recorded) {
  EXPECT_TRUE(is_base_unit("B/s"));
  EXPECT_TRUE(is_base_unit("FLOP/J"));
  EXPECT_FALSE(is_base_unit("GFLOP/J"));
  EXPECT_FALSE(is_base_unit("GB/s"));
  EXPECT_FALSE(is_base_unit("ms"));
}

TEST(units, people_read_prefixes) {
  EXPECT_EQ(for_people(1.312e15, "FLOP/s"), "1.312 PFLOP/s");
  EXPECT_EQ(for_people(4.5e11, "B/s"), "450 GB/s");
  EXPECT_EQ(for_people(1.92e12, "FLOP/J"), "1.92 TFLOP/J");
  EXPECT_EQ(for_people(41.5, "degC"), "41.5 degC");
  EXPECT_EQ(for_people(400, "V"), "400 V");
  EXPECT_EQ(for_people(250e3, "Pa"), "250 kPa");
  EXPECT_EQ(for_people(84.1e-6, "s"), "84.1 µs");
  EXPECT_EQ(for_people(1234, "s"), "1234 s");
  EXPECT_EQ(for_people(0.81234, "1"), "0.8123");
  EXPECT_EQ(for_people(0, "B/s"), "0 B/s");
  EXPECT_EQ(for_people(92250, "1/s"), "92.25 k/s");
  EXPECT_EQ(for_people(3, "1"), "3");
}

TEST(units, numbers_beyond_every_prefix_have_a_power_of_ten) {
  EXPECT_EQ(for_people(1.797e308, "B/s"), "1.797e+290 EB/s");
  EXPECT_EQ(for_people(-1e300, "1"), "-1.000e+300");
  EXPECT_EQ(for_people(5e-324, "s"), "4.941e-315 ns");
  EXPECT_EQ(for_people(std::numeric_limits<double>::infinity(), "s"), "∞ s");
  EXPECT_EQ(for_people(1.23e-15, "1"), "1.230e-15");
  EXPECT_EQ(for_people(9223372036854775807.0, "1"), "9.223e+18");
  EXPECT_EQ(for_people(9007199254740992.0, "1"), "9007199254740992");
  const double wide[] = {5, 1.797e308};
  EXPECT_EQ(scale_for(wide, "B/s").text(5), "0 EB/s");
  const double near[] = {1e300, 1.0000001e300};
  EXPECT_EQ(scale_for(near, "W").number(1.0000001e300), "1.0000001e+282");
}

TEST(suggest, a_near_name_is_offered_and_a_far_one_is_not) {
  const std::string names[] = {"host_gemm", "storage_iops"};
  EXPECT_EQ(suggestion("host_gem", names), "did you mean 'host_gemm'?");
  EXPECT_EQ(suggestion("nvlink", names), "known are: host_gemm, storage_iops");
}

TEST(suggest, names_that_begin_with_the_word_come_before_near_ones) {
  const std::string names[] = {"nvidia-b200", "nvidia-h200-one", "nvidia-h200-sxm"};
  EXPECT_EQ(suggestion("nvidia-h200", names), "did you mean 'nvidia-h200-one' or 'nvidia-h200-sxm'?");
  EXPECT_EQ(suggestion("nvidia-h200-o", names), "did you mean 'nvidia-h200-one'?");
  EXPECT_EQ(suggestion("nvi", names), "known are: nvidia-b200, nvidia-h200-one, nvidia-h200-sxm");
}

TEST(utc_time, is_written_with_milliseconds_and_read_back_strictly) {
  const std::chrono::system_clock::time_point moment{std::chrono::milliseconds{1767595061211}};
  EXPECT_EQ(utc_text(moment), "2026-01-05T06:37:41.211Z");
  EXPECT_TRUE(is_utc_text("2026-01-05T06:37:41.211Z"));
  for (const char* bad : {"2026-01-05 06:37:41.211Z", "2026-13-05T06:37:41.211Z", "2026-01-05T06:37:41Z", ""}) {
    EXPECT_FALSE(is_utc_text(bad)) << bad;
  }
}

TEST(given_time, is_a_day_or_rfc_3339) {
  const auto read = [](const char* text) {
    const auto moment = given_time(text);
    return moment ? utc_text(*moment) : "none";
  };
  EXPECT_EQ(read("2026-01-05"), "2026-01-05T00:00:00.000Z");
  EXPECT_EQ(read("2026-11-27T03:41:26Z"), "2026-11-27T03:41:26.000Z");
  EXPECT_EQ(read("2026-11-27t03:41:26.5z"), "2026-11-27T03:41:26.500Z");
  EXPECT_EQ(read("2026-11-27 03:41:26.211987654Z"), "2026-11-27T03:41:26.211Z");
  EXPECT_EQ(read("2026-01-01T00:30:00+01:00"), "2025-12-31T23:30:00.000Z");
  EXPECT_EQ(read("2026-01-01T00:30:00.250-05:30"), "2026-01-01T06:00:00.250Z");
  for (const char* bad :
       {"", "2026", "2026-02-30", "2026-11-27T03:41:26", "2026-11-27T03:41Z", "2026-11-27T03:41:26.Z",
        "2026-11-27T24:00:00Z", "2026-11-27T03:41:26+1", "2026-11-27T03:41:26+24:00", "2026-11-27T03:41:26+01:60",
        "2026-11-27T03:41:26Zx", "2026-11-27T03:41:26.1234567890Z", "2026-11-27T03:41:26+0a:00", "yesterday"}) {
    EXPECT_EQ(read(bad), "none") << bad;
  }
}

TEST(utc_time, of_a_day_that_does_not_exist_or_beyond_what_the_clock_counts_is_none) {
  for (const char* bad : {"2026-02-31T06:37:41.211Z", "2026-04-31T06:37:41.211Z", "1012-12-31T06:37:41.211Z",
                          "1969-12-31T23:59:59.999Z", "2262-01-01T00:00:00.000Z", "9999-12-31T23:59:59.999Z"}) {
    EXPECT_FALSE(is_utc_text(bad)) << bad;
    EXPECT_FALSE(utc_time(bad)) << bad;
  }
  EXPECT_EQ(utc_text(utc_time("1970-01-01T00:00:00.000Z").value()), "1970-01-01T00:00:00.000Z");
  EXPECT_EQ(utc_text(utc_time("2261-12-31T23:59:59.999Z").value()), "2261-12-31T23:59:59.999Z");
}

}  // namespace assay
