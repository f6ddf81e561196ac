// checkpoint_run: turns measurements of all ranks into figures of the whole cluster and of each node.
#include "workloads/cluster_checkpoint/checkpoint_run.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "probes/core/host_facts.h"
#include "workloads/storage/shared/run_folder.h"
#include "workloads/storage/shared/storage_ranks.h"

namespace assay::cluster_checkpoint {
namespace {

using nlohmann::json;

constexpr std::int64_t kMostRepetitions = 1000, kMostThreads = 256, kMostDepth = 1024;
constexpr std::int64_t kLargestDivisor = 1'000'000'000;
constexpr std::uint64_t kChunkMin = 1 << 20, kChunkMax = 64 << 20;
constexpr double kLongestWait_s = 300;

void put(json& words, const char* name, const std::optional<double>& value) {
  if (value) words[name] = *value;
}

json save_words(const TierSave& save) {
  json words = {{"bytes", save.bytes}, {"stall", save.stall_s}};
  put(words, "peer", save.peer_s);
  put(words, "durable", save.durable_s);
  put(words, "visible", save.visible_s);
  return words;
}

json restore_words(const TierRestore& restore) {
  json words = {{"bytes", restore.bytes},        {"read", restore.read_s},         {"resume", restore.resume_s},
                {"wrong", restore.mismatches},   {"fallbacks", restore.fallbacks}, {"where", restore.first_wrong},
                {"active", restore.cold.active}, {"cold", restore.cold.bytes}};
  if (restore.cold.resident) words["resident"] = *restore.cold.resident;
  put(words, "wire", restore.cold.wire);
  put(words, "raw", restore.raw_s);
  return words;
}

std::optional<double> figure(const json& words, const char* name) {
  const auto found = words.find(name);
  return found == words.end() ? std::nullopt : std::optional(found->get<double>());
}

/// The largest of all ranks; nothing if one has none.
std::optional<double> longest(const std::vector<json>& ranks, const char* name) {
  double most = 0;
  for (const auto& rank : ranks) {
    const auto value = figure(rank, name);
    if (!value) return std::nullopt;
    most = std::max(most, *value);
  }
  return most;
}

double total(const std::vector<json>& ranks, const char* name) {
  double sum = 0;
  for (const auto& rank : ranks) sum += rank.at(name).get<double>();
  return sum;
}

std::optional<double> rate(double bytes, const std::optional<double>& time_s) {
  return time_s && *time_s > 0 && bytes > 0 ? std::optional(bytes / *time_s) : std::nullopt;
}

/// One run on one rank.
class CheckpointRun {
 public:
  CheckpointRun(const Parameters& given, const Placement& placement, Rendezvous& group, Recorder& record)
      : given_(given),
        placement_(placement),
        group_(group),
        record_(record),
        settings_(tier_settings(given, group.world())),
        identity_(checkpoint_identity(settings_.model, settings_.divisor)) {}

  void run() {
    cluster_storage::demand_io_uring();
    meet();
    cluster_storage::RunFolder folder(group_, given_.text("directory"), ranks_.nonce);
    settings_.shared = folder.path();
    settings_.nonce = ranks_.nonce;
    std::optional<OwnFolder> local;
    if (settings_.has(Tier::local)) {
      // Ranks of a rehearsal share a directory: each has a folder of its own.
      local.emplace(given_.text("local_directory"), ranks_.nonce + 1 + static_cast<std::uint64_t>(group_.rank()));
      settings_.local = local->path();
    }
    CheckpointTiers tiers(placement_, group_, settings_);
    for (std::int64_t step = 0; step < given_.count("repetitions"); ++step) {
      const auto number = static_cast<std::uint64_t>(step);
      take_save(cluster_storage::gather_words(group_, save_words(tiers.save(number))));
      const TierRestore restored = tiers.restore(number);
      for (const auto& [tier, shards] : restored.served) served_[tier] += shards;
      take_restore(cluster_storage::gather_words(group_, restore_words(restored)));
      tiers.clear_local(number);
      add("remove_time", folder.clear().count);
    }
    if (const auto& peers = tiers.peers()) {
      record_.condition("peer_transport", peers->transport());
      if (!peers->port().empty()) record_.condition("peer_port", peers->port());
    }
    if (group_.rank() == 0) {
      samples_.record(record_);
      const Values at = {{"checkpoint", identity_}};
      record_.measurement("mismatches", mismatches_, cluster_storage::all_clients(), at);
      record_.measurement("fallbacks", fallbacks_, cluster_storage::all_clients(), at);
      record_.condition("abandoned_removed", std::int64_t{folder.abandoned()});
    }
    record_conditions();
    group_.barrier();  // the folder is not removed while a rank may still look at it
  }

