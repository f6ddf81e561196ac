// storage_durability: whether acknowledged writes of a shared storage survive its interruption.
#include <algorithm>
#include <array>
#include <exception>
#include <span>
#include <stdexcept>

#include <poll.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "probes/core/parameters.h"
#include "probes/core/probe.h"
#include "probes/core/recorder.h"
#include "probes/core/rendezvous.h"
#include "workloads/cluster_checkpoint/peer_memory.h"
#include "workloads/durability/durable_stream.h"
#include "workloads/storage/shared/common_spec.h"
#include "workloads/storage/shared/concurrent_work.h"
#include "workloads/storage/shared/run_folder.h"
#include "workloads/storage/shared/storage_ranks.h"

namespace assay::durability {
namespace {

using nlohmann::json;

constexpr std::int64_t kMostSlots = 1 << 16;
constexpr double kLongest_s = 3600;
constexpr int kLook_ms = 100;

/// Results of all streams of a rank together.
json seen_words(const std::vector<StreamOutcome>& outcomes) {
  json words = {{"refused", 0}, {"longest", 0.0}, {"refusal", ""}};
  std::uint64_t refused = 0;
  double longest_s = 0;
  std::optional<double> recovery_s;
  for (const auto& one : outcomes) {
    refused += one.refused;
    longest_s = std::max(longest_s, one.longest_s);
    if (one.recovery_s) recovery_s = std::max(recovery_s.value_or(0), *one.recovery_s);
    if (words.at("refusal").get<std::string>().empty()) words["refusal"] = one.first_refusal;
  }
  words["refused"] = refused;
  words["longest"] = longest_s;
  if (recovery_s) words["recovery"] = *recovery_s;
  return words;
}

json found_words(const std::map<DurableOperation, DurableTally>& tallies) {
  json words = json::object();
  for (const auto& [operation, tally] : tallies) {
    words[std::string(word_of(operation))] = {{"acknowledged", tally.acknowledged},
                                              {"lost", tally.lost},
                                              {"rolled_back", tally.rolled_back},
                                              {"torn", tally.torn},
                                              {"bad", tally.first_bad}};
  }
  return words;
}

DurableTally tally_in(const json& words) {
  const auto count = [&](const char* name) { return words.at(name).get<std::uint64_t>(); };
  return {.acknowledged = count("acknowledged"),
          .lost = count("lost"),
          .rolled_back = count("rolled_back"),
          .torn = count("torn"),
          .first_bad = words.at("bad").get<std::string>()};
}

/// A place and a generation; 0 ends a stream's ledger.
using LedgerEntry = std::array<std::uint64_t, 2>;

/// Takes the entries of one stream until its end.
Ledger keep_ledger(int socket, const std::atomic<bool>& abandoned) {
  Ledger ledger;
  std::atomic<std::uint64_t> counted = 0;
  while (true) {
    pollfd ready = {.fd = socket, .events = POLLIN, .revents = 0};
    // A stream is silent for as long as the storage is; the group is watched meanwhile.
    if (poll(&ready, 1, kLook_ms) == 0) {
      if (abandoned || stop_requested()) throw std::runtime_error("stopped while a ledger was kept");
      continue;
    }
    LedgerEntry entry = {};
    host::receive_all(socket, std::as_writable_bytes(std::span(entry)), abandoned, counted);
    const auto& [place, generation] = entry;
    if (generation == 0) return ledger;
    const auto item = unpacked(place);
    if (!item) throw std::runtime_error("what came for the ledger is no place");
    ledger[*item] = generation;
  }
}

Seconds in_range(const Parameters& given, const char* name) {
  const Seconds value = given.seconds(name);
  if (!(value.count > 0) || value.count > kLongest_s)
    throw BadParameter(fmt::format("{}: {:g} s is not above 0 and at most 1 h", name, value.count));
  return value;
}

/// The settings that the parameters name; folder and nonce are the run's. Throws BadParameter.
DurabilitySettings durability_settings(const Parameters& given) {
  return {.folder = "",
          .nonce = 0,
          .streams = static_cast<std::uint32_t>(given.count("streams", 1, kMostStreams)),
          .slots = static_cast<std::uint32_t>(given.count("slots", 1, kMostSlots)),
          .duration = in_range(given, "duration"),
          .stall = in_range(given, "stall"),
          .recovery = in_range(given, "recovery")};
}

/// One run on one rank.
class DurabilityRun {
 public:
  DurabilityRun(const Parameters& given, const Placement& placement, Rendezvous& group, Recorder& record)
      : given_(given), placement_(placement), group_(group), record_(record), settings_(durability_settings(given)) {}

