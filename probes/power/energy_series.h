// energy_series: energy differences over true intervals, kept as power samples within a bound.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace assay::power {

/// The increase of a counter that wrapped at most once: it runs from 0 to `range_uj` and starts again at 0. All in uJ.
/// The hardware counter has one unit (15 to 61 uJ) more than `range_uj` says, which a wrap leaves out.
constexpr std::uint64_t energy_between_uj(std::uint64_t before_uj, std::uint64_t after_uj, std::uint64_t range_uj) {
  return after_uj >= before_uj ? after_uj - before_uj : range_uj - before_uj + after_uj;
}
static_assert(energy_between_uj(100, 350, 1000) == 250);
static_assert(energy_between_uj(900, 50, 1000) == 150);

/// The intervals of one counter. When they reach the bound, neighbours are joined in pairs and later samples span twice
/// as long: a soak of days still fits one line of a record, and joined samples stay exact means over their time.
class EnergySeries {
 public:
  /// 100,000 samples of about 20 characters are 2 MB of the 8 MiB that a record line may have.
  static constexpr std::size_t kMaxSamples = 100'000;

  /// `max_samples` must be even and at least 2.
  explicit EnergySeries(std::size_t max_samples = kMaxSamples) : max_samples_(max_samples) {}

  /// Takes one whole interval in; `time_s` must be positive.
  void add(std::uint64_t energy_uj, double time_s);
  /// Takes the rest after the last whole interval in: it counts in the totals, and is a sample only when there is no
  /// other, because a short interval has a coarse reading.
  void close(std::uint64_t energy_uj, double time_s);

  /// Mean power of each sample in W, in the order taken.
  [[nodiscard]] std::vector<double> power_w() const;
  /// Everything that add() and close() were given, in J.
  [[nodiscard]] double energy_j() const { return static_cast<double>(energy_uj_) * 1e-6; }
  /// The time that energy_j() spans, in s.
  [[nodiscard]] double time_s() const { return time_s_; }
  /// How many intervals one sample spans: 1, or a power of 2 once samples were joined.
  [[nodiscard]] int intervals_per_sample() const { return intervals_per_sample_; }

 private:
  struct Span {
    std::uint64_t energy_uj = 0;
    double time_s = 0;
  };
  void join_pairs();

  std::size_t max_samples_;
  std::vector<Span> spans_;
  Span pending_;  // intervals of the next sample so far
  int pending_count_ = 0;
  int intervals_per_sample_ = 1;
  std::uint64_t energy_uj_ = 0;
  double time_s_ = 0;
};

}  // namespace assay::power