 private:
  void meet() {
    const auto world = static_cast<std::uint64_t>(group_.world());
    for (std::uint64_t rank = 0; rank < world; ++rank) {
      const auto shards = checkpoint_shards(settings_.model, settings_.divisor, rank, world);
      payload_ += payload_of(shards) + shards.size() * cluster_storage::kDirectBlock;
      files_ += shards.size();
    }
    const bool shared = settings_.has(Tier::shared);
    ranks_ = cluster_storage::meet_on_storage(group_, given_,
                                              {.bytes = shared ? payload_ : 0, .names = shared ? files_ : 0});
    if (!ranks_.no_direct.empty()) throw Skip(ranks_.no_direct);
    ranks_.on_other_nodes = ranks_.on_other_nodes && settings_.lost == Lost::node;
    cold_.emplace(ranks_.on_other_nodes, given_.bytes("server_memory").count, static_cast<std::size_t>(group_.rank()));
    const std::uint64_t memory = CheckpointTiers::memory_of(settings_, group_.world());
    if (memory > total_memory().count / 2) {  // the other half is the operating system's and other programs'
      throw Skip(
          fmt::format("{} B of memory are needed, more than half of this machine's; give a larger divisor, or fewer "
                      "tiers in memory",
                      memory));
    }
    if (!settings_.has(Tier::local)) return;
    const std::string& directory = given_.text("local_directory");
    demand_storage(filesystem_facts(directory), directory, {payload_ / world});
  }

  void add(const char* metric, std::optional<double> value, const Subject& subject = cluster_storage::all_clients()) {
    samples_.add(metric, value, subject, identity_);
  }

  [[nodiscard]] Subject client(std::size_t rank) const { return {.kind = "group", .id = ranks_.names[rank]}; }

  void take_save(const std::vector<json>& ranks) {
    const double bytes = total(ranks, "bytes");
    add("stall_time", longest(ranks, "stall"));
    add("time_to_peer", longest(ranks, "peer"));
    add("peer_bandwidth", rate(bytes, longest(ranks, "peer")));
    add("time_to_durable", longest(ranks, "durable"));
    add("write_bandwidth", rate(bytes, longest(ranks, "durable")));
    add("time_to_visible", longest(ranks, "visible"));
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      add("client_write_bandwidth", rate(ranks[rank].at("bytes").get<double>(), figure(ranks[rank], "durable")),
          client(rank));
      if (!settings_.has(Tier::shared) || figure(ranks[rank], "visible")) continue;
      mismatches_ += static_cast<double>(cluster_storage::kDirectBlock);
      if (group_.rank() == 0)
        record_.note(fmt::format("{} did not see the first file of the node {} before it within {:g} s of the commit",
                                 ranks_.names[rank], settings_.shift, settings_.wait.count));
    }
  }

  void take_restore(const std::vector<json>& ranks) {
    add("time_to_resume", longest(ranks, "resume"));
    const double bytes = total(ranks, "bytes");
    const auto raw_s = longest(ranks, "raw");
    add("restore_bandwidth", rate(bytes, longest(ranks, "read")));
    add("raw_read_bandwidth", rate(bytes, raw_s));
    if (raw_s) add("restore_share", rate(*raw_s, longest(ranks, "read")));
    std::vector<cluster_storage::ColdReader> readers;
    bool read = false;
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      const auto& words = ranks[rank];
      add("client_restore_bandwidth", rate(words.at("bytes").get<double>(), figure(words, "read")), client(rank));
      cluster_storage::ColdReader reader{.active = words.at("active").get<bool>(),
                                         .bytes = words.at("cold").get<double>(),
                                         .resident = {},
                                         .wire = {}};
      if (words.contains("resident")) reader.resident = words.at("resident").get<std::uint64_t>();
      reader.wire = figure(words, "wire");
      read = read || reader.active;
      readers.push_back(reader);
      mismatches_ += words.at("wrong").get<double>();
      fallbacks_ += words.at("fallbacks").get<double>();
      const auto where = words.at("where").get<std::string>();
      if (group_.rank() == 0 && !where.empty())
        record_.note(fmt::format("{} restored {} wrong B; the first: {}", ranks_.names[rank],
                                 words.at("wrong").get<std::uint64_t>(), where));
    }
    if (read) cold_->take(readers);
  }

