// storage_durability: whether acknowledged writes of a shared storage survive its interruption.
#include "probes/core/probe.h"
#include "probes/core/recorder.h"
#include "probes/core/rendezvous.h"
#include "workloads/durability/durability_run.h"
#include "workloads/storage/shared/common_spec.h"

namespace assay::durability {
namespace {

using namespace cluster_storage::common_spec;

constexpr double kMargin_s = 600;  // an exchange waits for the slowest rank to write, recover and read again

constexpr Parameter kParameters[] = {
    kDirectory,
    {.name = "duration",
     .unit = "s",
     .fallback = "2min",
     .quick = "1s",
     .meaning = "of writing, at most 1 h: the fault must come within it; a stream ends when it has come through one"},
    {.name = "streams",
     .unit = "1",
     .fallback = "4",
     .quick = "2",
     .meaning = "threads of each node that write, each with files of its own, at most 256"},
    {.name = "slots",
     .unit = "1",
     .fallback = "1024",
     .quick = "64",
     .meaning = "blocks of 4 KiB that each stream overwrites in turn, at most 65536"},
    {.name = "stall",
     .unit = "s",
     .fallback = "1s",
     .meaning = "a write that takes longer counts as an interruption, as one that is refused does"},
    {.name = "recovery",
     .unit = "s",
     .fallback = "5min",
     .meaning = "a storage that refuses for longer has not come back, which is an error"},
    kClients,
    kState,
};
constexpr Metric kMetrics[] = {
    fault("lost_writes", "places whose last acknowledged write another node does not find: nothing or zeros",
          Recorded::rank_0),
    fault("rolled_back_writes", "places where another node finds an older write than the last that was acknowledged",
          Recorded::rank_0),
    fault("torn_writes", "places where another node finds content that no write made: damage, parts of two writes",
          Recorded::rank_0),
    neither("acknowledged", "1", "places with an acknowledged write, every one of which was read", Recorded::rank_0),
    lower("refused_calls", "1",
          "calls of writers that the storage refused; each write was made again until it was durable",
          Recorded::rank_0),
    lower("longest_write", "s", "longest time from the beginning of a write until it was durable", Recorded::rank_0),
    lower("recovery_time", "s",
          "from the beginning of the write that was interrupted until it was durable, of the slowest stream; recorded "
          "where there was one",
          Recorded::if_occurred),
};
constexpr ConditionSpec kConditions[] = {
    kFilesystem,
    kMountSource,
    kMountOptions,
    {.name = "nonce",
     .meaning = "What the payload of this run is keyed by, besides writer and place; drawn by rank 0."},
    kClientsTotal,
    {.name = "read_by_other_node",
     .meaning = "Whether the ledger of each rank was kept, and its files were read, by another machine."},
    kPreloaded,
    {.name = "interrupted",
     .meaning = "Whether any write was refused or took longer than `stall`. Where none did, nothing was put to the "
                "test: require true."},
    {.name = "interrupted_clients", .meaning = "Ranks with such a write."},
    kAbandonedRemoved,
    kDeviceClass,
};
constexpr SpaceRule kSpace[] = {
    {.shared = true, .held = "4096 ranks streams slots+16416"},  // kDurableBlock, kMostRecords and names
};
constexpr ProbeSpec kSpec{
    .name = "storage_durability",
    .scope = Scope::group,
    .measures =
        "Whether every write that a shared storage acknowledged is there, whole and not older, after the storage was "
        "interrupted.",
    .method =
        "Every stream of every node writes blocks of 4 KiB one after the other: over a slot of a file, to the end of a "
        "log, and into a new file that is renamed over an old one and whose directory is synced. Each block holds its "
        "generation and payload of this run, writer and place alone. When fsync (a raw system call) has returned, the "
        "acknowledgement is sent over TCP to the ledger in the memory of the next node, before the next block is "
        "begun. Meanwhile the operator, or a test, kills a server, takes a drive away or cuts the power. A write that "
        "is refused is made again from the start, its files opened anew, until it is durable; then its stream ends, so "
        "that nothing acknowledged before is overwritten. When all streams have ended, each node reads every place of "
        "the ledger that it kept and compares every byte: absent or zero is lost, a whole older block is rolled back, "
        "anything else is torn. Each place counts in one class at most.",
    .source = "POSIX.1-2017, fsync and rename; fsync(2) of the Linux manual pages on the directory of a new name.",
    .needs =
        "Two or more nodes with one shared file system that meet on the port of the rendezvous, and a fault that comes "
        "while they write.",
    .typical = {180},
    .deadline = {3600},
    .parameters = kParameters,
    .metrics = kMetrics,
    .conditions = kConditions,
    .space = kSpace,
};

void measure(const Parameters& given, const Placement& placement, Recorder& record) {
  const DurabilitySettings settings = durability_settings(given);
  if (placement.world == 1)
    throw Skip("one rank alone: the ledger must be kept by another; use this probe with scope group or cluster");
  const double patience_s = kMargin_s + settings.duration.count + 2 * settings.recovery.count;
  work_together(placement, {.exchange = {patience_s}},
                [&](Rendezvous& group) { run_durability(given, placement, group, record); });
}

}  // namespace
}  // namespace assay::durability

int main(int argc, char** argv) {
  return assay::probe_main(argc, argv, assay::durability::kSpec, assay::durability::measure);
}
