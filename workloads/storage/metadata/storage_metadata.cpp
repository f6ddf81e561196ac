// storage_metadata: names and small files of one storage that several nodes make, look at, rename and remove at once.
#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "probes/core/probe.h"
#include "probes/core/recorder.h"
#include "probes/core/rendezvous.h"
#include "workloads/storage/metadata/metadata_phase.h"
#include "workloads/storage/shared/common_spec.h"
#include "workloads/storage/shared/run_folder.h"
#include "workloads/storage/shared/storage_ranks.h"

namespace assay::cluster_storage {
namespace {

using namespace common_spec;

constexpr std::int64_t kMostThreads = 256, kMostFiles = 1'000'000, kMostRepetitions = 100;
constexpr std::uint64_t kLargestFile = 1 << 20;
constexpr std::uint64_t kSmallestRoom = 4096;  // space of a file of a few bytes on most file systems
constexpr Seconds kPatience = {1200};          // a client that is slow is waited for, one that is gone is not

constexpr Parameter kParameters[] = {
    kDirectory,
    choice("layout", "own_directory", "own_directory shared_directory", "a directory for each thread, or one for all"),
    parameter("size", "B", "3901B", "bytes of each file, at most 1 MiB"),
    parameter("files", "1", "500", "files of each thread", "20"),
    parameter("threads", "1", "4", "threads of each rank, at most 256", "2"),
    kRepetitions,
    parameter("shift", "1", "1", "a rank looks at, renames and removes the files of the rank so many before it"),
    kClients,
    kState,
};
constexpr Metric kMetrics[] = {
    higher("rate", "1/s",
           "operations of all ranks over the time from the common start until the last one has done its part",
           Recorded::rank_0),
    higher("rate_slowest", "1/s", "client_rate of the slowest rank", Recorded::rank_0),
    higher("client_rate", "1/s",
           "operations of one rank over the time from the common start until it has done its part", Recorded::rank_0),
    higher("client_share", "1", "client_rate over the median of all ranks in the same phase", Recorded::rank_0),
    lower("latency_p99", "s",
          "99th percentile of the time of one rank's operations, to 1.6 %; of readdir: of one whole directory",
          Recorded::rank_0, 0.005),
    fault("failures", "operations of all ranks and repetitions that the storage refused", Recorded::rank_0),
    fault("wrong_answers",
          "files of another size or content than were made, and names that a directory lacks, has twice or should not "
          "have, of all ranks and repetitions",
          Recorded::rank_0),
    lower("remove_time", "s", "of rank 0 to remove the directories, and files that are left", Recorded::rank_0),
};
constexpr ConditionSpec kConditions[] = {
    kFilesystem,
    kMountSource,
    kMountOptions,
    {.name = "nonce", .meaning = "Key of this run's payload, besides stream and file; drawn by rank 0."},
    kClientsTotal,
    {.name = "read_by_other_node", .meaning = "Whether all was looked at by another machine than made it."},
    kPreloaded,
    kStartSpread,
    {.name = "files_total", .meaning = "Files that all ranks make in one repetition."},
    kAbandonedRemoved,
    kDeviceClass,
    kEmulatedDrive,
};
constexpr SpaceRule kSpace[] = {
    {.shared = true, .held = "ranks threads files size+4096", .times = "repetitions"},
};
constexpr ProbeSpec kSpec{
    .name = "storage_metadata",
    .scope = Scope::group,
    .measures =
        "How many small files a second several nodes make, look at, read, rename, list and remove at the same time on "
        "one storage, as a whole and client by client, with every refusal and every wrong answer counted.",
    .method =
        "Every rank runs threads, each with `files` files. A phase begins after a common barrier; each rank's clock "
        "runs from there until its last thread is done. create: a new file is opened with O_EXCL, `size` bytes that no "
        "other run wrote are written, and it is closed; there is no fsync, as in mdtest. All else is done by the rank "
        "`shift` after the one that made the files, which has none of them in its caches: stat (the size must be "
        "right), read of the whole file (every byte is compared), rename within the directory, readdir (all names must "
        "be there, once, and no other; each counts as an operation; of a shared directory every rank makes one "
        "listing), unlink. Refusals of the storage are counted and the phase continues, so that a rate with failures "
        "is a rate of attempts. Before, free space and free files are checked, and folders of killed runs are removed; "
        "the folder of the run is removed at its end, also after a failure. Figures of a phase are recorded at its "
        "name.",
    .source =
        "IO500 rules 2.0, mdtest-hard: 3,901 B in one directory, looked at by other nodes; mdtest-easy is size 0 with "
        "directories of their own. IO500 works for a time, this probe through a number of files.",
    .needs = "Two or more nodes with one shared file system that meet on the port of the rendezvous.",
    .typical = {120},
    .deadline = {3600},
    .parameters = kParameters,
    .metrics = kMetrics,
    .conditions = kConditions,
    .space = kSpace,
};

void check(const Parameters& given, int world) {
  (void)given.count("threads", 1, kMostThreads);
  (void)given.count("files", 1, kMostFiles);
  (void)given.count("repetitions", 1, kMostRepetitions);
  if (given.bytes("size").count > kLargestFile)
    throw BadParameter(
        fmt::format("size: {} B are more than 1 MiB, which is no small file", given.bytes("size").count));
  check_shift(given, world);
}

/// One run on one rank.
class MetadataRun {
 public:
  MetadataRun(const Parameters& given, Rendezvous& group, Recorder& record)
      : given_(given), group_(group), record_(record) {}

