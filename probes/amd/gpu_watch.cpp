// gpu_watch: everything is asked at both ends of the window, clocks, heat and power every 100 ms in between.
#include "probes/amd/gpu_watch.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>

#include <fmt/format.h>

#include "probes/amd/gpu_facts.h"
#include "probes/amd/hip.h"
#include "probes/core/recorder.h"
#include "probes/nvml/gpu_watch.h"

namespace assay::amd {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kInterval{100};
constexpr Seconds kAnswerLimit = {30};  // answers take milliseconds; the counters of throttling wait 100 ms

}  // namespace

/// The window of one GPU.
class GpuWatch::Watched {
 public:
  Watched(const AmdSmi& smi, const AmdGpu& gpu) : smi_(smi), gpu_(gpu), limit_(kAnswerLimit) {}

  void start() {
    begin_ = ask();
    energy_begin_ = gpu_.energy_j().value;
    begun_ = Clock::now();
    sample();
    thread_ = std::jthread([this](const std::stop_token& stop) { sample_until(stop); });
  }
  void end_load() {
    if (!thread_.joinable()) return;
    thread_.request_stop();
    thread_.join();
    if (const auto end = gpu_.energy_j().value; end && energy_begin_) {
      const double time_s = std::chrono::duration<double>(Clock::now() - begun_).count();
      if (time_s > 0 && *end > *energy_begin_) power_mean_w_ = (*end - *energy_begin_) / time_s;
    }
  }
  void stop() {
    end_load();
    if (begin_ && !end_) end_ = ask();
  }
  void record(Recorder& record, const Subject& subject) const;
  /// The least of the readings `name`; how far the counter `name` went.
  [[nodiscard]] std::optional<int> least(const char* name) const {
    const auto found = readings_.find(name);
    if (found == readings_.end() || found->second.empty()) return std::nullopt;
    return static_cast<int>(found->second.min());
  }
  [[nodiscard]] std::optional<std::int64_t> grown(const char* name) const {
    if (!begin_ || !end_ || !begin_->state.metrics.contains(name) || !end_->state.metrics.contains(name))
      return std::nullopt;
    return static_cast<std::int64_t>(end_->state.metrics.at(name) - begin_->state.metrics.at(name));
  }

 private:
  GpuFacts ask() { return read_gpu_facts(smi_, gpu_, 0, limit_); }

  void sample() {
    last_ = Clock::now();
    for (const auto& [name, value] : read_gpu_state(smi_, gpu_, limit_, failures_))
      readings_[std::string(name)].add(value);
    ++samples_;
  }
  void sample_until(const std::stop_token& stop) {
    std::mutex mutex;
    std::condition_variable_any stopped;
    std::unique_lock lock(mutex);
    while (!stopped.wait_for(lock, stop, kInterval, [&] { return stop.stop_requested(); })) sample();
  }

  const AmdSmi& smi_;
  AmdGpu gpu_;
  AnswerLimit limit_;
  std::optional<GpuFacts> begin_, end_;
  std::optional<double> energy_begin_, power_mean_w_;
  Clock::time_point begun_, last_;
  std::map<std::string, nvml::Readings> readings_;  ///< by the names of health_amd's conditions
  std::int64_t samples_ = 0, failures_ = 0;
  std::jthread thread_;  // last, so that it ends before the members it uses
};

void GpuWatch::Watched::record(Recorder& record, const Subject& subject) const {
  record.condition("amd_smi", std::string("present"), subject);
  record.condition("amd_smi_version", smi_.version(), subject);
  if (!begin_ || !end_) return;
  record.condition("watch_samples", samples_, subject);
  record.condition("watch_failures", failures_ + begin_->state.query_errors + end_->state.query_errors, subject);
  record.condition("watch_s", std::chrono::duration<double>(last_ - begun_).count(), subject);
  const auto tell = [&](const char* name, const char* reading, auto what) {
    const auto found = readings_.find(reading);
    if (found != readings_.end() && !found->second.empty())
      record.condition(name, std::invoke(what, found->second), subject);
  };
  using nvml::Readings;
  tell("gfx_clock_min_hz", "gfx_clock_hz", &Readings::min);
  tell("gfx_clock_mean_hz", "gfx_clock_hz", &Readings::mean);
  tell("memory_clock_min_hz", "memory_clock_hz", &Readings::min);
  tell("temperature_begin_c", "temperature_c", &Readings::first);
  tell("temperature_end_c", "temperature_c", &Readings::last);
  tell("temperature_max_c", "temperature_c", &Readings::max);
  tell("memory_temperature_max_c", "memory_temperature_c", &Readings::max);
  tell("power_max_w", "power_w", &Readings::max);
  tell("power_limit_w", "power_limit_w", &Readings::last);
  if (power_mean_w_) record.condition("power_mean_w", *power_mean_w_, subject);
  const auto& before = begin_->state.metrics;
  const auto& after = end_->state.metrics;
  for (const char* name : {"thermal_violations", "power_violations", "ecc_corrected", "ecc_uncorrected", "ecc_deferred",
                           "retired_pages", "pcie_replays"}) {
    if (const auto count = grown(name)) record.condition(fmt::format("{}_delta", name), *count, subject);
  }
  if (before.contains("other_processes") && after.contains("other_processes")) {
    const double most = std::max(before.at("other_processes"), after.at("other_processes"));
    record.condition("other_processes", static_cast<std::int64_t>(most), subject);
  }
}

GpuWatch::GpuWatch(const std::string& pci_address) {
  const AmdSmi* smi = smi_beside();
  if (smi == nullptr) {
    absence_ = nvml::absent_because(absence_of_smi());
    return;
  }
  const auto gpu = smi->gpu_at(pci_address);
  if (gpu) {
    watched_ = std::make_unique<Watched>(*smi, *gpu);
  } else {
    absence_ = fmt::format("absent: AMD SMI lists no GPU at {}", pci_address);
  }
}

GpuWatch::~GpuWatch() = default;
GpuWatch::GpuWatch(GpuWatch&&) noexcept = default;
GpuWatch& GpuWatch::operator=(GpuWatch&&) noexcept = default;

void GpuWatch::start() {
  if (watched_) watched_->start();
}
void GpuWatch::end_load() {
  if (watched_) watched_->end_load();
}
void GpuWatch::stop() {
  if (watched_) watched_->stop();
}
std::optional<int> GpuWatch::pcie_generation_min() const {
  return watched_ ? watched_->least("pcie_generation") : std::nullopt;
}
std::optional<int> GpuWatch::pcie_width_min() const { return watched_ ? watched_->least("pcie_width") : std::nullopt; }
std::optional<int> GpuWatch::pcie_replays() const {
  const auto count = watched_ ? watched_->grown("pcie_replays") : std::nullopt;
  return count ? std::optional(static_cast<int>(*count)) : std::nullopt;
}
void GpuWatch::record(Recorder& record, const Subject& subject) const {
  if (watched_) return watched_->record(record, subject);
  record.condition("amd_smi", absence_, subject);
}

}  // namespace assay::amd
