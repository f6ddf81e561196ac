// storage_consistency: whether changes of one node to files of a shared storage are visible to another.
#include <algorithm>
#include <map>
#include <string>

#include <fmt/format.h>

#include "probes/core/probe.h"
#include "probes/core/recorder.h"
#include "probes/core/rendezvous.h"
#include "workloads/storage/consistency/consistency_cases.h"
#include "workloads/storage/shared/common_spec.h"
#include "workloads/storage/shared/consistency_look.h"
#include "workloads/storage/shared/run_folder.h"
#include "workloads/storage/shared/storage_ranks.h"

namespace assay::cluster_storage {
namespace {

using namespace common_spec;

constexpr std::int64_t kMostRounds = 1000;
constexpr std::uint64_t kSmallest = 4096, kLargest = 16 << 20, kMultiple = 32;
constexpr double kLongestWait_s = 120;
constexpr std::uint64_t kFilesOfRank = 12, kSizesOfRank = 20;  // of one rank in one round, at most
constexpr double kLeastPatience_s = 600, kChecksOfRound = 12;  // each of which may wait for its whole time

constexpr Parameter kParameters[] = {
    kDirectory,
    choice("cases", "posix", "posix close_to_open",
           "posix: all; close_to_open: leaves out the cases that NFS does not promise (held_open, "
           "append_together, listing)"),
    parameter("size", "B", "256KiB", "bytes of each file, a multiple of 32 B from 4 KiB to 16 MiB", "16KiB"),
    kRounds,
    parameter("wait", "s", "15s",
              "an effect that another node does not see by then counts as one that never came, at most 2 min", "2s"),
    kClients,
    kState,
};
constexpr ConditionSpec kConditions[] = {
    kFilesystem,
    kMountSource,
    kMountOptions,
    kNonceOfFiles,
    kClientsTotal,
    kEveryReaderElsewhere,
    kPreloaded,
    {.name = "pairs", .meaning = "Pairs of writer and reader that were checked; all are ranks times ranks less one."},
    kAbandonedRemoved,
    kDeviceClass,
    kEmulatedDrive,
};
constexpr SpaceRule kSpace[] = {
    {.shared = true, .held = "20 ranks rounds size", .times = "1"},  // kSizesOfRank
};
constexpr ProbeSpec kSpec{
    .name = "storage_consistency",
    .revision = 2,
    .scope = Scope::group,
    .measures =
        "Whether nodes that share a storage see the writes, new names, renames and removals of others: stale and wrong "
        "content, and successes that were none, counted by case.",
    .method =
        "Every rank acts on files of its own; when all have, by an exchange over the network, each looks at the files "
        "of another, and compares every byte with payload that no other run wrote. new_file: write, fsync, close, then "
        "open and read. overwrite: the same in place, of a file that the reader has read. size: cut to a half and "
        "grown to three quarters, which must be zeros. append: by another node than made the file, in turn. exclusive: "
        "all make one name with O_EXCL at once, and one must win; then a name that is there is made again. rename: "
        "whole files are renamed over one name while others read it; each look must find one of them whole, and the "
        "last one afterwards. unlink: of a file that the reader has read; a stale file handle there is the old name. "
        "Beyond close-to-open: held_open, an overwrite seen through a file that was open before; append_together, two "
        "append records at once, and each must be there once; listing, names that come and go in a directory that was "
        "listed before. A reader that finds the old state looks again every 10 ms until `wait` is over: it was stale "
        "if it comes, and the success of the writer was false if it does not. Every check counts in one class at most; "
        "fsync is a raw system call. The folder of the run is removed at its end, also after a failure.",
    .source =
        "POSIX.1-2017 (open, write, rename, unlink, ftruncate); RFC 8881, 10.3.1, on close-to-open; open(2) of the "
        "Linux manual pages on O_APPEND over NFS.",
    .needs = "Two or more nodes with one shared file system that meet on the port of the rendezvous.",
    .typical = {60},
    .deadline = {3600},
    .parameters = kParameters,
    .metrics = kCaseMetrics,
    .conditions = kConditions,
    .space = kSpace,
};

void check(const Parameters& given) {
  (void)given.count("rounds", 1, kMostRounds);
  const auto size = given.bytes("size").count;
  if (size < kSmallest || size > kLargest || size % kMultiple != 0)
    throw BadParameter(fmt::format("size: {} B is not a multiple of 32 B from 4 KiB to 16 MiB", size));
  const double wait_s = given.seconds("wait").count;
  if (!(wait_s > 0) || wait_s > kLongestWait_s)
    throw BadParameter(fmt::format("wait: {:g} s is not above 0 and at most 2 min", wait_s));
}

void run(const Parameters& given, Rendezvous& group, Recorder& record) {
  const auto world = static_cast<std::uint64_t>(group.world());
  const auto rounds = static_cast<std::uint64_t>(given.count("rounds"));
  const std::uint64_t size = given.bytes("size").count;
  const StorageRanks ranks = meet_on_storage(
      group, given, {.bytes = rounds * world * size * kSizesOfRank, .names = rounds * world * kFilesOfRank});
  RunFolder folder(group, given.text("directory"), ranks.nonce);
  ConsistencyCases cases(group, {.folder = folder.path(),
                                 .close_to_open_only = given.text("cases") == "close_to_open",
                                 .size = static_cast<std::size_t>(size),
                                 .wait = given.seconds("wait"),
                                 .nonce = ranks.nonce,
                                 .names = ranks.names});
  for (std::uint64_t round = 0; round < rounds; ++round) cases.round(round, static_cast<int>(round % (world - 1)) + 1);
  std::map<std::string, CaseTally> mine;
  for (const auto& [which, tally] : cases.tallies()) mine[std::string(word_of(which))] = tally;
  const auto tallies = gather_tallies(group, mine, record);
  record_ranks(ranks, record);
  record.condition("pairs", static_cast<std::int64_t>(world * std::min(rounds, world - 1)));
  if (group.rank() == 0) {
    record_tallies(tallies, record);
    record.condition("abandoned_removed", std::int64_t{folder.abandoned()});
  }
  group.barrier();  // the folder is not removed while a rank may still look at it
}

void measure(const Parameters& given, const Placement& placement, Recorder& record) {
  check(given);
  if (placement.world == 1)
    throw Skip("one rank alone: this probe looks from node to node; use it with scope group or cluster");
  const double patience_s = std::max(kLeastPatience_s, kChecksOfRound * given.seconds("wait").count);
  work_together(placement, {.exchange = {patience_s}}, [&](Rendezvous& group) { run(given, group, record); });
}

}  // namespace
}  // namespace assay::cluster_storage

int main(int argc, char** argv) {
  return assay::probe_main(argc, argv, assay::cluster_storage::kSpec, assay::cluster_storage::measure);
}
