// storage_ingest: whether a storage that several nodes share feeds their accelerators as fast as these compute.
#include <algorithm>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "probes/core/probe.h"
#include "probes/core/recorder.h"
#include "probes/core/rendezvous.h"
#include "workloads/storage/ingest/ingest_phase.h"
#include "workloads/storage/ingest/ingest_plan.h"
#include "workloads/storage/shared/cold_read.h"
#include "workloads/storage/shared/common_spec.h"
#include "workloads/storage/shared/direct_file.h"
#include "workloads/storage/shared/run_folder.h"
#include "workloads/storage/shared/storage_ranks.h"

namespace assay::cluster_storage {
namespace {

using namespace common_spec;

constexpr std::int64_t kMostSteps = 100'000, kMostAccelerators = 64, kMostReaders = 256, kMostAhead = 64;
constexpr std::int64_t kMostRepetitions = 100, kMostBatch = 100'000;
constexpr std::uint64_t kLargestRecord = std::uint64_t{4} << 30;
constexpr double kLongestCompute_s = 60;
constexpr Seconds kPatience = {1800};  // writing a data set takes slow clients long; one that is gone is not waited for

constexpr Parameter kParameters[] = {
    kDirectory,
    choice("model", "unet3d", "unet3d retinanet",
           "whose samples and compute time: unet3d, 146.6 MB (deviation 68.3 MB), 7 a step of 162 ms; retinanet, "
           "322,957 B, 24 a step of 47.55 ms"),
    parameter("record", "B", "0B",
              "mean size of a sample in place of the model's, whose deviation is scaled alike; 0: the model's",
              "64KiB"),
    parameter("batch", "1", "0", "samples of a step in place of the model's; 0: the model's", "4"),
    parameter("compute", "s", "0s", "compute time of a step in place of the model's; 0: the model's", "20ms"),
    parameter("accelerators", "1", "8", "of each rank, at most 64", "2"),
    parameter("steps", "1", "20", "of each accelerator, from 2 on", "6"),
    parameter("readers", "1", "8", "threads that read for an accelerator", "2"),
    parameter("ahead", "1", "2", "steps that are read before they are due, at most 64"),
    parameter("repetitions", "1", "2", "data sets that are written and read one after the other, from 1 to 100", "1"),
    kShift,
    kClientsCold,
    kServerMemory,
    kState,
};
constexpr Metric kMetrics[] = {
    share("accelerator_utilisation",
          "compute time over all time from the end of the first step to the end of the last, of the accelerator "
          "of all ranks that was fed worst",
          Recorded::rank_0),
    share("client_utilisation", "the same of the accelerator of one rank that was fed worst", Recorded::rank_0),
    lower("starved_steps", "1", "steps of all accelerators but their first that waited for samples for more than 1 ms",
          Recorded::rank_0),
    higher("samples_rate", "1/s",
           "samples of all ranks over the time from the common start until the last step of all was over",
           Recorded::rank_0),
    higher("bandwidth", "B/s", "bytes of these samples over the same time", Recorded::rank_0),
    lower("write_time", "s", "of the slowest rank to write its samples with fsync", Recorded::rank_0),
    kRemoveTime,
    fault("mismatches", "bytes of samples, of all ranks and repetitions, that differ from those written or are missing",
          Recorded::rank_0),
};
constexpr ConditionSpec kConditions[] = {
    kFilesystem,
    kMountSource,
    kMountOptions,
    {.name = "direct_io", .meaning = "Whether all samples were read with O_DIRECT."},
    {.name = "nonce", .meaning = "Key of this run's payload, sizes and order; drawn by rank 0."},
    kClientsTotal,
    kReadByOtherNode,
    {.name = "cold_rung",
     .meaning =
         "How well it is proved that reads came from the storage, the lowest of all ranks and repetitions: 0 nothing, "
         "or pages were in a page cache; 1 the readers' page caches were empty (mincore); 2 the wire or the device "
         "moved the payload; 3 another machine read than wrote; 4 that, and more than server_memory."},
    if_reported("resident_pages",
                "Most pages of the samples in this rank's page cache before it read, after it was asked to drop them; "
                "recorded where the file system can be asked."),
    if_reported("wire_share",
                "Least payload received by this node while it read, over its payload: on a mount by the kernel's NFS "
                "client the bytes of READ replies (mountstats), else the bytes from its network ports or its devices; "
                "recorded where the kernel counts."),
    {.name = "set_over_client_memory",
     .meaning = "Payload that this rank read in one repetition over the memory of its machine."},
    kSetOverServerMemory,
    kPreloaded,
    {.name = "record_mean", .meaning = "Mean size in B of the samples in force."},
    {.name = "compute_time", .meaning = "Compute time in s of one step in force."},
    {.name = "accelerators_total", .meaning = "Accelerators of all ranks."},
    kAbandonedRemoved,
    kRpcBacklog,
    kRpcSlots,
    kDeviceClass,
    kEmulatedDrive,
};
constexpr SpaceRule kSpace[] = {
    {.shared = true,
     .when = "model=unet3d",
     .held = "ranks accelerators steps batch|7 record|146600628",
     .times = "repetitions"},
    {.shared = true, .held = "ranks accelerators steps batch|24 record|322957", .times = "repetitions"},
};
constexpr ProbeSpec kSpec{
    .name = "storage_ingest",
    .revision = 2,
    .scope = Scope::group,
    .measures =
        "Whether a storage that several nodes share feeds as many accelerators as they have with the samples of a "
        "training job: the share of time that the worst fed one computes, every byte verified.",
    .method =
        "Every rank writes a file for each sample, with fsync, of payload and sizes that no other run had: sizes are "
        "spread evenly about the mean so that their deviation is the model's, in words of 8 B. Then every rank drops "
        "the files of the rank `shift` before it from its page cache, counts by mincore the pages left, and after a "
        "common barrier feeds its accelerators from them, each sample once, in an order drawn from the nonce, which no "
        "storage can know. An accelerator is a sleep for the compute time of a step once all samples of the step have "
        "been read and compared; its readers work at most `ahead` steps before it, in pieces of 1 MiB, with O_DIRECT "
        "where all ranks can. As in DLIO the first step is left out: utilisation is compute time over compute time and "
        "waiting. The comparing is done by the readers and is in their time, which a loader's decoding would be, too. "
        "The folder of the run is removed at its end, also after a failure.",
    .source =
        "MLPerf Storage Rules (mlcommons/storage at 0366ccf) and its configurations unet3d_b200 and retinanet_b200. "
        "Their data set is 500 steps and five times the memory of all hosts at least; this one is as large as `steps` "
        "makes it, and set_over_client_memory says how large that is.",
    .needs = "Two or more nodes with one shared file system that meet on the port of the rendezvous.",
    .typical = {600},
    .deadline = {3600},
    .parameters = kParameters,
    .metrics = kMetrics,
    .conditions = kConditions,
    .space = kSpace,
};

/// The parameter, or the model's figure if it is 0.
double in_force(double given, double of_model) { return given > 0 ? given : of_model; }

void check(const Parameters& given, int world) {
  (void)given.count("accelerators", 1, kMostAccelerators);
  (void)given.count("readers", 1, kMostReaders);
  (void)given.count("ahead", 1, kMostAhead);
  (void)given.count("repetitions", 1, kMostRepetitions);
  if (given.count("steps", 1, kMostSteps) < 2)
    throw BadParameter("steps: of 1 step nothing is left, since the first does not count; give at least 2");
  (void)given.count("batch", 0, kMostBatch);
  const auto record = given.bytes("record").count;
  if (record > kLargestRecord || (record > 0 && record < kDirectBlock))
    throw BadParameter(fmt::format("record: {} B is neither 0 nor from 4 KiB to 4 GiB", record));
  if (given.seconds("compute").count > kLongestCompute_s)
    throw BadParameter(fmt::format("compute: {:g} s is more than a minute", given.seconds("compute").count));
  check_shift(given, world);
}

IngestSettings settings_of(const Parameters& given, int world) {
  const IngestModel& model = ingest_model(given.text("model"));
  const double record = in_force(static_cast<double>(given.bytes("record").count), model.record);
  return {.folder = "",
          .record = record,
          .deviation = model.deviation * record / model.record,
          .batch = given.count("batch") > 0 ? static_cast<std::uint64_t>(given.count("batch")) : model.batch,
          .steps = static_cast<std::uint64_t>(given.count("steps")),
          .compute_s = in_force(given.seconds("compute").count, model.compute_s),
          .accelerators = static_cast<std::size_t>(given.count("accelerators")),
          .readers = static_cast<std::size_t>(given.count("readers")),
          .ahead = static_cast<std::uint64_t>(given.count("ahead")),
          .direct = false,
          .shift = static_cast<int>(given.count("shift") % world),
          .nonce = 0};
}

/// One run on one rank.
class IngestRun {
 public:
  IngestRun(const Parameters& given, Rendezvous& group, Recorder& record)
      : given_(given), group_(group), record_(record) {}

