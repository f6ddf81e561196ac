// consistency_cases: operations of one node of a group on files, and their effect on another.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "probes/core/rendezvous.h"
#include "probes/core/words.h"
#include "workloads/storage/shared/consistency_look.h"

namespace assay::cluster_storage {

/// Cases to check.
enum class ConsistencyCase {
  new_file,
  overwrite,
  held_open,
  size,
  append,
  append_together,
  exclusive,
  rename,
  unlink,
  listing
};

constexpr auto words_of(ConsistencyCase) { return names_as_words<ConsistencyCase>(); }

/// Settings of all rounds.
struct ConsistencySettings {
  std::string folder;               ///< shared by all ranks
  bool close_to_open_only = false;  ///< leaves out cases that NFS does not promise
  std::size_t size;                 ///< B of a file, a multiple of 32
  Seconds wait;                     ///< an effect that has not come by then never comes
  std::uint64_t nonce;
  std::vector<std::string> names;  ///< of the ranks
};

/// Writers and readers of a round, and the paths.
struct ConsistencyPair {
  std::uint64_t round = 0;
  std::uint64_t self = 0, writer = 0, reader = 0;  ///< this rank, the rank that it reads, and the reader of this rank
  std::string mine, theirs;                        ///< beginnings of the paths of this rank's files and the writer's
  std::string who;                                 ///< writer and reader, for words
};

/// Makes the cases; every rank makes the same calls.
class ConsistencyCases {
 public:
  ConsistencyCases(Rendezvous& group, const ConsistencySettings& settings);
  /// Cases of the settings, every rank on files of its own; it reads those of the rank `shift` before it. Refusals of
  /// the storage are counted, not thrown.
  void round(std::uint64_t number, int shift);
  /// This rank's tallies.
  [[nodiscard]] const std::map<ConsistencyCase, CaseTally>& tallies() const { return tallies_; }

 private:
  using Pair = ConsistencyPair;
  using Case = ConsistencyCase;
  bool attempt(Case which, const std::function<void()>& work, const std::string& who);
  [[nodiscard]] std::vector<bool> done_by_all(bool mine);
  void act_and_check(const Pair& pair, Case which, const std::function<void()>& act, const std::function<Look()>& look);
  void check(const Pair& pair, Case which, const std::function<Look()>& look);
  [[nodiscard]] Content content(std::uint64_t rank, std::uint64_t round, std::uint64_t generation) const;
  [[nodiscard]] std::vector<bool> made_by_all(Case which, const std::string& path, const Content& bytes);
  void close_to_open(const Pair& pair);
  void held_open(const Pair& pair);
  void sizes(const Pair& pair);
  void append(const Pair& pair);
  void append_together(const Pair& pair);
  void exclusive(const Pair& pair);
  void renames(const Pair& pair);
  Look watch_renames(const Pair& pair, const std::vector<Content>& generations, const std::atomic<bool>& go_on) const;
  void unlinks(const Pair& pair);
  void listings(const Pair& pair);

  Rendezvous& group_;
  ConsistencySettings settings_;
  std::map<ConsistencyCase, CaseTally> tallies_;
};

}  // namespace assay::cluster_storage
