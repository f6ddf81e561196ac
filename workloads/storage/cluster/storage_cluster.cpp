// storage_cluster: bandwidth of one storage that several nodes write to and read from at the same time.
#include "probes/core/probe.h"
#include "probes/core/recorder.h"
#include "probes/core/rendezvous.h"
#include "workloads/storage/cluster/storage_run.h"
#include "workloads/storage/shared/common_spec.h"

namespace assay::cluster_storage {
namespace {

using namespace common_spec;

constexpr Parameter kParameters[] = {
    kDirectory,
    choice("operation", "write_read", "write_read mixed interference",
           "all write, then all read; the same with a mixed phase of both in place of the reading; or some first, "
           "then all at work"),
    choice("pattern", "own_file", "own_file shared_file",
           "a file for each thread, or one for all, interleaved transfer by transfer"),
    parameter("block", "B", "1MiB", "bytes of one transfer; no direct I/O unless a multiple of 4 KiB"),
    parameter("threads", "1", "4", "streams of each rank, a thread each", "2"),
    parameter("depth", "1", "8", "transfers in flight of each thread, at most 1024"),
    parameter("duration", "s", "20s", "time to the stonewall of a phase that writes, 100 ms to 10 min", "1s"),
    parameter(
        "size", "B", "64GiB",
        "payload of each rank and phase at most; the first rank to reach it ends the phase for all, as the time does",
        "64MiB"),
    kRepetitions,
    kShift,
    parameter("read_percent", "1", "70", "of a mixed phase: reads among 100 transfers, from 1 to 99"),
    parameter("victims", "1", "1",
              "of interference: number of ranks that are measured first without and then with all others"),
    kClientsCold,
    kServerMemory,
    kState,
};
constexpr Metric kMetrics[] = {
    higher("bandwidth", "B/s",
           "payload of all ranks over the time from the common start until the last one has done its part and closed "
           "its files; recorded where operation is not interference",
           Recorded::if_asked),
    higher("bandwidth_stonewall", "B/s",
           "payload of all ranks at the stonewall over the time to it, fsync not counted; recorded where operation is "
           "not interference",
           Recorded::if_asked),
    higher("client_bandwidth", "B/s",
           "payload of one rank at the stonewall over the time to it; where I/O is buffered, writes that are only in "
           "its memory count, too",
           Recorded::if_asked),
    higher("client_share", "1",
           "client_bandwidth over the median of all ranks in the same phase, recorded where that is",
           Recorded::if_asked),
    lower("client_time", "s",
          "from the common start until this rank has done its part and closed its files, recorded where bandwidth is",
          Recorded::if_asked),
    lower("latency_p99", "s",
          "99th percentile of the time from submission to completion of one rank's transfers, to 1.6 %, recorded where "
          "bandwidth is",
          Recorded::if_asked, 0.005),
    share("skew",
          "client_bandwidth of the slowest rank over that of the fastest; recorded where operation is not interference",
          Recorded::if_asked),
    share("fairness",
          "Jain's index of all ranks' client_bandwidth, 1 is even; recorded where operation is not interference",
          Recorded::if_asked),
    lower("open_time", "s",
          "of the slowest thread of all ranks to open, or make, its files, recorded where bandwidth is",
          Recorded::if_asked),
    lower("sync_time", "s",
          "of the slowest thread of all ranks to fsync its file, and of its rank to fsync the directory; recorded "
          "where the phase writes",
          Recorded::if_asked),
    lower("close_time", "s", "of the slowest thread of all ranks to close its files, recorded where bandwidth is",
          Recorded::if_asked),
    kRemoveTime,
    higher("victim_alone", "B/s",
           "payload of the victims at the stonewall over the time to it while no other rank is at work; recorded where "
           "operation is interference",
           Recorded::if_asked),
    higher("victim_together", "B/s", "the same while all ranks are at work; recorded where operation is interference",
           Recorded::if_asked),
    higher("victim_kept", "1",
           "victim_together over victim_alone of the same repetition; recorded where operation is interference",
           Recorded::if_asked),
    fault("mismatches", "bytes read, of all ranks and phases, that differ from the payload written or are missing",
          Recorded::rank_0),
};
constexpr ConditionSpec kConditions[] = {
    kFilesystem,
    kMountSource,
    kMountOptions,
    {.name = "direct_io", .meaning = "Whether all files were open with O_DIRECT."},
    if_occurred("buffered_because", "Why they were not, if they were not."),
    {.name = "engine", .meaning = "How I/O is done."},
    {.name = "nonce", .meaning = "Key of this run's payload, besides stream and set; drawn by rank 0."},
    kClientsTotal,
    kReadByOtherNode,
    {.name = "cold_rung",
     .meaning =
         "How well it is proved that reads came from the storage, the lowest of all ranks and phases: 0 nothing, or "
         "pages were in a page cache; 1 the readers' page caches were empty (mincore); 2 the wire or the device moved "
         "the payload; 3 another machine read than wrote; 4 that, and more than server_memory."},
    if_reported("resident_pages",
                "Most pages of the files in this rank's page cache before it read, after it was asked to drop them; "
                "recorded where the file system can be asked."),
    if_asked("wire_share",
             "Least payload received by this node while it read, over its payload: on a mount by the kernel's NFS "
             "client the bytes of READ replies (mountstats), else the bytes from its network ports or its devices; "
             "recorded where the kernel counts, and where a phase only reads."),
    if_occurred("set_over_client_memory",
                "Payload that this rank read in one phase over the memory of its machine, if it read."),
    kSetOverServerMemory,
    kPreloaded,
    kStartSpread,
    {.name = "ended_by", .meaning = "Condition that ended the writing: duration, or size in at least one repetition."},
    {.name = "payload_ceiling",
     .meaning =
         "Rate in B/s at which this rank's threads make and compare payload without storage: no client shows more."},
    kAbandonedRemoved,
    kRpcBacklog,
    kRpcSlots,
    kDeviceClass,
    kEmulatedDrive,
};
constexpr SpaceRule kSpace[] = {
    {.shared = true, .when = "operation=write_read", .held = "ranks size", .times = "repetitions"},
    {.shared = true, .held = "2 ranks size", .times = "repetitions"},
};
constexpr GroupSizeRule kGroupSize[] = {
    {.when = "operation=interference",
     .processes = SizeDemand::at_least,
     .of = "victims+1",
     .reason = "one at least must disturb the victims"},
};
constexpr ProbeSpec kSpec{
    .name = "storage_cluster",
    .revision = 2,
    .scope = Scope::group,
    .measures =
        "Bandwidth of a storage that several nodes write and read at the same time, as a whole and client by client, "
        "every byte verified by another node than wrote it.",
    .method =
        "Every rank runs threads, each with transfers of equal size in flight through io_uring, with O_DIRECT where "
        "file system and size allow, else buffered, and says so. The payload is splitmix64 in counter form, keyed by a "
        "nonce of the run, the stream and the set of files, so that no run writes the bytes of another; it is made, or "
        "compared, by the thread while its other transfers are in flight. A phase begins after a common barrier; each "
        "rank's clock runs from there. Writing: files are opened and written until `duration` or `size` is over, which "
        "is the stonewall, at which the ranks exchange their progress and wait for the slowest; then wear-out: every "
        "stream continues until it has written as much as the furthest one had; then fsync of files and directory, and "
        "close, all within the time. Reading: every rank asks its page cache to drop the files, counts by mincore the "
        "pages left, and reads once all files of the rank `shift` before it; the stonewall is when the first rank is "
        "done. Mixed: reads of such files and writes of new ones by turns, with stonewall and wear-out. A rate at the "
        "stonewall counts the bytes completed then, known to 5 ms. Interference: the victims write for `duration` "
        "while the others wait, then all write, without wear-out; the victims read the first half of the others' "
        "files, then all read the second half. Figures of a phase stand at phase write, read or mixed. Before, free "
        "space is checked, and folders of killed runs are removed; the folder of the run is removed at its end, also "
        "after a failure.",
    .source =
        "IO500 rules 2.0 (stonewall, wear-out, fsync in the time, reading from another node, 47,008 B interleaved in "
        "one file); Jain, Chiu and Hawe 1984, DEC-TR-301, for fairness.",
    .needs =
        "Two or more nodes with one shared file system that meet on the port of the rendezvous, and kernels that "
        "permit io_uring.",
    .typical = {300},
    .deadline = {3600},
    .parameters = kParameters,
    .metrics = kMetrics,
    .conditions = kConditions,
    .space = kSpace,
    .group_size = kGroupSize,
};

void measure(const Parameters& given, const Placement& placement, Recorder& record) {
  check_storage(given, placement.world == 1 ? 2 : placement.world);
  if (placement.world == 1)
    throw Skip("one rank alone: this probe measures between nodes; use it with scope group or cluster");
  work_together(placement, {.exchange = storage_patience(given)},
                [&](Rendezvous& group) { run_storage(given, group, record); });
}

}  // namespace
}  // namespace assay::cluster_storage

int main(int argc, char** argv) {
  return assay::probe_main(argc, argv, assay::cluster_storage::kSpec, assay::cluster_storage::measure);
}
