// checkpoint: saves and restores a deterministic checkpoint as a training job would, and checks every byte.
#include <algorithm>
#include <filesystem>
#include <functional>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "probes/core/filesystem_facts.h"
#include "probes/core/host_facts.h"
#include "probes/core/own_folder.h"
#include "probes/core/probe.h"
#include "probes/core/recorder.h"
#include "workloads/storage/shared/concurrent_work.h"
#include "workloads/storage/shared/shard.h"

namespace assay::cluster_storage {
namespace {

constexpr Parameter kParameters[] = {
    parameter("directory", "", ".", "directory on the filesystem to measure"),
    parameter("size", "B", "512MiB", "payload of all ranks together", "128MiB"),
    parameter("ranks", "1", "2", "writer threads, each with a shard of its own"),
    parameter("chunk", "B", "4MiB", "bytes of one I/O, a multiple of 4 KiB from 4 MiB to 64 MiB"),
    parameter("queue_depth", "1", "8", "I/Os in flight of each rank, at most 1024"),
    parameter("repetitions", "1", "10", "checkpoints saved and restored, after one as warm-up"),
};
constexpr Metric kMetrics[] = {
    lower("time_to_durable", "s", "from the common start of all ranks until every shard and its name are durable"),
    lower("time_to_resume", "s", "from the common start of all ranks until every shard is read and verified"),
    higher("write_bandwidth", "B/s", "payload of all ranks over time_to_durable"),
    higher("restore_bandwidth", "B/s",
           "payload of all ranks over the longest rank's reading time, verification not counted"),
    higher("rank_write_bandwidth", "B/s", "payload of one rank over its own time to fsync and rename"),
    higher("rank_restore_bandwidth", "B/s", "payload of one rank over its own reading time"),
    higher("raw_read_bandwidth", "B/s",
           "payload of all ranks over the longest rank's time to read the same files without verification"),
    higher("restore_efficiency", "1", "restore_bandwidth over raw_read_bandwidth of the same repetition"),
    fault("mismatches",
          "payload bytes, of all repetitions, that differ from the payload written; 1 more for each wrong checksum, a "
          "whole shard for each wrong footer"),
};
constexpr ConditionSpec kConditions[] = {
    {.name = "filesystem", .meaning = "type of the filesystem"},
    {.name = "device", .meaning = "number and name of the block device, or the mount's source"},
    if_present("rotational", "whether the device reports that it is rotational, recorded if there is a block device"),
    {.name = "direct_io",
     .meaning = "true when every file was open with O_DIRECT, no page of them was in the page cache, and the block "
                "device (if there is one) moved at least the payload"},
    {.name = "resident_pages",
     .meaning = "most pages of the shards in the page cache, counted after each save and after each restore"},
    {.name = "ranks_total", .meaning = "ranks that saved and restored at once"},
    {.name = "engine", .meaning = "how I/O is done"},
    {.name = "checksum", .meaning = "checksum of each shard"},
    {.name = "nonce", .meaning = "key of this run's payload, besides rank and step"},
    kDeviceClass,
    kEmulatedDrive,
};
constexpr SpaceRule kSpace[] = {
    {.held = "size", .times = "repetitions+1"},
};
constexpr ProbeSpec kSpec{
    .name = "checkpoint",
    .revision = 3,
    .measures =
        "Time and bandwidth to save a checkpoint durably and to restore it with a cold cache, every byte verified.",
    .method =
        "Each rank is a thread that holds its payload in memory: splitmix64 in counter form, keyed by a nonce of the "
        "run, rank and step, made before the clock starts; memory asks for transparent huge pages and is touched "
        "before, too. Save: all ranks start together; each makes a temporary file, allocates it, writes it in chunks "
        "with O_DIRECT through io_uring while it takes the XXH64 of the chunks in flight, writes a footer, fsyncs and "
        "renames; when all have, the directory is fsynced and time_to_durable ends. Then the cache is dropped "
        "(posix_fadvise DONTNEED) and mincore counts the pages left. Restore: all ranks start together, open, read "
        "payload and footer with O_DIRECT into memory that was overwritten before; the reading time ends there. "
        "Verification follows at once: every byte against the payload made anew, and the checksum; time_to_resume ends "
        "when all ranks are done, so it counts reading and verifying. The raw read of the same files, same chunks and "
        "depth, into a ring of buffers comes before the restore in one repetition and after it in the next. The first "
        "repetition is warm-up.",
    .source = "mlcommons/storage Rules.md v3 (checkpointing): fsync counted, longest rank, ten saves and restores.",
    .needs = "A filesystem that does direct I/O, and a kernel that permits io_uring.",
    .typical = {20},
    .deadline = {900},
    .parameters = kParameters,
    .metrics = kMetrics,
    .conditions = kConditions,
    .space = kSpace};

constexpr std::int64_t kMebi = 1 << 20;
constexpr std::int64_t kChunkMin = 4 * kMebi, kChunkMax = 64 * kMebi;
constexpr std::int64_t kRanksMax = 1024, kDepthMax = 1024;  // beyond both no node gains anything

/// Measurements of one repetition.
struct Repetition {
  double durable_s = 0, resume_s = 0, raw_s = 0;
  std::vector<double> write_s, restore_s;  // by rank
  std::uint64_t mismatches = 0;
  std::uint64_t resident = 0;
};

/// All ranks with their memory; step by step through checkpoints in one directory.
class Job {
 public:
  Job(std::string directory, std::size_t ranks, std::size_t shard, const ChunkPlan& plan, std::uint64_t nonce)
      : directory_(std::move(directory)), shard_(shard), plan_(plan), nonce_(nonce), footers_(ranks) {
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      payloads_.emplace_back(shard);
      rings_.emplace_back(plan.chunk * plan.depth);
    }
  }

