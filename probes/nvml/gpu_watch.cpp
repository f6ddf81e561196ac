// gpu_watch: counters are read at both ends of the window, states every 100 ms in between.
#include "probes/nvml/gpu_watch.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "probes/core/recorder.h"
#include "probes/nvml/nvml_gpu.h"

namespace assay {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kInterval{100};  // the driver itself refreshes its readings 10 to 50 times a second
constexpr double kNanosecond = 1e-9;

/// Smallest, largest and mean of readings, without keeping them.
struct Readings {
  std::int64_t count = 0;
  double min = 0, max = 0, sum = 0;

  void add(const std::optional<double>& reading) {
    if (!reading) return;
    min = count == 0 ? *reading : std::min(min, *reading);
    max = count == 0 ? *reading : std::max(max, *reading);
    sum += *reading;
    ++count;
  }
  [[nodiscard]] double mean() const { return sum / static_cast<double>(count); }
};

/// What the driver counts, at one moment.
struct Counters {
  Clock::time_point time;
  std::optional<std::uint64_t> energy_mj, ecc_corrected, ecc_uncorrected, pcie_replays;
  ThrottleTimes throttle;
  std::optional<std::int64_t> other_processes;
};

/// How much a counter grew; nothing when it was not reported twice or went back (the driver was loaded anew).
std::optional<std::uint64_t> growth(const std::optional<std::uint64_t>& before,
                                    const std::optional<std::uint64_t>& after) {
  if (!before || !after || *after < *before) return std::nullopt;
  return *after - *before;
}

std::optional<double> seconds(const std::optional<std::uint64_t>& before, const std::optional<std::uint64_t>& after) {
  const auto ns = growth(before, after);
  return ns ? std::optional(static_cast<double>(*ns) * kNanosecond) : std::nullopt;
}

/// Processes beside this one. In a process namespace of its own a list that lacks this process may name it by a number
/// from outside, so that nothing is known unless the list is empty.
std::optional<std::int64_t> others_in(const std::vector<unsigned>& pids) {
  constexpr std::string_view kFirstNamespace = "pid:[4026531836]";  // PROC_PID_INIT_INO of the kernel
  const auto own = static_cast<unsigned>(getpid());
  const auto count = static_cast<std::int64_t>(pids.size());
  if (std::ranges::find(pids, own) != pids.end()) return count - 1;
  char name[64] = {};
  const auto length = readlink("/proc/self/ns/pid", name, sizeof name);
  const bool outermost = length > 0 && std::string_view(name, static_cast<std::size_t>(length)) == kFirstNamespace;
  if (outermost || count == 0) return count;
  return std::nullopt;
}

}  // namespace

/// The state of a watch on a GPU that NVML knows.
class GpuWatch::Watched {
 public:
  Watched(const std::string& pci_bus_id, const std::string& library) : nvml_(library), gpu_(find(nvml_, pci_bus_id)) {}

  void start() {
    if (thread_.joinable()) throw std::logic_error("a GpuWatch was started twice");
    sm_clock_ = memory_clock_ = temperature_ = power_ = pcie_generation_ = pcie_width_ = {};
    failures_ = samples_ = 0;
    end_.reset();
    begin_ = count();
    sample();  // here, so that the shortest window has a reading too
    thread_ = std::jthread([this](const std::stop_token& stop) { sample_until(stop); });
  }

  void stop() {
    if (!thread_.joinable()) return;
    thread_.request_stop();
    thread_.join();
    thread_ = {};
    end_ = count();
  }

  void record(Recorder& record, const Subject& subject) const;

  [[nodiscard]] std::optional<double> energy_j() const {
    if (!end_) return std::nullopt;
    const auto mj = growth(begin_.energy_mj, end_->energy_mj);
    return mj ? std::optional(static_cast<double>(*mj) * 1e-3) : std::nullopt;
  }
  [[nodiscard]] std::optional<double> window_s() const {
    if (!end_) return std::nullopt;
    return std::chrono::duration<double>(end_->time - begin_.time).count();
  }
  [[nodiscard]] std::optional<int> pcie_replays() const {
    if (!end_) return std::nullopt;
    const auto replays = growth(begin_.pcie_replays, end_->pcie_replays);
    return replays ? std::optional(static_cast<int>(*replays)) : std::nullopt;
  }
  [[nodiscard]] const Readings& pcie_generation() const { return pcie_generation_; }
  [[nodiscard]] const Readings& pcie_width() const { return pcie_width_; }

 private:
  static NvmlGpu find(const Nvml& nvml, const std::string& pci_bus_id) {
    const auto found = nvml.gpu_at(pci_bus_id);
    if (found.value) return *found.value;
    throw Skip(fmt::format("{} knows no GPU at {}: {}", nvml.path(), pci_bus_id, nvml.words(found.code)));
  }

  /// The value reported; a failure is counted.
  template <class T>
  std::optional<T> told(const Answer<T>& answer) {
    if (answer.failed()) ++failures_;
    return answer.value;
  }

  Counters count() {
    Counters counters{.time = Clock::now(), .energy_mj = told(gpu_.energy_mj())};
    counters.ecc_corrected = told(gpu_.ecc_errors(nvml_api::kCorrected, nvml_api::kSinceDriverLoad));
    counters.ecc_uncorrected = told(gpu_.ecc_errors(nvml_api::kUncorrected, nvml_api::kSinceDriverLoad));
    if (const auto replays = told(gpu_.pcie_replays())) counters.pcie_replays = *replays;
    counters.throttle = told(gpu_.throttle()).value_or(ThrottleTimes{});
    if (const auto pids = told(gpu_.processes())) counters.other_processes = others_in(*pids);
    return counters;
  }