  void run() {
    const auto world = static_cast<std::uint64_t>(group_.world());
    const std::uint64_t streams = world * settings_.streams;
    const std::uint64_t blocks = std::uint64_t{settings_.slots} + kMostRecords + std::uint64_t{2} * kDurableNames;
    const cluster_storage::StorageRanks ranks = cluster_storage::meet_on_storage(
        group_, given_, {.bytes = streams * blocks * kDurableBlock, .names = streams * (2 * kDurableNames + 2)});
    cluster_storage::RunFolder folder(group_, given_.text("directory"), ranks.nonce);
    settings_.folder = folder.path();
    settings_.nonce = ranks.nonce;
    const cluster_checkpoint::PeerStreams peers =
        cluster_checkpoint::open_peer_streams(placement_, group_, 1, settings_.streams);
    (void)cluster_storage::start_together(group_);
    const auto seen = cluster_storage::gather_words(group_, seen_words(write_and_keep(peers)));
    const auto found = cluster_storage::gather_words(group_, found_words(check()));
    cluster_storage::record_ranks(ranks, record_);
    const auto is_interrupted = [](const json& rank) { return rank.contains("recovery"); };
    record_.condition("interrupted", std::ranges::any_of(seen, is_interrupted));
    record_.condition("interrupted_clients", std::int64_t{std::ranges::count_if(seen, is_interrupted)});
    if (group_.rank() == 0) {
      record_seen(seen, ranks.names);
      record_found(found, ranks.names);
      record_.condition("abandoned_removed", std::int64_t{folder.abandoned()});
    }
    group_.barrier();  // the folder is not removed while a rank may still look at it
  }

 private:
  /// Half of the threads write and report to the next rank; the other half keep the ledger of the rank before.
  std::vector<StreamOutcome> write_and_keep(const cluster_checkpoint::PeerStreams& peers) {
    std::vector<StreamOutcome> outcomes(settings_.streams);
    ledgers_.resize(settings_.streams);
    std::atomic<bool> abandoned = false;
    std::exception_ptr first;  // the others fail only because this one did
    const auto work = [&](std::size_t thread) {
      try {
        const std::size_t number = thread % settings_.streams;
        if (thread < settings_.streams) {
          outcomes[number] = write(number, peers.out[number].number(), abandoned);
        } else {
          ledgers_[number] = keep_ledger(peers.in[number].number(), abandoned);
        }
      } catch (...) {
        if (!abandoned.exchange(true)) first = std::current_exception();
      }
    };
    cluster_storage::run_concurrently(
        2UL * settings_.streams, work, [&] { group_.check(); }, abandoned);
    if (first) std::rethrow_exception(first);
    return outcomes;
  }

  StreamOutcome write(std::size_t number, int socket, const std::atomic<bool>& abandoned) {
    const auto tell = [&](const DurableItem& item, std::uint64_t generation) {
      const LedgerEntry entry = {packed(item), generation};
      host::send_all(socket, std::as_bytes(std::span(entry)), abandoned);
    };
    DurableStream stream(settings_, static_cast<std::uint64_t>(group_.rank()), static_cast<std::uint32_t>(number));
    const StreamOutcome outcome = stream.run(tell, abandoned);
    tell({}, 0);
    return outcome;
  }

