// health_load: how much of a node's processors other programs use while this one sleeps.

#include "probes/core/host_facts.h"
#include "probes/core/probe.h"
#include "probes/core/recorder.h"

namespace assay::health {
namespace {

constexpr Parameter kParameters[] = {
    parameter("interval", "s", "300ms", "time of one sample", "100ms"),
    parameter("samples", "1", "10", "samples taken"),
};
constexpr Metric kMetrics[] = {
    lower("cpu_load", "1", "share of all processors' time that ran in other processes while this one slept"),
};
constexpr ProbeSpec kSpec{
    .name = "health_load",
    .measures = "Load of a node by other programs.",
    .method = "Sleeps, and reads /proc/stat before and after each interval; its own time is taken off.",
    .source = "proc(5) of the Linux manual pages, the part on /proc/stat.",
    .typical = {3},
    .deadline = {60},
    .parameters = kParameters,
    .metrics = kMetrics,
    .between_runs = {.least = 0}};

constexpr std::int64_t kMostSamples = 1000;

void measure(const Parameters& given, Recorder& record) {
  const auto samples = given.count("samples");
  const Seconds interval = given.seconds("interval");
  if (samples < 1 || samples > kMostSamples) throw BadParameter("samples: give 1 to 1000");
  if (interval.count < 0.05 || interval.count > 10)  // /proc/stat counts in hundredths of a second
    throw BadParameter("interval: give 50ms to 10s");
  Sampling load{.samples = {}, .warmup = {}, .stopped = "fixed"};
  for (std::int64_t i = 0; i < samples; ++i) {
    const LoadMeter meter;
    sleep_until_stopped(std::chrono::duration<double>(interval.count));
    const auto shares = meter.read();
    if (!shares) throw Skip("/proc/stat cannot be read");
    load.samples.push_back(shares->others);
  }
  record.measurement("cpu_load", load);
}

}  // namespace
}  // namespace assay::health

int main(int argc, char** argv) { return assay::probe_main(argc, argv, assay::health::kSpec, assay::health::measure); }
