// walk_errors: groups of errors that have the same bits wrong.
#include "probes/cuda/walk_errors.h"

#include <algorithm>
#include <bit>
#include <map>
#include <tuple>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace assay::cuda {
namespace {

constexpr int kBurstBits = 8;              // one byte as it is transferred side by side
constexpr std::uint64_t kWarpBytes = 512;  // 32 lanes of 16 B
constexpr std::uint64_t kLeastLanes = 4;   // fewer with the same bits may be chance
constexpr std::size_t kMostPlaces = 8;

bool is_burst(std::uint64_t bits) { return 64 - std::countl_zero(bits) - std::countr_zero(bits) <= kBurstBits; }

/// Errors of one content with the same bits wrong, by lane and by warp.
using Group = std::tuple<std::uint64_t, std::uint64_t, bool, std::uint64_t>;

Group by_lane(const WalkError& error) { return {error.content, error.flipped(), true, error.offset % kWarpBytes}; }
Group by_warp(const WalkError& error) { return {error.content, error.flipped(), false, error.offset / kWarpBytes}; }

/// How often a place was wrong, the bits that always were, and their values.
struct Place {
  std::uint64_t times = 0, bits = ~std::uint64_t{0}, ones = 0;

  void take(const WalkError& error) {
    bits &= error.flipped() & (times == 0 ? ~std::uint64_t{0} : ~(ones ^ error.found));
    ones = error.found;
    ++times;
  }
  [[nodiscard]] bool is_stuck() const { return times > 1 && bits != 0; }
};

}  // namespace

WalkClasses classes_of(std::span<const WalkError> errors) {
  std::map<Group, std::uint64_t> groups;
  std::map<std::uint64_t, Place> places;
  for (const WalkError& error : errors) {
    ++groups[by_lane(error)];
    ++groups[by_warp(error)];
    places[error.offset].take(error);
  }
  WalkClasses classes;
  for (const WalkError& error : errors) {
    const std::uint64_t alike = std::max(groups[by_lane(error)], groups[by_warp(error)]);
    auto& own = alike >= kLeastLanes                  ? classes.warp_aligned
                : std::popcount(error.flipped()) == 1 ? classes.single_bit
                : is_burst(error.flipped())           ? classes.burst
                                                      : classes.other;
    ++own;
    if (error.again == error.expected) ++classes.transient;
  }
  classes.stuck = static_cast<std::uint64_t>(
      std::ranges::count_if(places, [](const auto& place) { return place.second.is_stuck(); }));
  return classes;
}

std::string words_of(const WalkClasses& classes, std::uint64_t listed, std::uint64_t all) {
  return fmt::format(
      "{} single_bit, {} burst, {} warp_aligned, {} other; {} stuck places, {} right at the second read{}",
      classes.single_bit, classes.burst, classes.warp_aligned, classes.other, classes.stuck, classes.transient,
      listed < all ? fmt::format("; of the first {} of {}", listed, all) : "");
}

std::string words_of(const WalkError& error) {
  const WalkContent content = walk_content(error.content);
  std::vector<int> bits;
  for (int bit = 0; bit < 64; ++bit)
    if ((error.flipped() >> bit & 1U) != 0) bits.push_back(bit);
  return fmt::format("{}{} at {:#x}: {:#018x}, not {:#018x}, bits {}, {} at the second read",
                     kWalkPatterns[content.pattern].name, content.inverted ? " inverted" : "", error.offset,
                     error.found, error.expected, fmt::join(bits, " "),
                     error.again == error.found      ? "the same"
                     : error.again == error.expected ? "right"
                                                     : "again another");
}

std::string places_of(std::span<const WalkError> errors) {
  std::vector<std::string> places;
  for (const WalkError& error : errors.first(std::min(errors.size(), kMostPlaces))) places.push_back(words_of(error));
  return fmt::format("{}", fmt::join(places, "; "));
}

}  // namespace assay::cuda