  /// Of the rank before, whose ledger this one kept.
  std::map<DurableOperation, DurableTally> check() {
    const int world = group_.world();
    const DurableWrite writer{.nonce = settings_.nonce,
                              .writer = static_cast<std::uint64_t>((group_.rank() + world - 1) % world),
                              .item = {},
                              .generation = 0};
    std::map<DurableOperation, DurableTally> tallies;
    for (const auto& ledger : ledgers_) check_ledger(ledger, settings_.folder, writer, settings_.recovery, tallies);
    return tallies;
  }

  void record_seen(const std::vector<json>& seen, const std::vector<std::string>& names) {
    double refused = 0, longest_s = 0;
    std::optional<double> recovery_s;
    for (std::size_t rank = 0; rank < seen.size(); ++rank) {
      refused += seen[rank].at("refused").get<double>();
      longest_s = std::max(longest_s, seen[rank].at("longest").get<double>());
      if (seen[rank].contains("recovery"))
        recovery_s = std::max(recovery_s.value_or(0), seen[rank].at("recovery").get<double>());
      const auto refusal = seen[rank].at("refusal").get<std::string>();
      if (!refusal.empty()) record_.note(fmt::format("{} was refused first: {}", names[rank], refusal));
    }
    record_.measurement("refused_calls", refused, cluster_storage::all_clients());
    record_.measurement("longest_write", longest_s, cluster_storage::all_clients());
    if (recovery_s) record_.measurement("recovery_time", *recovery_s, cluster_storage::all_clients());
  }

  void record_found(const std::vector<json>& found, const std::vector<std::string>& names) {
    std::map<std::string, DurableTally> all;
    for (const auto& known : words_of(DurableOperation{})) all[std::string(known.text)];
    for (std::size_t rank = 0; rank < found.size(); ++rank) {
      const std::size_t writer = (rank + found.size() - 1) % found.size();
      for (const auto& [operation, words] : found[rank].items()) {
        const DurableTally tally = tally_in(words);
        all[operation].add(tally);
        if (!tally.first_bad.empty())
          record_.note(fmt::format("{}: {} read by {}: {}", operation, names[writer], names[rank], tally.first_bad));
      }
    }
    for (const auto& [operation, tally] : all) {
      const auto add = [&](const char* metric, std::uint64_t value) {
        record_.measurement(metric, static_cast<double>(value), cluster_storage::all_clients(),
                            {{"operation", operation}});
      };
      add("acknowledged", tally.acknowledged);
      add("lost_writes", tally.lost);
      add("rolled_back_writes", tally.rolled_back);
      add("torn_writes", tally.torn);
    }
  }

  const Parameters& given_;
  const Placement& placement_;
  Rendezvous& group_;
  Recorder& record_;
  DurabilitySettings settings_;
  std::vector<Ledger> ledgers_;  ///< of the rank before, by stream
};

using namespace cluster_storage::common_spec;

constexpr double kMargin_s = 600;  // an exchange waits for the slowest rank to write, recover and read again

constexpr Parameter kParameters[] = {
    kDirectory,
    parameter("duration", "s", "2min",
              "of writing, at most 1 h: the fault must come within it; a stream ends when it has come through one",
              "1s"),
    parameter("streams", "1", "4", "threads of each node that write, each with files of its own, at most 256", "2"),
    parameter("slots", "1", "1024", "blocks of 4 KiB that each stream overwrites in turn, at most 65536", "64"),
    parameter("stall", "s", "1s", "a write that takes longer counts as an interruption, as one that is refused does"),
    parameter("recovery", "s", "5min", "a storage that refuses for longer has not come back, which is an error"),
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
    kEmulatedDrive,
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
                [&](Rendezvous& group) { DurabilityRun(given, placement, group, record).run(); });
}

}  // namespace
}  // namespace assay::durability

int main(int argc, char** argv) {
  return assay::probe_main(argc, argv, assay::durability::kSpec, assay::durability::measure);
}
