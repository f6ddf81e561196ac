// scale: base units as people read them, with enough decimals to keep different numbers different.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace assay {

/// One prefix and one number of decimals for numbers that are shown side by side.
struct Scale {
  double factor = 1;  ///< base units in one shown unit
  std::string unit;   ///< "GB/s", "µs", "" for unit 1
  int decimals = 3;

  /// `value` as "449.9 GB/s".
  [[nodiscard]] std::string text(double value) const;
  /// `value` as "449.9".
  [[nodiscard]] std::string number(double value) const;
};

/// The scale for `values` in base unit `unit`: the prefix suits the largest; at least four significant digits of it are
/// shown (of whole numbers of things all digits and no decimals), and as many more as it takes that values which differ
/// also differ in print (at most kMostDecimals). So a value is never rounded onto or across a limit that is shown with
/// it.
Scale scale_for(std::span<const double> values, std::string_view unit);

/// Beyond these decimals two numbers of one row may look alike; 2^53 has 16 digits.
inline constexpr int kMostDecimals = 17;

/// One number on its own with at most four significant digits: "450 GB/s", "84.1 µs", "0.8123".
std::string for_people(double value, std::string_view unit);

/// How long something takes, in its two largest units: "45 s", "6 min 3 s", "1 h 51 min"; whole seconds, of less than 0
/// none.
std::string duration_words(double seconds);

}  // namespace assay