  void run() {
    const auto world = static_cast<std::uint64_t>(group_.world());
    IngestSettings settings = settings_of(given_, group_.world());
    const std::uint64_t samples = world * settings.samples();
    const double bytes = static_cast<double>(samples) * (settings.record + kDirectBlock);
    ranks_ = meet_on_storage(group_, given_, {.bytes = static_cast<std::uint64_t>(bytes), .names = samples});
    rpc_.emplace(given_.text("directory"));
    cold_.emplace(ranks_.on_other_nodes, given_.bytes("server_memory").count, static_cast<std::size_t>(group_.rank()));
    RunFolder folder(group_, given_.text("directory"), ranks_.nonce);
    settings.folder = folder.path();
    settings.nonce = ranks_.nonce;
    settings.direct = ranks_.no_direct.empty();
    IngestGroup storage(group_, settings);
    for (std::int64_t set = 0; set < given_.count("repetitions"); ++set) {
      const double wrote_s = storage.write(static_cast<std::uint64_t>(set)).count;
      double longest_s = 0;
      for (const auto& words : group_.all_gather(fmt::format("{:.9f}", wrote_s)))
        longest_s = std::max(longest_s, std::stod(words));
      samples_.add("write_time", longest_s, all_clients());
      take(storage.feed(static_cast<std::uint64_t>(set)));
      samples_.add("remove_time", folder.clear().count, all_clients());
    }
    if (group_.rank() == 0) {
      samples_.record(record_);
      record_.measurement("mismatches", static_cast<double>(mismatches_), all_clients());
      record_.condition("abandoned_removed", std::int64_t{folder.abandoned()});
    }
    record_conditions(settings);
    group_.barrier();  // the folder is not removed while a rank may still look at it
  }

