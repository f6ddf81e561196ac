// gpu_watch: counters are read at both ends of the window, states every 100 ms in between; energy innermost.
#include "probes/nvml/gpu_watch.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <numeric>
#include <span>
#include <stop_token>
#include <thread>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "probes/core/recorder.h"
#include "probes/nvml/gpu_errors.h"
#include "probes/nvml/nvml_gpu.h"
#include "probes/nvml/users.h"
#include "probes/nvml/xid_watch.h"

namespace assay::nvml {
namespace {

double mean_of(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

}  // namespace

void Readings::add(const std::optional<double>& reading) {
  if (reading) values_.push_back(*reading);
}

double Readings::min() const { return std::ranges::min(values_); }
double Readings::max() const { return std::ranges::max(values_); }
double Readings::mean() const { return mean_of(values_); }

std::optional<double> Readings::drift() const {
  constexpr std::size_t kFewest = 8, kQuarters = 4;
  if (values_.size() < kFewest) return std::nullopt;
  const std::size_t quarter = values_.size() / kQuarters;
  const auto newest = std::span(values_).last(quarter);
  const auto before = std::span(values_).last(2 * quarter).first(quarter);
  const double reference = mean_of(before);
  return reference > 0 ? std::optional(mean_of(newest) / reference) : std::nullopt;
}

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kInterval{100};  // the driver itself refreshes its readings 10 to 50 times a second
constexpr double kNanosecond = 1e-9;

std::optional<double> seconds(const std::optional<std::uint64_t>& before, const std::optional<std::uint64_t>& after) {
  const auto ns = growth(before, after);
  return ns ? std::optional(static_cast<double>(*ns) * kNanosecond) : std::nullopt;
}

/// The state of a watch on a GPU that NVML knows.
class Watched final : public WatchedGpu {
  /// The energy counter and when it was read: rates are compared with it, so nothing else is asked in between.
  struct Energy {
    Clock::time_point time;
    std::optional<std::uint64_t> mj;
  };

  /// The driver's other counters, at one moment.
  struct Counters {
    ErrorCounts errors;
    ThrottleTimes throttle;
    std::optional<std::int64_t> other_processes;
  };

 public:
  Watched(const std::string& pci_bus_id, const std::string& library) : nvml_(library), gpu_(find(nvml_, pci_bus_id)) {}

  void start() override {
    if (open_) throw std::logic_error("a GpuWatch was started twice");
    open_ = true;
    sm_clock_ = memory_clock_ = temperature_ = memory_temperature_ = power_ = pcie_generation_ = pcie_width_ = {};
    failures_ = samples_ = 0;
    end_.reset();
    energy_end_.reset();
    xids_.emplace(gpu_);
    if (xids_->failed()) ++failures_;
    begin_ = count();
    sample();  // here, so that the shortest window has a reading too
    energy_begin_ = energy();
    thread_ = std::jthread([this](const std::stop_token& stop) { sample_until(stop); });
  }

  void end_load() override {
    if (!thread_.joinable()) return;
    const auto mj = gpu_.energy_mj();  // first, and apart from the thread, which may be in the middle of a reading
    energy_end_ = {.time = Clock::now(), .mj = mj.value};
    thread_.request_stop();
    thread_.join();
    thread_ = {};
    if (mj.failed()) ++failures_;
  }

  void stop() override {
    if (!open_) return;
    open_ = false;
    end_load();
    end_ = count();
    xid_numbers_ = xids_->take();
    if (xids_->failed()) ++failures_;
  }

  [[nodiscard]] Values conditions() const override;

  [[nodiscard]] std::optional<double> energy_j() const override {
    if (!energy_end_) return std::nullopt;
    const auto mj = growth(energy_begin_.mj, energy_end_->mj);
    return mj ? std::optional(static_cast<double>(*mj) * 1e-3) : std::nullopt;
  }
  [[nodiscard]] std::optional<double> window_s() const override {
    if (!energy_end_) return std::nullopt;
    return std::chrono::duration<double>(energy_end_->time - energy_begin_.time).count();
  }
  [[nodiscard]] Pcie pcie() const override {
    const auto least = [](const Readings& readings) {
      return readings.empty() ? std::nullopt : std::optional(static_cast<int>(readings.min()));
    };
    const auto replays = end_ ? growth(begin_.errors.pcie_replays, end_->errors.pcie_replays) : std::nullopt;
    return {.generation_min = least(pcie_generation_),
            .width_min = least(pcie_width_),
            .replays = replays ? std::optional(static_cast<int>(*replays)) : std::nullopt};
  }

