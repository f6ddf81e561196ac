// common_spec: parameters, metrics and conditions that mean the same in every probe of a shared storage.
#pragma once

#include "probes/core/filesystem_facts.h"
#include "probes/core/probe.h"

namespace assay::cluster_storage::common_spec {

inline constexpr Parameter kDirectory =
    parameter("directory", "", ".", "directory on the shared storage, by the same path on every node");
inline constexpr Parameter kRepetitions = parameter(
    "repetitions", "1", "6",
    "times that all phases are made, with files of new names, from 1 to 100; fewer than 6 leave a median open", "1");
inline constexpr Parameter kShift = parameter("shift", "1", "1", "rank r reads the files written by rank r - shift");
inline constexpr Parameter kClientsCold =
    choice("clients", "nodes", "nodes processes",
           "nodes: ranks that share a machine are an error; processes: a rehearsal that may, and proves no cold read");
inline constexpr Parameter kServerMemory = parameter(
    "server_memory", "B", "0B", "memory of all servers of the storage as stated by the operator; 0: not stated");
inline constexpr Parameter kState = parameter(
    "state", "", "not told", "state of the storage by the operator, such as healthy, one data node off, rebuild");
inline constexpr Parameter kClients =
    choice("clients", "nodes", "nodes processes",
           "nodes: ranks that share a machine are an error; processes: a rehearsal that may, whose caches are one");

inline constexpr Parameter kRounds = parameter(
    "rounds", "1", "10",
    "times that all cases are made, at most 1000; the pairs of writer and reader change from round to round", "2");

inline constexpr Metric kRemoveTime = lower("remove_time", "s", "of rank 0 to remove all files", Recorded::rank_0);

inline constexpr Metric kStaleReads =
    fault("stale_reads", "checks in which another node at first found the old content, or a beginning of the new",
          Recorded::rank_0);
inline constexpr Metric kWrongReads =
    fault("wrong_reads", "checks in which another node found content that never was: zeros, damage, parts of two files",
          Recorded::rank_0);
inline constexpr Metric kFalseSuccesses =
    fault("false_successes",
          "calls that reported success while their effect was not visible after `wait`, or was granted to several",
          Recorded::rank_0);
inline constexpr Metric kFailures = fault("failures", "calls that the storage refused", Recorded::rank_0);
inline constexpr Metric kVisibleAfter =
    lower("visible_after", "s",
          "longest time from a reader's first look until it found the right content, "
          "of those that did; 0 where all did at once",
          Recorded::rank_0);
inline constexpr Metric kChecks =
    neither("checks", "1", "judged looks of readers, and exclusive creations of a name", Recorded::rank_0);

/// Of probes that check operations of others, case by case.
inline constexpr Metric kCaseMetrics[] = {
    kStaleReads, kWrongReads, kFalseSuccesses, kFailures, kVisibleAfter, kChecks,
};

inline constexpr ConditionSpec kFilesystem{.name = "filesystem", .meaning = "Type of the file system."};
inline constexpr ConditionSpec kMountSource =
    if_reported("mount_source", "Source and type of the mount there, where the kernel reports them.");
inline constexpr ConditionSpec kMountOptions =
    if_reported("mount_options", "Options of the mount and of its file system, where the kernel reports them.");
inline constexpr ConditionSpec kClientsTotal{.name = "clients_total", .meaning = "Ranks at work at the same time."};
inline constexpr ConditionSpec kReadByOtherNode{
    .name = "read_by_other_node", .meaning = "Whether all data were read by another machine than wrote them."};
inline constexpr ConditionSpec kEveryReaderElsewhere{
    .name = "read_by_other_node", .meaning = "Whether every reader is another machine than its writer."};
inline constexpr ConditionSpec kNonceOfFiles{
    .name = "nonce", .meaning = "Key of this run's payload, besides rank and file; drawn by rank 0."};
inline constexpr ConditionSpec kSetOverServerMemory =
    if_occurred("set_over_server_memory", "Payload of all ranks over server_memory, recorded where that is stated.");
inline constexpr ConditionSpec kPreloaded{
    .name = "preloaded", .meaning = "Libraries that the loader had to load first, which could replace calls."};
inline constexpr ConditionSpec kStartSpread{
    .name = "start_spread",
    .meaning =
        "Longest time in s that a rank spent in a barrier which all entered at once: so far apart they start at most."};
inline constexpr ConditionSpec kRpcBacklog = if_reported(
    "rpc_backlog",
    "On a mount by the kernel's NFS client over TCP requests of this node that waited for a slot, as a mean at every "
    "request sent (mountstats, xprt).");
inline constexpr ConditionSpec kRpcSlots = if_reported(
    "rpc_slots", "There, requests under way at once at most, of all connections, since the mount was made.");
inline constexpr ConditionSpec kAbandonedRemoved =
    rank_0("abandoned_removed", "Folders of runs that had been killed, removed before; recorded by rank 0.");

}  // namespace assay::cluster_storage::common_spec