  Repetition repeat(std::uint64_t step) {
    Repetition now;
    const std::string at = fmt::format("{}/step-{}", directory_, step);
    std::filesystem::create_directory(at);
    save(at, step, now);
    now.resident = cool(at);
    const bool raw_first = step % 2 == 0;
    if (raw_first) now.raw_s = read_raw(at);
    restore(at, step, now);
    if (!raw_first) now.raw_s = read_raw(at);
    now.resident = std::max(now.resident, cool(at));
    std::filesystem::remove_all(at);
    return now;
  }

 private:
  [[nodiscard]] std::size_t ranks() const { return payloads_.size(); }
  [[nodiscard]] PayloadKey key_of(std::size_t rank, std::uint64_t step) const { return {rank, step, nonce_}; }

  void save(const std::string& at, std::uint64_t step, Repetition& now) {
    run_concurrently(ranks(), [&](std::size_t rank) { fill_payload(key_of(rank, step), 0, payloads_[rank].bytes()); });
    const auto begin = PhaseClock::now();
    now.write_s = run_concurrently(
        ranks(), [&](std::size_t rank) { save_shard(at, key_of(rank, step), payloads_[rank].bytes(), plan_); });
    sync_directory(at);
    now.durable_s = passed_since(begin);
  }

  void restore(const std::string& at, std::uint64_t step, Repetition& now) {
    // Remains of the payload in memory must not pass for data read.
    run_concurrently(ranks(), [&](std::size_t rank) { std::ranges::fill(payloads_[rank].bytes(), std::byte{0}); });
    std::vector<std::uint64_t> wrong(ranks());
    const auto begin = PhaseClock::now();
    now.restore_s = run_concurrently(ranks(), [&](std::size_t rank) {
      const auto footer = load_shard(at, key_of(rank, step), payloads_[rank].bytes(), plan_);
      footers_[rank] = footer ? std::optional(*footer) : std::nullopt;
    });
    run_concurrently(ranks(), [&](std::size_t rank) {
      wrong[rank] = footers_[rank] ? shard_mismatches(*footers_[rank], payloads_[rank].bytes()) : shard_;
    });
    now.resume_s = passed_since(begin);
    for (const auto count : wrong) now.mismatches += count;
  }

  double read_raw(const std::string& at) {
    const auto times = run_concurrently(ranks(), [&](std::size_t rank) {
      auto file = DirectFile::open_to_read(at + "/" + shard_name(rank), plan_);
      file.read_and_forget(shard_, rings_[rank].bytes());
    });
    return std::ranges::max(times);
  }

  /// Drops the shards from the page cache; pages that stayed.
  [[nodiscard]] std::uint64_t cool(const std::string& at) const {
    std::uint64_t resident = 0;
    for (std::size_t rank = 0; rank < ranks(); ++rank) {
      const std::string path = at + "/" + shard_name(rank);
      drop_pages(path);
      resident += resident_pages(path);
    }
    return resident;
  }