 private:
  static NvmlGpu find(const Nvml& nvml, const std::string& pci_bus_id) {
    const auto found = nvml.gpu_at(pci_bus_id);
    if (found.value) return *found.value;
    throw Skip(fmt::format("{} knows no GPU at {}: {}", nvml.path(), pci_bus_id, nvml.words(found.code)));
  }

  void add_readings(Values& values) const;
  void add_growth(Values& values) const;

  /// The value reported; a failure is counted.
  template <class T>
  std::optional<T> told(const Answer<T>& answer) {
    if (answer.failed()) ++failures_;
    return answer.value;
  }

  Energy energy() {
    const auto mj = told(gpu_.energy_mj());
    return {.time = Clock::now(), .mj = mj};
  }

  Counters count() {
    Counters counters;
    counters.errors = read_error_counts(gpu_, failures_);
    counters.throttle = told(gpu_.throttle()).value_or(ThrottleTimes{});
    counters.other_processes = told(other_processes_of(gpu_, true));
    return counters;
  }

  void sample() {
    const auto now = Clock::now();
    if (samples_ == 0) first_reading_ = now;
    last_reading_ = now;
    sm_clock_.add(told(gpu_.sm_clock_hz()));
    memory_clock_.add(told(gpu_.memory_clock_hz()));
    temperature_.add(told(gpu_.temperature_c()));
    memory_temperature_.add(told(gpu_.memory_temperature_c()));
    power_.add(told(gpu_.power_w()));
    pcie_generation_.add(told(gpu_.pcie_generation()));
    pcie_width_.add(told(gpu_.pcie_width()));
    ++samples_;
  }

  /// Samples on a fixed grid, so that a slow answer of the driver does not shift the rest.
  void sample_until(const std::stop_token& stop) {
    std::mutex mutex;
    std::condition_variable_any stopped;
    std::unique_lock lock(mutex);
    auto due = Clock::now() + kInterval;
    while (!stopped.wait_until(lock, stop, due, [&] { return stop.stop_requested(); })) {
      sample();
      while (due <= Clock::now()) due += kInterval;
    }
  }

