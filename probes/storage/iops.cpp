// storage_iops: small random reads and writes at depth, as data loaders and metadata use them.
#include "probes/core/probe.h"
#include "probes/storage/fio.h"

namespace assay::storage {
namespace {

constexpr auto kParameters = with_fio_parameters(std::array{
    parameter("block_size", "B", "4KiB", "size of one I/O"),
    parameter("queue_depth", "1", "32", "I/Os in flight of each job"),
    parameter("jobs", "1", "4", "threads of fio on the one file"),
});
constexpr Metric kMetrics[] = {
    higher("read_iops", "1/s", "reads completed over the counted time of one fio run, all jobs together"),
    higher("write_iops", "1/s", "writes completed over the counted time of one fio run, all jobs together"),
};
constexpr ProbeSpec kSpec{
    .name = "storage_iops",
    .measures = "Random read and write operations a second of the filesystem under a directory.",
    .method =
        "fio lays out one file with random data and fsyncs it; then fio runs anew for each sample, reads and writes in "
        "turn, with direct I/O at random offsets of that file (norandommap, a new seed each run). A sample is iops of "
        "one run: operations completed in the counted time, after the ramp. The drive is not preconditioned beyond the "
        "layout: a drive's steady state needs a longer fill than this probe does.",
    .source = "fio 3 HOWTO; random 4 KiB at queue depth as in NVMe data sheets.",
    .needs = "fio 3 on PATH; a filesystem that does direct I/O.",
    .typical = {21.35},
    .deadline = {600},
    .parameters = kParameters,
    .metrics = kMetrics,
    .conditions = kFioConditions,
    .space = kFioSpace,
    .between_runs = kFioRunDeviation};

void measure(const Parameters& given, Recorder& record) {
  demand_positive(given, {"block_size", "queue_depth", "jobs"});
  Fio fio(fio_plan(given));
  const FioJob read{.direction = Direction::read,
                    .random = true,
                    .block = given.bytes("block_size"),
                    .depth = given.count("queue_depth"),
                    .jobs = given.count("jobs")};
  FioJob write = read;
  write.direction = Direction::write;
  const auto results = fio.run_in_turn(std::array{read, write});
  record.measurement("read_iops", samples_of(results[0], &FioResult::iops));
  record.measurement("write_iops", samples_of(results[1], &FioResult::iops));
  fio.record_conditions(record);
}

}  // namespace
}  // namespace assay::storage

int main(int argc, char** argv) {
  return assay::probe_main(argc, argv, assay::storage::kSpec, assay::storage::measure);
}
