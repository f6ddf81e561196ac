// storage_run: checks the parameters, makes the phases of each repetition, and records their figures.
#include "workloads/storage/cluster/storage_run.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "workloads/storage/cluster/storage_phase.h"
#include "workloads/storage/shared/cold_read.h"
#include "workloads/storage/shared/run_folder.h"
#include "workloads/storage/shared/storage_ranks.h"

namespace assay::cluster_storage {
namespace {

constexpr std::uint64_t kLargestBlock = std::uint64_t{64} << 20;
constexpr std::int64_t kMostThreads = 256, kMostDepth = 1024, kMostRepetitions = 100;
constexpr Seconds kHangs = {
    120};  // a transfer that takes longer is an error: a failover of a metadata server takes less
constexpr double kLeastDuration_s = 0.1, kLongestDuration_s = 600;
constexpr double kLeastPatience_s = 600, kPatienceOfDuration = 10;  // IO500's slowest submission of 191 took 5.7 times

/// One run on one rank.
class StorageRun {
 public:
  StorageRun(const Parameters& given, Rendezvous& group, Recorder& record)
      : given_(given), group_(group), record_(record) {}

  void run() {
    settle();
    RunFolder folder(group_, given_.text("directory"), settings_.nonce);
    settings_.folder = folder.path();
    StorageGroup storage(group_, settings_);
    payload_ceiling_ = storage.payload_ceiling();
    for (std::int64_t repetition = 0; repetition < given_.count("repetitions"); ++repetition) {
      repeat(storage);
      samples_.add("remove_time", folder.clear().count, all_clients());
    }
    if (group_.rank() == 0) {
      samples_.record(record_);
      record_.measurement("mismatches", static_cast<double>(mismatches_), all_clients());
      record_.condition("abandoned_removed", std::int64_t{folder.abandoned()});
    }
    record_conditions();
    group_.barrier();  // the folder is not removed while a rank may still look at it
  }

 private:
  void settle();
  void repeat(StorageGroup& storage);
  void repeat_interference(StorageGroup& storage);
  [[nodiscard]] PhasePlan plan_of(Move move) const;
  [[nodiscard]] std::vector<std::uint64_t> by_reader(const StorageGroup& storage,
                                                     const std::vector<std::uint64_t>& written) const;
  void take(const PhaseTaken& taken, Move move);
  void take_client(const PhaseTaken& taken, std::size_t rank, const std::string& phase);
  void take_victims(const PhaseTaken& alone, const PhaseTaken& together, Move move);
  void take_evidence(const PhaseTaken& taken, Move move);
  void record_conditions();

