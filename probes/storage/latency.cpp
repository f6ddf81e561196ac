// storage_latency: latency of small random I/O, one at a time.
#include "probes/core/probe.h"
#include "probes/storage/fio.h"

namespace assay::storage {
namespace {

constexpr auto kParameters = with_fio_parameters(std::array{
    parameter("block_size", "B", "4KiB", "size of one I/O"),
    parameter("queue_depth", "1", "1", "I/Os in flight"),
    choice("direction", "both", "read write both", "which I/Os to time", "read"),
});
// A bucket of fio's histogram is at most 1/64 of its value wide (stat.h, FIO_IO_U_PLAT_BITS 6); uniform within it.
constexpr double kHistogram = 1.0 / 64 / 3.4641;
constexpr Metric kMetrics[] = {
    lower("latency_p50", "s", "median completion latency within one fio run", Recorded::always, kHistogram),
    lower("latency_p99", "s", "99th percentile of completion latency within one fio run", Recorded::always, kHistogram),
    lower("latency_p999", "s", "99.9th percentile of completion latency within one fio run", Recorded::always,
          kHistogram),
    lower("latency_max", "s", "longest completion latency within one fio run"),
};
constexpr ProbeSpec kSpec{
    .name = "storage_latency",
    .measures = "Completion latency of random reads and writes of the filesystem under a directory.",
    .method =
        "fio lays out one file with random data and fsyncs it; then fio runs anew for each sample with direct I/O at "
        "random offsets of that file. A sample is one percentile of clat of one run: from submission of an I/O to its "
        "completion, after the ramp; fio's histogram resolves it to 1/64 of its value. completions_min says how many "
        "I/Os a sample rests on: below 10000 p999 rests on fewer than ten of them.",
    .source = "fio 3 HOWTO; random 4 KiB at queue depth 1 as in NVMe data sheets.",
    .needs = "fio 3 on PATH; a filesystem that does direct I/O.",
    .typical = {27.35},
    .deadline = {600},
    .parameters = kParameters,
    .metrics = kMetrics,
    .conditions = kFioConditions,
    .space = kFioSpace,
    .between_runs = kFioRunDeviation};

void measure(const Parameters& given, Recorder& record) {
  demand_positive(given, {"block_size", "queue_depth"});
  Fio fio(fio_plan(given));
  std::vector<FioJob> jobs;
  for (const auto direction : {Direction::read, Direction::write}) {
    const std::string& asked = given.text("direction");
    if (asked != "both" && asked != word_of(direction)) continue;
    jobs.push_back({.direction = direction,
                    .random = true,
                    .block = given.bytes("block_size"),
                    .depth = given.count("queue_depth")});
  }
  const auto results = fio.run_in_turn(jobs);
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const Values at = {{"direction", std::string(word_of(jobs[i].direction))}};
    record.measurement("latency_p50", samples_of(results[i], &FioResult::latency_p50), {}, at);
    record.measurement("latency_p99", samples_of(results[i], &FioResult::latency_p99), {}, at);
    record.measurement("latency_p999", samples_of(results[i], &FioResult::latency_p999), {}, at);
    record.measurement("latency_max", samples_of(results[i], &FioResult::latency_max), {}, at);
  }
  fio.record_conditions(record);
}

}  // namespace
}  // namespace assay::storage

int main(int argc, char** argv) {
  return assay::probe_main(argc, argv, assay::storage::kSpec, assay::storage::measure);
}