  void sample() {
    sm_clock_.add(told(gpu_.sm_clock_hz()));
    memory_clock_.add(told(gpu_.memory_clock_hz()));
    temperature_.add(told(gpu_.temperature_c()));
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
  Readings sm_clock_, memory_clock_, temperature_, power_, pcie_generation_, pcie_width_;
  std::int64_t failures_ = 0;
  std::int64_t samples_ = 0;
  Counters begin_;
  std::optional<Counters> end_;
  std::jthread thread_;  // last, so that it ends before what it uses
};

void GpuWatch::Watched::record(Recorder& record, const Subject& subject) const {
  const auto tell = [&](std::string_view name, const auto& value) {
    if (value) record.condition(name, *value, subject);
  };
  const auto tell_count = [&](std::string_view name, const std::optional<std::uint64_t>& value) {
    if (value) record.condition(name, static_cast<std::int64_t>(*value), subject);
  };
  const auto tell_reading = [&](std::string_view name, const Readings& readings, double value) {
    if (readings.count > 0) record.condition(name, value, subject);
  };
  record.condition("nvml", std::string("present"), subject);
  record.condition("nvml_library", nvml_.path(), subject);
  record.condition("nvml_driver", nvml_.driver_version(), subject);
  tell("sm_clock_max_hz", gpu_.sm_clock_max_hz().value);
  tell("memory_clock_max_hz", gpu_.memory_clock_max_hz().value);
  tell("power_limit_w", gpu_.power_limit_w().value);
  if (!end_) return;
  record.condition("watch_samples", samples_, subject);
  record.condition("watch_failures", failures_, subject);
  tell_reading("sm_clock_min_hz", sm_clock_, sm_clock_.min);
  tell_reading("sm_clock_mean_hz", sm_clock_, sm_clock_.count > 0 ? sm_clock_.mean() : 0);
  tell_reading("memory_clock_min_hz", memory_clock_, memory_clock_.min);
  tell_reading("temperature_max_c", temperature_, temperature_.max);
  tell_reading("power_max_w", power_, power_.max);
  if (const auto energy = energy_j(); energy && *window_s() > 0)
    tell("power_mean_w", std::optional(*energy / *window_s()));
  tell("throttle_power_cap_s", seconds(begin_.throttle.power_cap_ns, end_->throttle.power_cap_ns));
  tell("throttle_thermal_s", seconds(begin_.throttle.thermal_ns, end_->throttle.thermal_ns));
  tell("throttle_sw_thermal_s", seconds(begin_.throttle.sw_thermal_ns, end_->throttle.sw_thermal_ns));
  tell("throttle_hw_thermal_s", seconds(begin_.throttle.hw_thermal_ns, end_->throttle.hw_thermal_ns));
  tell("throttle_power_brake_s", seconds(begin_.throttle.power_brake_ns, end_->throttle.power_brake_ns));
  tell_count("ecc_corrected_delta", growth(begin_.ecc_corrected, end_->ecc_corrected));
  tell_count("ecc_uncorrected_delta", growth(begin_.ecc_uncorrected, end_->ecc_uncorrected));
  tell_count("pcie_replays_delta", growth(begin_.pcie_replays, end_->pcie_replays));
  tell_reading("pcie_generation_min", pcie_generation_, pcie_generation_.min);
  tell_reading("pcie_width_min", pcie_width_, pcie_width_.min);
  if (begin_.other_processes && end_->other_processes) {
    record.condition("other_processes", std::max(*begin_.other_processes, *end_->other_processes), subject);
  }
}

GpuWatch::GpuWatch(const std::string& pci_bus_id, const std::string& library) {
  try {
    watched_ = std::make_unique<Watched>(pci_bus_id, library.empty() ? Nvml::default_library() : library);
  } catch (const Skip& skip) {
    absence_ = absent_because(skip.what());  // a probe measures without NVML too, and says so
  }
}

GpuWatch::~GpuWatch() = default;
GpuWatch::GpuWatch(GpuWatch&&) noexcept = default;
GpuWatch& GpuWatch::operator=(GpuWatch&&) noexcept = default;

void GpuWatch::start() {
  if (watched_) watched_->start();
}

void GpuWatch::stop() {
  if (watched_) watched_->stop();
}

void GpuWatch::record(Recorder& record, const Subject& subject) const {
  if (watched_) return watched_->record(record, subject);
  record.condition("nvml", absence_, subject);
}

std::optional<double> GpuWatch::energy_j() const { return watched_ ? watched_->energy_j() : std::nullopt; }
std::optional<double> GpuWatch::window_s() const { return watched_ ? watched_->window_s() : std::nullopt; }
std::optional<int> GpuWatch::pcie_replays() const { return watched_ ? watched_->pcie_replays() : std::nullopt; }

std::optional<int> GpuWatch::pcie_generation_min() const {
  if (!watched_ || watched_->pcie_generation().count == 0) return std::nullopt;
  return static_cast<int>(watched_->pcie_generation().min);
}

std::optional<int> GpuWatch::pcie_width_min() const {
  if (!watched_ || watched_->pcie_width().count == 0) return std::nullopt;
  return static_cast<int>(watched_->pcie_width().min);
}

}  // namespace assay