  const Parameters& given_;
  Rendezvous& group_;
  Recorder& record_;
  StorageRanks ranks_ = {};
  StorageSettings settings_ = {};
  std::string buffered_because_;
  std::uint64_t most_operations_ = 0, next_set_ = 0;
  PhaseSamples samples_;
  std::uint64_t mismatches_ = 0;
  double payload_ceiling_ = 0, start_spread_s_ = 0;
  bool by_size_ = false;
  std::optional<ColdLedger> cold_;
  std::optional<RpcQueue> rpc_;
};

/// Facts agreed by all ranks before the first phase: names, direct I/O, nonce, room.
void StorageRun::settle() {
  demand_io_uring();
  const auto world = static_cast<std::uint64_t>(group_.world());
  const auto threads = static_cast<std::uint64_t>(given_.count("threads"));
  const std::uint64_t block = given_.bytes("block").count, size = given_.bytes("size").count;
  const std::uint64_t sets = given_.text("operation") == "write_read" ? 1 : 2;
  const std::uint64_t needed = world * size * sets;
  ranks_ = meet_on_storage(group_, given_, {.bytes = needed, .names = world * threads * sets});
  rpc_.emplace(given_.text("directory"));
  cold_.emplace(ranks_.on_other_nodes, given_.bytes("server_memory").count, static_cast<std::size_t>(group_.rank()));
  if (block % kDirectBlock != 0)
    buffered_because_ = fmt::format("transfers of {} B are no multiple of {} B", block, kDirectBlock);
  if (buffered_because_.empty()) buffered_because_ = ranks_.no_direct;
  settings_ = {
      .folder = "",
      .layout = {.shared = given_.text("pattern") == "shared_file", .block = block, .streams = world * threads},
      .stream = {.block = static_cast<std::size_t>(block),
                 .depth = static_cast<unsigned>(given_.count("depth")),
                 .direct = buffered_because_.empty(),
                 .deadline = kHangs},
      .threads = static_cast<std::size_t>(threads),
      .shift = static_cast<int>(given_.count("shift") % group_.world()),
      .read_share = static_cast<double>(given_.count("read_percent")) / 100,
      .nonce = ranks_.nonce};
  most_operations_ = size / threads / block;
}

/// Every rank, every stream from its beginning on as far as `size` allows, for `duration`, with wear-out.
PhasePlan StorageRun::plan_of(Move move) const {
  return {.move = move,
          .written_set = 0,
          .read_set = 0,
          .active = std::vector<bool>(ranks_.names.size(), true),
          .complete = true,
          .duration_s = given_.seconds("duration").count,
          .firsts = std::vector<std::uint64_t>(settings_.layout.streams, 0),
          .limits = std::vector<std::uint64_t>(settings_.layout.streams, most_operations_)};
}

/// The readable transfers of each stream, from those written.
std::vector<std::uint64_t> StorageRun::by_reader(const StorageGroup& storage,
                                                 const std::vector<std::uint64_t>& written) const {
  std::vector<std::uint64_t> limits;
  for (std::uint64_t stream = 0; stream < written.size(); ++stream) limits.push_back(written[storage.read_by(stream)]);
  return limits;
}

void StorageRun::repeat(StorageGroup& storage) {
  if (given_.text("operation") == "interference") return repeat_interference(storage);
  PhasePlan writing = plan_of(Move::write);
  writing.written_set = next_set_++;
  const PhaseTaken written = storage.run(writing);
  take(written, Move::write);
  const bool mixed = given_.text("operation") == "mixed";
  PhasePlan reading = plan_of(mixed ? Move::mixed : Move::read);
  reading.read_set = writing.written_set;
  reading.limits = by_reader(storage, written.reached());
  if (mixed) {
    reading.written_set = next_set_++;
    for (auto& limit : reading.limits) limit = mixed_operations(limit, most_operations_, settings_.read_share);
  } else {
    reading.duration_s = std::nullopt;  // all that was written is read once, and every byte compared
  }
  take(storage.run(reading), reading.move);
}

void StorageRun::repeat_interference(StorageGroup& storage) {
  PhasePlan writing = plan_of(Move::write);
  writing.complete = false;
  PhasePlan alone = writing;
  for (std::size_t rank = static_cast<std::size_t>(given_.count("victims")); rank < ranks_.names.size(); ++rank)
    alone.active[rank] = false;
  alone.written_set = next_set_++;
  writing.written_set = next_set_++;
  const PhaseTaken alone_written = storage.run(alone), written = storage.run(writing);
  take_victims(alone_written, written, Move::write);
  // The victims read the first half of the others' files, then all read the second: no byte is read twice.
  PhasePlan second = plan_of(Move::read);
  second.read_set = writing.written_set;
  second.duration_s = std::nullopt;
  second.limits = by_reader(storage, written.reached());
  PhasePlan first = second;
  first.active = alone.active;
  for (std::size_t stream = 0; stream < second.limits.size(); ++stream)
    first.limits[stream] = second.firsts[stream] = second.limits[stream] / 2;
  const PhaseTaken alone_read = storage.run(first), read = storage.run(second);
  take_victims(alone_read, read, Move::read);
}

void StorageRun::take(const PhaseTaken& taken, Move move) {
  const std::string phase(word_of(move));
  const auto at_stonewall = taken.at_stonewall();
  double bytes = 0, open_s = 0, sync_s = 0, close_s = 0;
  for (const double one : at_stonewall) bytes += one;
  for (const auto& client : taken.clients) {
    open_s = std::max(open_s, client.open_s);
    sync_s = std::max(sync_s, client.sync_s);
    close_s = std::max(close_s, client.close_s);
  }
  samples_.add("bandwidth", taken.bandwidth(), all_clients(), phase);
  samples_.add("bandwidth_stonewall", bytes / taken.stonewall_s, all_clients(), phase);
  samples_.add("skew", smallest_share(at_stonewall), all_clients(), phase);
  samples_.add("fairness", jain_index(at_stonewall), all_clients(), phase);
  samples_.add("open_time", open_s, all_clients(), phase);
  if (move != Move::read) samples_.add("sync_time", sync_s, all_clients(), phase);
  samples_.add("close_time", close_s, all_clients(), phase);
  const auto shares = shares_of_median(at_stonewall);
  for (std::size_t rank = 0; rank < ranks_.names.size(); ++rank) {
    take_client(taken, rank, phase);
    if (shares) samples_.add("client_share", (*shares)[rank], {.kind = "group", .id = ranks_.names[rank]}, phase);
  }
  take_evidence(taken, move);
}

void StorageRun::take_client(const PhaseTaken& taken, std::size_t rank, const std::string& phase) {
  const Subject subject{.kind = "group", .id = ranks_.names[rank]};
  const auto& client = taken.clients[rank];
  samples_.add("client_bandwidth", client.bytes_at_stonewall / taken.stonewall_s, subject, phase);
  samples_.add("client_time", client.time_s, subject, phase);
  samples_.add("latency_p99", client.latency_p99, subject, phase);
}

void StorageRun::take_victims(const PhaseTaken& alone, const PhaseTaken& together, Move move) {
  const auto victims = static_cast<std::size_t>(given_.count("victims"));
  const auto rate = [&](const PhaseTaken& taken) {
    double bytes = 0;
    for (std::size_t rank = 0; rank < victims; ++rank) bytes += taken.clients[rank].bytes_at_stonewall;
    return bytes / taken.stonewall_s;
  };
  const std::string phase(word_of(move));
  samples_.add("victim_alone", rate(alone), all_clients(), phase);
  samples_.add("victim_together", rate(together), all_clients(), phase);
  samples_.add("victim_kept", rate(together) / rate(alone), all_clients(), phase);
  take_evidence(alone, move);
  take_evidence(together, move);
}

/// Mismatches, and how well it is proved that the storage was read.
void StorageRun::take_evidence(const PhaseTaken& taken, Move move) {
  start_spread_s_ = std::max(start_spread_s_, taken.start_spread_s);
  if (move == Move::write) {
    by_size_ = by_size_ || taken.stonewall_s < given_.seconds("duration").count;
    return;
  }
  std::vector<ColdReader> readers;
  for (std::size_t rank = 0; rank < ranks_.names.size(); ++rank) {
    const auto& client = taken.clients[rank];
    readers.push_back(
        {.active = client.active, .bytes = client.bytes, .resident = client.resident, .wire = client.wire});
    mismatches_ += client.active ? client.mismatches : 0;
    if (client.active && client.mismatches > 0 && group_.rank() == 0)
      record_.note(
          fmt::format("{} read {} wrong B; the first: {}", ranks_.names[rank], client.mismatches, client.first_wrong));
  }
  cold_->take(readers);
}

void StorageRun::record_conditions() {
  record_ranks(ranks_, record_);
  record_.condition("direct_io", buffered_because_.empty());
  if (!buffered_because_.empty()) record_.condition("buffered_because", buffered_because_);
  record_.condition("engine", std::string("io_uring"));
  cold_->record(record_);
  rpc_->record(record_);
  record_.condition("start_spread", start_spread_s_);
  record_.condition("ended_by", std::string(by_size_ ? "size" : "duration"));
  record_.condition("payload_ceiling", payload_ceiling_);
}

}  // namespace

void check_storage(const Parameters& given, int world) {
  const auto block = given.bytes("block").count;
  if (block < 512 || block > kLargestBlock || block % 8 != 0)
    throw BadParameter(fmt::format("block: {} B is not a multiple of 8 B from 512 B to 64 MiB", block));
  const auto threads = static_cast<std::uint64_t>(given.count("threads", 1, kMostThreads));
  (void)given.count("depth", 1, kMostDepth);
  (void)given.count("repetitions", 1, kMostRepetitions);
  (void)given.count("read_percent", 1, 99);
  if (given.bytes("size").count < threads * block * 2)
    throw BadParameter(fmt::format("size: {} B are less than two transfers of {} B for each of {} threads",
                                   given.bytes("size").count, block, threads));
  const double duration_s = given.seconds("duration").count;
  if (duration_s < kLeastDuration_s || duration_s > kLongestDuration_s)
    throw BadParameter(fmt::format("duration: {:g} s is not from 100 ms to 10 min", duration_s));
  check_shift(given, world);
  if (given.text("operation") == "interference" && given.count("victims", 1, kMostRanks) >= world)
    throw BadParameter(fmt::format("victims: {} of {} ranks leave none that could disturb them; give 1 to {}",
                                   given.count("victims"), world, world - 1));
}

Seconds storage_patience(const Parameters& given) {
  return {std::max(kLeastPatience_s, kPatienceOfDuration * given.seconds("duration").count)};
}

void run_storage(const Parameters& given, Rendezvous& group, Recorder& record) {
  StorageRun(given, group, record).run();
}

}  // namespace assay::cluster_storage