 private:
  void take(const std::vector<IngestClient>& clients) {
    std::vector<ColdReader> readers;
    double worst = 1, starved = 0, longest_s = 0, samples = 0, bytes = 0;
    for (std::size_t rank = 0; rank < clients.size(); ++rank) {
      const auto& client = clients[rank];
      readers.push_back(client.cold);
      worst = std::min(worst, client.utilisation);
      starved += client.starved;
      longest_s = std::max(longest_s, client.time_s);
      samples += client.samples;
      bytes += client.cold.bytes;
      mismatches_ += client.mismatches;
      samples_.add("client_utilisation", client.utilisation, {.kind = "group", .id = ranks_.names[rank]});
      if (client.mismatches == 0 || group_.rank() != 0) continue;
      record_.note(
          fmt::format("{} read {} wrong B; the first: {}", ranks_.names[rank], client.mismatches, client.first_wrong));
    }
    samples_.add("accelerator_utilisation", worst, all_clients());
    samples_.add("starved_steps", starved, all_clients());
    samples_.add("samples_rate", samples / longest_s, all_clients());
    samples_.add("bandwidth", bytes / longest_s, all_clients());
    cold_->take(readers);
  }

  void record_conditions(const IngestSettings& settings) {
    record_ranks(ranks_, record_);
    record_.condition("direct_io", settings.direct);
    cold_->record(record_);
    rpc_->record(record_);
    record_.condition("record_mean", settings.record);
    record_.condition("compute_time", settings.compute_s);
    record_.condition("accelerators_total", static_cast<std::int64_t>(ranks_.names.size() * settings.accelerators));
  }

  const Parameters& given_;
  Rendezvous& group_;
  Recorder& record_;
  StorageRanks ranks_ = {};
  std::optional<ColdLedger> cold_;
  std::optional<RpcQueue> rpc_;
  PhaseSamples samples_;
  std::uint64_t mismatches_ = 0;
};

void measure(const Parameters& given, const Placement& placement, Recorder& record) {
  check(given, placement.world == 1 ? 2 : placement.world);
  if (placement.world == 1)
    throw Skip("one rank alone: this probe measures between nodes; use it with scope group or cluster");
  work_together(placement, {.exchange = kPatience}, [&](Rendezvous& group) { IngestRun(given, group, record).run(); });
}

}  // namespace
}  // namespace assay::cluster_storage

int main(int argc, char** argv) {
  return assay::probe_main(argc, argv, assay::cluster_storage::kSpec, assay::cluster_storage::measure);
}
