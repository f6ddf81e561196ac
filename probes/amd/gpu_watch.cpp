// gpu_watch: everything is asked at both ends of the window, clocks, heat and power every 100 ms in between.
#include "probes/amd/gpu_watch.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>

#include <fmt/format.h>

#include "probes/amd/gpu_facts.h"
#include "probes/amd/hip.h"

namespace assay::amd {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kInterval{100};
constexpr Seconds kAnswerLimit = {30};  // answers take milliseconds; the counters of throttling wait 100 ms

/// The window of one GPU.
class Watched final : public nvml::WatchedGpu {
 public:
  Watched(const AmdSmi& smi, const AmdGpu& gpu) : smi_(smi), gpu_(gpu), limit_(kAnswerLimit) {}

  void start() override {
    readings_.clear();
    samples_ = failures_ = 0;
    end_.reset();
    energy_end_.reset();
    begin_ = ask();
    energy_begin_ = gpu_.energy_j().value;
    begun_ = Clock::now();
    sample();
    thread_ = std::jthread([this](const std::stop_token& stop) { sample_until(stop); });
  }
  void end_load() override {
    if (!thread_.joinable()) return;
    thread_.request_stop();
    thread_.join();
    energy_end_ = gpu_.energy_j().value;
    ended_ = Clock::now();
  }
  void stop() override {
    end_load();
    if (begin_ && !end_) end_ = ask();
  }
  [[nodiscard]] Values conditions() const override;
  [[nodiscard]] std::optional<double> energy_j() const override {
    return energy_begin_ && energy_end_ && *energy_end_ > *energy_begin_ ? std::optional(*energy_end_ - *energy_begin_)
                                                                         : std::nullopt;
  }
  [[nodiscard]] std::optional<double> window_s() const override {
    return energy_end_ ? std::optional(std::chrono::duration<double>(ended_ - begun_).count()) : std::nullopt;
  }
  [[nodiscard]] Pcie pcie() const override {
    const auto least = [&](const char* name) -> std::optional<int> {
      const auto found = readings_.find(name);
      if (found == readings_.end() || found->second.empty()) return std::nullopt;
      return static_cast<int>(found->second.min());
    };
    const auto replays = grown("pcie_replays");
    return {.generation_min = least("pcie_generation"),
            .width_min = least("pcie_width"),
            .replays = replays ? std::optional(static_cast<int>(*replays)) : std::nullopt};
  }

 private:
  /// How far the counter `name` went.
  [[nodiscard]] std::optional<std::int64_t> grown(const char* name) const {
    const auto growth = begin_ && end_ ? growth_of(name, *begin_, *end_) : std::nullopt;
    return growth ? std::optional(static_cast<std::int64_t>(*growth)) : std::nullopt;
  }
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
  std::optional<double> energy_begin_, energy_end_;
  Clock::time_point begun_, ended_, last_;
  std::map<std::string, nvml::Readings> readings_;  ///< by the names of health_amd's conditions
  std::int64_t samples_ = 0, failures_ = 0;
  std::jthread thread_;  // last, so that it ends before the members it uses
};

Values Watched::conditions() const {
  Values values = {{"amd_smi", std::string("present")}, {"amd_smi_version", smi_.version()}};
  if (!begin_ || !end_) return values;
  values.emplace("watch_samples", samples_);
  values.emplace("watch_failures", failures_ + begin_->state.query_errors + end_->state.query_errors);
  values.emplace("watch_s", std::chrono::duration<double>(last_ - begun_).count());
  const auto tell = [&](const char* name, const char* reading, auto what) {
    const auto found = readings_.find(reading);
    if (found != readings_.end() && !found->second.empty()) values.emplace(name, std::invoke(what, found->second));
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
  if (const auto energy = energy_j(); energy && *window_s() > 0) values.emplace("power_mean_w", *energy / *window_s());
  const auto& before = begin_->state.metrics;
  const auto& after = end_->state.metrics;
  for (const char* name : {"thermal_violations", "power_violations", "ecc_corrected", "ecc_uncorrected", "ecc_deferred",
                           "retired_pages", "pcie_replays"}) {
    if (const auto count = grown(name)) values.emplace(fmt::format("{}_delta", name), *count);
  }
  if (before.contains("other_processes") && after.contains("other_processes")) {
    const double most = std::max(before.at("other_processes"), after.at("other_processes"));
    values.emplace("other_processes", static_cast<std::int64_t>(most));
  }
  return values;
}

/// The GPU at `pci_address` as it is watched, or the conditions that say why not.
nvml::GpuWatch watch_at(const std::string& pci_address) {
  const AmdSmi* smi = smi_beside();
  if (smi == nullptr) return {nullptr, {{"amd_smi", nvml::absent_because(absence_of_smi())}}};
  const auto gpu = smi->gpu_at(pci_address);
  if (!gpu) return {nullptr, {{"amd_smi", fmt::format("absent: AMD SMI lists no GPU at {}", pci_address)}}};
  return {std::make_unique<Watched>(*smi, *gpu), {}};
}

}  // namespace

GpuWatch::GpuWatch(const std::string& pci_address) : nvml::GpuWatch(watch_at(pci_address)) {}

}  // namespace assay::amd
