// storage_bandwidth: sequential reads and writes of large blocks, as checkpoints and data sets use them.
#include "probes/core/probe.h"
#include "probes/storage/fio.h"

namespace assay::storage {
namespace {

constexpr auto kParameters = with_fio_parameters(std::array{
    parameter("block_size", "B", "1MiB", "size of one I/O"),
    parameter("queue_depth", "1", "32", "I/Os in flight"),
});
constexpr Metric kMetrics[] = {
    higher("read_bandwidth", "B/s", "payload bytes read over the counted time of one fio run"),
    higher("write_bandwidth", "B/s", "payload bytes written over the counted time of one fio run"),
};
constexpr ProbeSpec kSpec{
    .name = "storage_bandwidth",
    .measures = "Sequential read and write bandwidth of the filesystem under a directory.",
    .method =
        "fio lays out one file with random data and fsyncs it; then fio runs anew for each sample, a read and a write "
        "in turn, with direct I/O on that file. A sample is bw_bytes of one run: bytes completed in the counted time, "
        "after the ramp; opening, layout and the final fsync are not counted. A cache inside the device or below a "
        "virtual disk is part of what is measured.",
    .source = "fio 3 HOWTO; sequential 1 MiB at queue depth 32 as in NVMe data sheets.",
    .needs = "fio 3 on PATH; a filesystem that does direct I/O.",
    .typical = {21.35},
    .deadline = {600},
    .parameters = kParameters,
    .metrics = kMetrics,
    .conditions = kFioConditions,
    .space = kFioSpace,
    .between_runs = kFioRunDeviation};

void measure(const Parameters& given, Recorder& record) {
  demand_positive(given, {"block_size", "queue_depth"});
  Fio fio(fio_plan(given));
  const FioJob read{
      .direction = Direction::read, .block = given.bytes("block_size"), .depth = given.count("queue_depth")};
  FioJob write = read;
  write.direction = Direction::write;
  const auto results = fio.run_in_turn(std::array{read, write});
  record.measurement("read_bandwidth", samples_of(results[0], &FioResult::bandwidth));
  record.measurement("write_bandwidth", samples_of(results[1], &FioResult::bandwidth));
  fio.record_conditions(record);
}

}  // namespace
}  // namespace assay::storage

int main(int argc, char** argv) {
  return assay::probe_main(argc, argv, assay::storage::kSpec, assay::storage::measure);
}