  void record_conditions() {
    cluster_storage::record_ranks(ranks_, record_);
    cold_->record(record_);
    record_.condition("parameters_total", settings_.model.parameters);
    record_.condition("checkpoint_size", static_cast<std::int64_t>(payload_ - files_ * cluster_storage::kDirectBlock));
    record_.condition("files_total", static_cast<std::int64_t>(files_));
    record_.condition("whole", settings_.divisor == 1);
    std::string served;
    for (const auto& [tier, shards] : served_)
      served += served_.size() == 1 ? tier : fmt::format("{}{} {}", served.empty() ? "" : ", ", tier, shards);
    record_.condition("served_by", served);
  }

  const Parameters& given_;
  const Placement& placement_;
  Rendezvous& group_;
  Recorder& record_;
  TierSettings settings_;
  std::string identity_;
  cluster_storage::StorageRanks ranks_ = {};
  std::uint64_t payload_ = 0, files_ = 0;
  std::optional<cluster_storage::ColdLedger> cold_;
  cluster_storage::PhaseSamples samples_{"checkpoint"};
  double mismatches_ = 0, fallbacks_ = 0;
  std::map<std::string, std::uint64_t> served_;
};

/// The port and path of copies by verbs; nothing if they go over TCP.
std::optional<VerbsWish> verbs_wish(const Parameters& given) {
  if (given.text("peer_transport") == "tcp") return std::nullopt;
  return VerbsWish{.device = given.text("device"),
                   .gid_index = given.text("gid_index"),
                   .traffic_class = static_cast<int>(given.count("traffic_class", 0, 255)),
                   .service_level = static_cast<int>(given.count("service_level", 0, 15)),
                   .one_machine = given.text("clients") != "nodes"};
}

}  // namespace

TierSettings tier_settings(const Parameters& given, int world) {
  (void)given.count("repetitions", 1, kMostRepetitions);
  const auto chunk = given.bytes("chunk").count;
  if (chunk < kChunkMin || chunk > kChunkMax || chunk % cluster_storage::kDirectBlock != 0)
    throw BadParameter("chunk: must be a multiple of 4 KiB from 1 MiB to 64 MiB");
  if (given.seconds("wait").count <= 0 || given.seconds("wait").count > kLongestWait_s)
    throw BadParameter(fmt::format("wait: {:g} s is not more than 0 and at most 300", given.seconds("wait").count));
  cluster_storage::check_shift(given, world);
  TierSettings settings{
      .model = checkpoint_model(given.text("model")),
      .divisor = static_cast<std::uint64_t>(given.count("divisor", 1, kLargestDivisor)),
      .tiers = tiers_in(given.text("tiers")),
      .lost = given.text("lost") == "node"     ? Lost::node
              : given.text("lost") == "memory" ? Lost::memory
                                               : Lost::nothing,
      .shift = static_cast<int>(given.count("shift") % world),
      .threads = static_cast<std::size_t>(given.count("threads", 1, kMostThreads)),
      .plan = {.chunk = chunk, .depth = static_cast<unsigned>(given.count("queue_depth", 1, kMostDepth))},
      .wait = given.seconds("wait"),
      .verbs = verbs_wish(given),
      .shared = "",
      .local = "",
      .nonce = 0};
  const auto survives = [&](Tier tier) {
    return !(tier == Tier::memory && settings.lost != Lost::nothing) &&
           !(tier == Tier::local && settings.lost == Lost::node);
  };
  if (std::ranges::none_of(settings.tiers, survives))
    throw BadParameter(fmt::format("tiers: {} leaves nothing to restore from when {} is lost; add peer or shared",
                                   given.text("tiers"), given.text("lost") == "node" ? "the node" : "the memory"));
  if (static_cast<std::uint64_t>(world) > settings.model.processes())
    throw BadParameter(fmt::format("model: {} has {} processes, fewer than {} nodes", settings.model.name,
                                   settings.model.processes(), world));
  return settings;
}

void run_checkpoints(const Parameters& given, const Placement& placement, Rendezvous& group, Recorder& record) {
  CheckpointRun(given, placement, group, record).run();
}

}  // namespace assay::cluster_checkpoint
