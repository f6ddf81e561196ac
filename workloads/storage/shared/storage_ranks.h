// storage_ranks: common steps of the probes of a shared storage before and after they measure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "probes/core/filesystem_facts.h"
#include "probes/core/parameters.h"
#include "probes/core/recorder.h"
#include "probes/core/rendezvous.h"

namespace assay::cluster_storage {

/// More ranks than any fleet has; sums with a rank stay in an int.
inline constexpr std::int64_t kMostRanks = 1'000'000;

/// Largest use of the storage by a run.
struct StorageNeeds {
  std::uint64_t bytes = 0;  ///< a tenth more must be free
  std::uint64_t names = 0;  ///< files and directories; looked at where the file system counts them
};

/// The ranks of a run and the storage below them, on every rank the same but for `facts`.
struct StorageRanks {
  FilesystemFacts facts;           ///< of this rank
  std::vector<std::string> names;  ///< by rank
  std::string no_direct;           ///< why some rank cannot do direct I/O; empty if all can
  bool on_other_nodes = false;     ///< no two ranks share a machine
  std::uint64_t nonce = 0;         ///< of the payload, drawn by rank 0
};

/// Every rank: meets at the directory of the parameter `directory`. Throws, with the same reason on every rank, Skip if
/// it is no storage or has too little room, and std::runtime_error if it is not one file system or where two ranks
/// share a machine and the parameter `clients` is not processes.
StorageRanks meet_on_storage(Rendezvous& group, const Parameters& given, const StorageNeeds& needs);

/// Records filesystem, device_class, mount_source, mount_options, nonce, clients_total, read_by_other_node and
/// preloaded.
void record_ranks(const StorageRanks& ranks, Recorder& record);

/// Throws BadParameter if `shift` would let a rank of `world` read its own files.
void check_shift(const Parameters& given, int world);

/// Facts of every rank, by rank. Throws as Rendezvous.
std::vector<nlohmann::json> gather_words(Rendezvous& group, const nlohmann::json& mine);

/// All enter at once; the longest in s that this rank spent in the barrier: so far apart they start at most.
double start_together(Rendezvous& group);

/// Samples by metric, subject and coordinate, in the order in which they came.
class PhaseSamples {
 public:
  /// The samples of a phase have {coordinate: phase}.
  explicit PhaseSamples(std::string coordinate = "phase") : coordinate_(std::move(coordinate)) {}
  /// Takes a sample in if there is one; an empty phase is none.
  void add(const char* metric, std::optional<double> value, const Subject& subject, const std::string& phase = "");
  /// A line for each.
  void record(Recorder& record) const;

 private:
  std::string coordinate_;
  std::map<std::tuple<std::string, Subject, std::string>, std::vector<double>> samples_;
};

/// The subject of results of all ranks together.
Subject all_clients();

/// Keeps the smaller of the two if there are two.
void keep_least(std::optional<double>& known, std::optional<double> value);

}  // namespace assay::cluster_storage