  std::string directory_;
  std::size_t shard_;
  ChunkPlan plan_;
  std::uint64_t nonce_;
  std::vector<DirectMemory> payloads_, rings_;
  std::vector<std::optional<ShardFooter>> footers_;
};

/// Payload of one rank: an equal share, cut to whole blocks.
std::size_t shard_size(const Parameters& given, std::size_t ranks) {
  const std::size_t shard = static_cast<std::size_t>(given.bytes("size").count) / ranks / kDirectBlock * kDirectBlock;
  if (shard == 0) throw BadParameter(fmt::format("size: less than {} B for each of {} ranks", kDirectBlock, ranks));
  return shard;
}

void record_results(Recorder& record, const std::vector<Repetition>& all, double shard) {
  const std::size_t ranks = all.front().write_s.size();
  const double whole = shard * static_cast<double>(ranks);
  const auto add = [&](std::string_view metric, const std::function<double(const Repetition&)>& value,
                       const Subject& subject = {}) {
    Sampling sampling{.samples = {}, .warmup = {value(all.front())}, .stopped = "fixed"};
    for (std::size_t i = 1; i < all.size(); ++i) sampling.samples.push_back(value(all[i]));
    record.measurement(metric, sampling, subject);
  };
  const auto restore_s = [](const Repetition& r) { return std::ranges::max(r.restore_s); };
  add("time_to_durable", [](const Repetition& r) { return r.durable_s; });
  add("time_to_resume", [](const Repetition& r) { return r.resume_s; });
  add("write_bandwidth", [&](const Repetition& r) { return whole / r.durable_s; });
  add("restore_bandwidth", [&](const Repetition& r) { return whole / restore_s(r); });
  add("raw_read_bandwidth", [&](const Repetition& r) { return whole / r.raw_s; });
  add("restore_efficiency", [&](const Repetition& r) { return r.raw_s / restore_s(r); });
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const Subject subject{.kind = "rank", .id = std::to_string(rank)};
    add(
        "rank_write_bandwidth", [&](const Repetition& r) { return shard / r.write_s[rank]; }, subject);
    add(
        "rank_restore_bandwidth", [&](const Repetition& r) { return shard / r.restore_s[rank]; }, subject);
  }
  std::uint64_t mismatches = 0;
  for (const auto& repetition : all) mismatches += repetition.mismatches;
  record.measurement("mismatches", static_cast<double>(mismatches));
}

void measure(const Parameters& given, Recorder& record) {
  const std::size_t ranks = static_cast<std::size_t>(given.count("ranks", 1, kRanksMax));
  const std::size_t repetitions = static_cast<std::size_t>(given.count("repetitions", 1, 1000));
  const auto chunk = static_cast<std::int64_t>(given.bytes("chunk").count);
  if (chunk < kChunkMin || chunk > kChunkMax || chunk % static_cast<std::int64_t>(kDirectBlock) != 0) {
    throw BadParameter("chunk: must be a multiple of 4 KiB from 4 MiB to 64 MiB");
  }
  const std::size_t shard = shard_size(given, ranks);
  const ChunkPlan plan{.chunk = static_cast<std::size_t>(chunk),
                       .depth = static_cast<unsigned>(given.count("queue_depth", 1, kDepthMax))};

  demand_io_uring();
  const auto facts = filesystem_facts(given.text("directory"));
  demand_storage(facts, given.text("directory"), {ranks * (shard + kDirectBlock)});
  const std::uint64_t memory = ranks * (shard + plan.chunk * plan.depth);
  if (memory > total_memory().count / 2) {  // the other half is the operating system's and other probes'
    throw Skip(fmt::format("{} B of memory are needed, more than half of the memory of this machine", memory));
  }
  const OwnFolder scratch(given.text("directory"));
  const std::uint64_t nonce = fresh_payload_nonce();
  Job job(scratch.path(), ranks, shard, plan, nonce);
  const auto before = device_traffic();
  std::vector<Repetition> all;
  for (std::uint64_t step = 0; step <= repetitions; ++step) {
    all.push_back(job.repeat(step));
    if (stop_requested()) throw std::runtime_error(fmt::format("stopped by a signal after {} repetitions", step + 1));
  }
  const auto after = device_traffic();
  record_results(record, all, static_cast<double>(shard));

  std::uint64_t resident = 0;
  for (const auto& repetition : all) resident = std::max(resident, repetition.resident);
  const std::uint64_t written = ranks * shard * all.size();  // and twice that is read: the restore and the raw read
  const bool moved = !facts.block_device || !before || !after ||
                     (after->written.count - before->written.count >= written &&
                      after->read.count - before->read.count >= 2 * written);
  record_filesystem(facts, record);
  record.condition("device", facts.device);
  if (facts.rotational) record.condition("rotational", *facts.rotational);
  record.condition("direct_io", resident == 0 && moved);
  record.condition("resident_pages", static_cast<std::int64_t>(resident));
  record.condition("ranks_total", static_cast<std::int64_t>(ranks));
  record.condition("engine", std::string("io_uring"));
  record.condition("checksum", std::string("xxh64"));
  record.condition("nonce", fmt::format("{:016x}", nonce));
}

}  // namespace
}  // namespace assay::cluster_storage

int main(int argc, char** argv) {
  return assay::probe_main(argc, argv, assay::cluster_storage::kSpec, assay::cluster_storage::measure);
}
