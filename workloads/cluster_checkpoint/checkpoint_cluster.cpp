// checkpoint_cluster: how fast the checkpoint of a model that several nodes train is saved, safe, seen, and restored.
#include "probes/core/probe.h"
#include "probes/core/recorder.h"
#include "probes/core/rendezvous.h"
#include "workloads/cluster_checkpoint/checkpoint_run.h"
#include "workloads/storage/shared/common_spec.h"

namespace assay::cluster_checkpoint {
namespace {

using namespace cluster_storage::common_spec;

constexpr Seconds kPatience = {1800};  // a slow node saves long; one that is gone is not waited for

constexpr Parameter kParameters[] = {
    kDirectory,
    parameter("local_directory", "", ".", "directory on a drive of each node's own, for the tier local"),
    choice(
        "model", "llama3-8b", "llama3-8b llama3-70b llama3-405b llama3-1t",
        "whose checkpoint: 14 B x parameters, divided as MLPerf Storage divides it among 8, 64, 512, 1024 processes"),
    parameter("divisor", "1", "1", "by which every file's size is divided; 1: the whole checkpoint", "20000"),
    parameter("tiers", "", "memory,shared",
              "where it is saved, in a list: memory, a copy in the node; peer, in another node's memory; local, a "
              "drive of the node; shared, the storage of all"),
    choice("lost", "node", "nothing memory node",
           "what is gone before it is restored: nothing; memory, the node's copy in memory; node, memory and "
           "drive, and another node restores in its place"),
    parameter("shift", "1", "1",
              "copies go to the node so many before; the node so many after restores for a lost one"),
    parameter("threads", "1", "8", "of each node, each with a file at a time; also streams or queue pairs to a peer",
              "2"),
    choice("peer_transport", "tcp", "tcp verbs",
           "what carries copies to the tier peer: tcp; verbs, RDMA writes, never TCP in their place"),
    parameter("device", "", "auto",
              "with peer_transport verbs: RDMA device (mlx5_0) or port (mlx5_0/2); auto: the fastest active port"),
    parameter("gid_index", "", "auto",
              "with peer_transport verbs: entry of the GID table; auto: RoCE v2 over IPv4 before others"),
    parameter("traffic_class", "1", "0",
              "with peer_transport verbs: of the global route header, 0 to 255; its upper six bits are the DSCP"),
    parameter("service_level", "1", "0",
              "with peer_transport verbs: InfiniBand service level, or Ethernet priority, 0 to 15"),
    parameter("chunk", "B", "16MiB", "bytes of one I/O", "1MiB"),
    parameter("queue_depth", "1", "4", "I/Os in flight of each thread, at most 1024"),
    parameter("repetitions", "1", "10", "checkpoints saved and restored; none is left out", "1"),
    parameter("wait", "s", "15s", "for another node to see a file that was committed"),
    kClients,
    kServerMemory,
    kState,
};
constexpr Metric kMetrics[] = {
    lower("stall_time", "s",
          "from the common start until the slowest node could go on with training: its copy in memory is made, or "
          "without that tier all others are",
          Recorded::rank_0),
    lower("time_to_peer", "s", "from the common start until the memory of another node held every byte",
          Recorded::rank_0),
    higher("peer_bandwidth", "B/s", "payload of all nodes over time_to_peer", Recorded::rank_0),
    lower("time_to_durable", "s",
          "from the common start until every file and its name are durable, of the slowest node and the farthest of "
          "the tiers local and shared",
          Recorded::rank_0),
    higher("write_bandwidth", "B/s", "payload of all nodes over time_to_durable", Recorded::rank_0),
    higher("client_write_bandwidth", "B/s", "payload of one node over its own time_to_durable", Recorded::rank_0),
    lower("time_to_visible", "s",
          "from when all had saved until the slowest node had read the beginning and the end of another's first file "
          "right",
          Recorded::rank_0),
    lower("time_to_resume", "s", "from the common start until the slowest node had every byte, verified, in its memory",
          Recorded::rank_0),
    higher("restore_bandwidth", "B/s",
           "payload of all nodes over the longest node's time to read, verification not counted", Recorded::rank_0),
    higher("raw_read_bandwidth", "B/s",
           "payload of all nodes over the longest node's time to read the same files and look at nothing; recorded "
           "where files are the nearest copy that is left",
           Recorded::if_occurred),
    higher("restore_share", "1",
           "restore_bandwidth over raw_read_bandwidth of the same repetition; recorded where files are the nearest "
           "copy that is left and all were right",
           Recorded::if_occurred),
    higher("client_restore_bandwidth", "B/s", "payload of one node over its own time to read", Recorded::rank_0),
    kRemoveTime,
    fault("mismatches",
          "bytes of any copy that was read that are not what was saved, the whole of a file without its end; a block "
          "for each first file that was not seen in time",
          Recorded::rank_0),
    fault("fallbacks", "files of which a nearer copy was there but not valid, restored from a farther tier",
          Recorded::rank_0),
};
constexpr ConditionSpec kConditions[] = {
    kFilesystem,
    kMountSource,
    kMountOptions,
    {.name = "nonce", .meaning = "What the payload of this run is keyed by; drawn by rank 0."},
    kClientsTotal,
    {.name = "read_by_other_node", .meaning = "Whether another machine restored every byte than saved it."},
    if_occurred("cold_rung",
                "How well it is proved that files were read from their storage, as in storage_ingest; recorded where a "
                "file was read."),
    if_occurred(
        "resident_pages",
        "Most pages of the files in this rank's page cache before it read; recorded where it read any and can ask."),
    if_reported("wire_share",
                "Least that came by wire or from devices while files were read, over their payload; on a mount by the "
                "kernel's NFS client what replies to its READs carried; recorded where the kernel counts."),
    if_occurred("set_over_client_memory",
                "Payload of the files that this rank read over the memory of its machine; recorded where it read any."),
    kSetOverServerMemory,
    kPreloaded,
    {.name = "parameters_total", .meaning = "Parameters of the model."},
    {.name = "checkpoint_size", .meaning = "Payload in B of one checkpoint as it was saved."},
    {.name = "files_total", .meaning = "Files of one checkpoint."},
    {.name = "whole", .meaning = "Whether the checkpoint had its whole size."},
    {.name = "served_by",
     .meaning =
         "The tier that all of this rank's files were restored from, or files by tier; none where no copy was valid."},
    if_asked("peer_transport",
             "What carried copies to other nodes' memory: tcp, RoCE v2, RoCE v1 or InfiniBand; recorded where the "
             "tiers have peer."),
    if_asked("peer_port",
             "This rank's RDMA port and its address, recorded where copies to other nodes' memory went by verbs."),
    kAbandonedRemoved,
    kDeviceClass,
    kEmulatedDrive,
};
constexpr SpaceRule kSpace[] = {
    {.shared = true, .when = "tiers~shared model=llama3-8b", .held = "14 8030261248 /divisor", .times = "repetitions"},
    {.shared = true,
     .when = "tiers~shared model=llama3-70b",
     .held = "14 70553706496 /divisor",
     .times = "repetitions"},
    {.shared = true,
     .when = "tiers~shared model=llama3-405b",
     .held = "14 405853388800 /divisor",
     .times = "repetitions"},
    {.shared = true,
     .when = "tiers~shared model=llama3-1t",
     .held = "14 1183194060048 /divisor",
     .times = "repetitions"},
    {.into = "local_directory",
     .when = "tiers~local model=llama3-8b",
     .held = "1.15 14 8030261248 /divisor /ranks",  // the first replica has more
     .times = "repetitions"},
    {.into = "local_directory",
     .when = "tiers~local model=llama3-70b",
     .held = "1.15 14 70553706496 /divisor /ranks",  // the first replica has more
     .times = "repetitions"},
    {.into = "local_directory",
     .when = "tiers~local model=llama3-405b",
     .held = "1.15 14 405853388800 /divisor /ranks",  // the first replica has more
     .times = "repetitions"},
    {.into = "local_directory",
     .when = "tiers~local model=llama3-1t",
     .held = "1.15 14 1183194060048 /divisor /ranks",  // the first replica has more
     .times = "repetitions"},
};
constexpr GroupSizeRule kGroupSize[] = {
    {.when = "model=llama3-8b",
     .processes = SizeDemand::at_most,
     .of = "8",
     .reason = "8 processes train the model, and every node needs one"},
    {.when = "model=llama3-70b",
     .processes = SizeDemand::at_most,
     .of = "64",
     .reason = "64 processes train the model, and every node needs one"},
    {.when = "model=llama3-405b",
     .processes = SizeDemand::at_most,
     .of = "512",
     .reason = "512 processes train the model, and every node needs one"},
    {.when = "model=llama3-1t",
     .processes = SizeDemand::at_most,
     .of = "1024",
     .reason = "1024 processes train the model, and every node needs one"},
};
constexpr ProbeSpec kSpec{
    .name = "checkpoint_cluster",
    .revision = 4,
    .scope = Scope::group,
    .measures =
        "Time to save the checkpoint of a large model from several nodes into memory, a peer's memory, a drive and a "
        "shared storage, and to restore it from the nearest that is left, every byte verified.",
    .method =
        "The checkpoint is 14 B for each parameter: weights in 2 B, master weights and two moments in 12 B. The "
        "processes that train the model are divided among the nodes in blocks. Under ZeRO 3 (8B, 70B) each has a file "
        "of weights and one of the optimizer; under ZeRO 1 (405B, 1T) each has one of the optimizer, and the first "
        "half of the processes, which is the first data-parallel replica, one of weights for each layer of its stage. "
        "Figures of a checkpoint whose sizes were divided have the divisor in their coordinate and are no figures of "
        "the whole. Payload is made before the clock starts, keyed by a nonce of the run. Save: from a common start "
        "each node copies it in memory, sends it to the memory of another node, over TCP or by RDMA writes, writes it "
        "to its drive and to the shared storage, one after the other, those that `tiers` names; files as in "
        "checkpoint: temporary name, O_DIRECT, footer with XXH64, fsync, rename, fsync of the directory. When all have "
        "saved, each looks for the first file of another until its footer and first MiB are right. Then the memory is "
        "overwritten, what `lost` names is gone, and the files' pages are dropped. Restore: from a common start each "
        "node takes all its files from the nearest tier, compares every byte with the payload made anew, and takes "
        "those that are not right from the next. Copies in a peer outlive the loss, as if each node alone had failed. "
        "Where the nearest tier keeps files, they are then read once more by the same threads in the same chunks, "
        "unverified: whatever keeps what was read last makes this raw read faster and never the restore, so "
        "restore_share errs on the low side. Saving and restoring alternate.",
    .source =
        "mlcommons/storage Rules.md at 0366ccf (checkpointing): 14 B a parameter, layouts and processes, fsync "
        "counted, longest rank, ten saves and ten restores. Parameters are those of the models' cards: its runs of 70B "
        "are 1 % smaller.",
    .needs =
        "Two or more nodes, at most as many as the model has processes, that meet on the port of the rendezvous; a "
        "directory of all that does direct I/O; io_uring.",
    .typical = {600},
    .deadline = {3600},
    .parameters = kParameters,
    .metrics = kMetrics,
    .conditions = kConditions,
    .space = kSpace,
    .group_size = kGroupSize,
};

void measure(const Parameters& given, const Placement& placement, Recorder& record) {
  (void)tier_settings(given, placement.world == 1 ? 2 : placement.world);
  if (placement.world == 1)
    throw Skip("one rank alone: this probe measures between nodes; use it with scope group or cluster");
  work_together(placement, {.exchange = kPatience},
                [&](Rendezvous& group) { run_checkpoints(given, placement, group, record); });
}

}  // namespace
}  // namespace assay::cluster_checkpoint

int main(int argc, char** argv) {
  return assay::probe_main(argc, argv, assay::cluster_checkpoint::kSpec, assay::cluster_checkpoint::measure);
}