  Nvml nvml_;
  NvmlGpu gpu_;
  Readings sm_clock_, memory_clock_, temperature_, memory_temperature_, power_, pcie_generation_, pcie_width_;
  Clock::time_point first_reading_, last_reading_;
  std::int64_t failures_ = 0;
  std::int64_t samples_ = 0;
  bool open_ = false;  ///< between start() and stop()
  Energy energy_begin_;
  std::optional<Energy> energy_end_;
  Counters begin_;
  std::optional<Counters> end_;
  std::optional<XidWatch> xids_;
  std::optional<std::vector<int>> xid_numbers_;
  std::jthread thread_;  // last, so that it ends before the members it uses
};

Values Watched::conditions() const {
  Values values;
  values.emplace("nvml", std::string("present"));
  values.emplace("nvml_library", nvml_.path());
  values.emplace("nvml_driver", nvml_.driver_version());
  const auto tell = [&](const char* name, const auto& value) {
    if (value) values.emplace(name, *value);
  };
  tell("sm_clock_max_hz", gpu_.sm_clock_max_hz().value);
  tell("memory_clock_max_hz", gpu_.memory_clock_max_hz().value);
  tell("power_limit_w", gpu_.power_limit_w().value);
  if (!end_) return values;
  values.emplace("watch_samples", samples_);
  values.emplace("watch_failures", failures_);
  values.emplace("watch_s", std::chrono::duration<double>(last_reading_ - first_reading_).count());
  add_readings(values);
  add_growth(values);
  return values;
}

void Watched::add_readings(Values& values) const {
  const auto tell = [&](const char* name, const Readings& readings, auto what) {
    if (!readings.empty()) values.emplace(name, std::invoke(what, readings));
  };
  tell("sm_clock_min_hz", sm_clock_, &Readings::min);
  tell("sm_clock_mean_hz", sm_clock_, &Readings::mean);
  tell("sm_clock_begin_hz", sm_clock_, &Readings::first);
  tell("sm_clock_end_hz", sm_clock_, &Readings::last);
  if (const auto drift = sm_clock_.drift()) values.emplace("sm_clock_drift", *drift);
  tell("memory_clock_min_hz", memory_clock_, &Readings::min);
  tell("temperature_begin_c", temperature_, &Readings::first);
  tell("temperature_end_c", temperature_, &Readings::last);
  tell("temperature_max_c", temperature_, &Readings::max);
  tell("memory_temperature_max_c", memory_temperature_, &Readings::max);
  tell("power_begin_w", power_, &Readings::first);
  tell("power_end_w", power_, &Readings::last);
  tell("power_max_w", power_, &Readings::max);
  tell("pcie_generation_min", pcie_generation_, &Readings::min);
  tell("pcie_width_min", pcie_width_, &Readings::min);
  if (const auto energy = energy_j(); energy && *window_s() > 0) {
    values.emplace("power_mean_w", *energy / *window_s());
  }
}

void Watched::add_growth(Values& values) const {
  const auto tell = [&](const char* name, std::optional<std::uint64_t> before, std::optional<std::uint64_t> after) {
    if (const auto grown = growth(before, after)) values.emplace(name, static_cast<std::int64_t>(*grown));
  };
  const auto tell_time = [&](const char* name, const std::optional<std::uint64_t> ThrottleTimes::*reason) {
    if (const auto time_s = seconds(begin_.throttle.*reason, end_->throttle.*reason)) {
      values.emplace(name, *time_s);
    }
  };
  tell_time("throttle_power_cap_s", &ThrottleTimes::power_cap_ns);
  tell_time("throttle_thermal_s", &ThrottleTimes::thermal_ns);
  tell_time("throttle_sw_thermal_s", &ThrottleTimes::sw_thermal_ns);
  tell_time("throttle_hw_thermal_s", &ThrottleTimes::hw_thermal_ns);
  tell_time("throttle_power_brake_s", &ThrottleTimes::power_brake_ns);
  tell("ecc_corrected_delta", begin_.errors.ecc_corrected, end_->errors.ecc_corrected);
  tell("ecc_uncorrected_delta", begin_.errors.ecc_uncorrected, end_->errors.ecc_uncorrected);
  tell("remapped_rows_delta", begin_.errors.remapped_rows, end_->errors.remapped_rows);
  tell("nvlink_errors_delta", begin_.errors.nvlink_errors, end_->errors.nvlink_errors);
  tell("pcie_replays_delta", begin_.errors.pcie_replays, end_->errors.pcie_replays);
  if (xid_numbers_) {
    values.emplace("xid_events_delta", static_cast<std::int64_t>(xid_numbers_->size()));
    if (!xid_numbers_->empty()) values.emplace("xid_numbers", fmt::format("{}", fmt::join(*xid_numbers_, " ")));
  }
  if (begin_.other_processes && end_->other_processes) {
    values.emplace("other_processes", std::max(*begin_.other_processes, *end_->other_processes));
  }
}

}  // namespace

GpuWatch::GpuWatch(const std::string& pci_bus_id, const std::string& library) {
  try {
    watched_ = std::make_unique<Watched>(pci_bus_id, library);
  } catch (const Skip& skip) {
    absence_ = {{"nvml", absent_because(skip.what())}};  // a probe measures without NVML too, and says so
  }
}

void GpuWatch::start() {
  if (watched_) watched_->start();
}

void GpuWatch::end_load() {
  if (watched_) watched_->end_load();
}

void GpuWatch::stop() {
  if (watched_) watched_->stop();
}

void GpuWatch::record(Recorder& record, const Subject& subject) const {
  for (const auto& [name, value] : conditions()) record.condition(name, value, subject);
}

}  // namespace assay::nvml
