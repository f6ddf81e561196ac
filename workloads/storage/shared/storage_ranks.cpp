// storage_ranks: the ranks exchange their machines and findings, and either agree or end with one reason.
#include "workloads/storage/shared/storage_ranks.h"

#include <algorithm>
#include <chrono>
#include <stdexcept>

#include <sys/statvfs.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "probes/core/host_facts.h"
#include "probes/core/json_io.h"
#include "probes/core/rank_names.h"
#include "probes/core/space.h"
#include "workloads/storage/shared/cold_read.h"
#include "workloads/storage/shared/payload.h"

namespace assay::cluster_storage {
namespace {

using nlohmann::json;

/// A rank's facts before any file is made.
json introduction(const FilesystemFacts& facts, const std::string& directory) {
  json words = {{"boot", read_fact("/proc/sys/kernel/random/boot_id").value_or("")},
                {"type", facts.type},
                {"not_storage", facts.not_storage},
                {"no_direct", facts.no_direct}};
  if (facts.free) words["free"] = facts.free->count;
  struct statvfs room = {};
  if (statvfs(directory.c_str(), &room) == 0 && room.f_files > 0)  // 0: the file system has no fixed number of files
    words["names"] = static_cast<std::uint64_t>(room.f_favail);
  return words;
}

void check_room(const json& rank, const std::string& directory, const StorageNeeds& needs) {
  const auto bytes = static_cast<std::uint64_t>(kSpaceSlack * static_cast<double>(needs.bytes));
  const auto free = rank.find("free");
  if (free != rank.end() && free->get<std::uint64_t>() < bytes) {
    throw Skip(fmt::format("{}: {} B are free, {} B are needed; give a smaller size", directory,
                           free->get<std::uint64_t>(), bytes));
  }
  const auto names = rank.find("names");
  if (names == rank.end() || names->get<std::uint64_t>() >= needs.names) return;
  throw Skip(fmt::format("{}: {} more files have room, {} are needed; give fewer", directory,
                         names->get<std::uint64_t>(), needs.names));
}

/// Throws, on every rank alike, where the ranks cannot measure together.
void check_ranks(const Parameters& given, const std::vector<json>& ranks, const StorageNeeds& needs) {
  std::map<std::string, std::size_t> boots;
  const std::string& directory = given.text("directory");
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    const auto text = [&](const char* name) { return ranks[rank].at(name).get<std::string>(); };
    if (const auto why = text("not_storage"); !why.empty())
      throw Skip(fmt::format("rank {}: {}: {}", rank, directory, why));
    if (text("type") != ranks[0].at("type").get<std::string>()) {
      throw std::runtime_error(
          fmt::format("{} is {} on rank 0 and {} on rank {}: it is not one file system on all nodes", directory,
                      ranks[0].at("type").get<std::string>(), text("type"), rank));
    }
    check_room(ranks[rank], directory, needs);
    const auto [known, is_new] = boots.emplace(text("boot"), rank);
    if (is_new || text("boot").empty() || given.text("clients") == "processes") continue;
    throw std::runtime_error(
        fmt::format("ranks {} and {} run on one machine (boot {}), which would read its own files; clients=processes "
                    "is the rehearsal on one machine",
                    known->second, rank, known->first));
  }
}

}  // namespace

std::vector<json> gather_words(Rendezvous& group, const json& mine) {
  std::vector<json> all;
  for (const auto& words : group.all_gather(mine.dump()))
    all.push_back(parse_json_or_throw(words, "rank " + std::to_string(all.size())));
  return all;
}

StorageRanks meet_on_storage(Rendezvous& group, const Parameters& given, const StorageNeeds& needs) {
  StorageRanks met{.facts = filesystem_facts(given.text("directory")),
                   .names = {},
                   .no_direct = "",
                   .on_other_nodes = given.text("clients") == "nodes"};
  const auto ranks = gather_words(group, introduction(met.facts, given.text("directory")));
  check_ranks(given, ranks, needs);
  for (const auto& rank : ranks) {
    if (met.no_direct.empty()) met.no_direct = rank.at("no_direct").get<std::string>();
  }
  met.names = rank_names(group);
  met.nonce = std::stoull(group.broadcast(fmt::format("{:016x}", fresh_payload_nonce())), nullptr, 16);
  return met;
}

void record_ranks(const StorageRanks& ranks, Recorder& record) {
  record_filesystem(ranks.facts, record);
  if (!ranks.facts.source.empty()) record.condition("mount_source", ranks.facts.source);
  if (!ranks.facts.options.empty()) record.condition("mount_options", ranks.facts.options);
  record.condition("nonce", fmt::format("{:016x}", ranks.nonce));
  record.condition("clients_total", static_cast<std::int64_t>(ranks.names.size()));
  record.condition("read_by_other_node", ranks.on_other_nodes);
  record.condition("preloaded", preloaded());
}

void check_shift(const Parameters& given, int world) {
  if (given.count("shift", 1, kMostRanks) % world != 0) return;
  throw BadParameter(fmt::format("shift: {} of {} ranks lets each read its own files; give 1 to {}",
                                 given.count("shift"), world, world - 1));
}

double start_together(Rendezvous& group) {
  group.barrier();
  const auto met = std::chrono::steady_clock::now();
  group.barrier();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - met).count();
}

void PhaseSamples::add(const char* metric, std::optional<double> value, const Subject& subject,
                       const std::string& phase) {
  if (value) samples_[{metric, subject, phase}].push_back(*value);
}

void PhaseSamples::record(Recorder& record) const {
  for (const auto& [key, values] : samples_) {
    const auto& [metric, subject, phase] = key;
    record.measurement(metric, {.samples = values, .warmup = {}, .stopped = "fixed"}, subject,
                       phase.empty() ? Values{} : Values{{coordinate_, phase}});
  }
}

Subject all_clients() { return {.kind = "group", .id = "all clients"}; }

void keep_least(std::optional<double>& known, std::optional<double> value) {
  if (value) known = std::min(known.value_or(*value), *value);
}

}  // namespace assay::cluster_storage