  void run() {
    const auto world = static_cast<std::uint64_t>(group_.world());
    const MetadataLayout layout{.shared = given_.text("layout") == "shared_directory",
                                .streams = world * static_cast<std::uint64_t>(given_.count("threads")),
                                .files = static_cast<std::uint64_t>(given_.count("files"))};
    const std::uint64_t files = layout.streams * layout.files;
    const std::uint64_t size = given_.bytes("size").count;
    ranks_ = meet_on_storage(group_, given_,
                             {.bytes = files * std::max(size, kSmallestRoom), .names = files + layout.streams});
    RunFolder folder(group_, given_.text("directory"), ranks_.nonce);
    MetadataGroup storage(group_, {.folder = folder.path(),
                                   .layout = layout,
                                   .threads = static_cast<std::size_t>(given_.count("threads")),
                                   .size = static_cast<std::size_t>(size),
                                   .shift = static_cast<int>(given_.count("shift") % group_.world()),
                                   .nonce = ranks_.nonce});
    for (std::int64_t set = 0; set < given_.count("repetitions"); ++set) {
      storage.prepare(static_cast<std::uint64_t>(set));
      for (const auto& [move, name] : words_of(MetadataMove{}))
        take(storage.run(move, static_cast<std::uint64_t>(set)), std::string(name));
      samples_.add("remove_time", folder.clear().count, all_clients());
    }
    record(files, folder.abandoned());
    group_.barrier();  // the folder is not removed while a rank may still look at it
  }

 private:
  void take(const MetadataTaken& taken, const std::string& phase) {
    start_spread_s_ = std::max(start_spread_s_, taken.start_spread_s);
    std::vector<double> rates;
    double operations = 0, longest_s = 0;
    for (const auto& client : taken.clients) {
      operations += client.operations;
      longest_s = std::max(longest_s, client.time_s);
      rates.push_back(client.operations / client.time_s);
    }
    samples_.add("rate", operations / longest_s, all_clients(), phase);
    samples_.add("rate_slowest", std::ranges::min(rates), all_clients(), phase);
    const auto shares = shares_of_median(rates);
    for (std::size_t rank = 0; rank < taken.clients.size(); ++rank) {
      const auto& client = taken.clients[rank];
      const Subject subject{.kind = "group", .id = ranks_.names[rank]};
      samples_.add("client_rate", rates[rank], subject, phase);
      if (shares) samples_.add("client_share", (*shares)[rank], subject, phase);
      samples_.add("latency_p99", client.latency_p99, subject, phase);
      failures_[phase] += client.failures;
      wrong_[phase] += client.wrong;
      if (client.first_bad.empty() || group_.rank() != 0) continue;
      record_.note(fmt::format("{}: {} refused, {} wrong; the first: {}", ranks_.names[rank], client.failures,
                               client.wrong, client.first_bad));
    }
  }

  void record(std::uint64_t files, int abandoned) {
    record_ranks(ranks_, record_);
    record_.condition("start_spread", start_spread_s_);
    record_.condition("files_total", static_cast<std::int64_t>(files));
    if (group_.rank() != 0) return;
    samples_.record(record_);
    for (const auto& [phase, count] : failures_)
      record_.measurement("failures", static_cast<double>(count), all_clients(), {{"phase", phase}});
    for (const auto& [phase, count] : wrong_)
      record_.measurement("wrong_answers", static_cast<double>(count), all_clients(), {{"phase", phase}});
    record_.condition("abandoned_removed", std::int64_t{abandoned});
  }

  const Parameters& given_;
  Rendezvous& group_;
  Recorder& record_;
  StorageRanks ranks_ = {};
  PhaseSamples samples_;
  std::map<std::string, std::uint64_t> failures_, wrong_;  ///< by phase
  double start_spread_s_ = 0;
};

void measure(const Parameters& given, const Placement& placement, Recorder& record) {
  check(given, placement.world == 1 ? 2 : placement.world);
  if (placement.world == 1)
    throw Skip("one rank alone: this probe measures between nodes; use it with scope group or cluster");
  work_together(placement, {.exchange = kPatience},
                [&](Rendezvous& group) { MetadataRun(given, group, record).run(); });
}

}  // namespace
}  // namespace assay::cluster_storage

int main(int argc, char** argv) {
  return assay::probe_main(argc, argv, assay::cluster_storage::kSpec, assay::cluster_storage::measure);
}
