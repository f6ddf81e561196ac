// windows: sleeps to the end of each window, then divides by the time that really passed.
#include "probes/host/windows.h"

#include <stdexcept>
#include <thread>
#include <utility>

#include <nlohmann/json.hpp>

#include "probes/core/json_io.h"
#include "probes/core/probe.h"

namespace assay::host {

Windows::Windows(std::function<std::uint64_t()> count, Seconds window)
    : count_(std::move(count)), window_(window), at_(Clock::now()), before_(count_()) {}

double Windows::next() {
  std::this_thread::sleep_until(
      at_ + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(window_.count)));
  if (stop_requested()) throw std::runtime_error("stopped while payload was moving");
  const auto now = Clock::now();
  const std::uint64_t after = count_();
  const double rate = static_cast<double>(after - before_) / std::chrono::duration<double>(now - at_).count();
  at_ = now;
  before_ = after;
  return rate;
}

std::string words_of(const Sampling& taken) {
  return nlohmann::json{{"samples", taken.samples}, {"warmup", taken.warmup}, {"stopped", taken.stopped}}.dump();
}

Sampling windows_in(const std::string& words) {
  const auto document = parse_json_or_throw(words, "the other rank's windows");
  return {.samples = document.at("samples"), .warmup = document.at("warmup"), .stopped = document.at("stopped")};
}

}  // namespace assay::host
