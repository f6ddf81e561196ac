// cold_ledger: evidence of all phases that read, and the conditions that it makes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "probes/core/recorder.h"

namespace assay::cluster_storage {

/// Reads of one rank in a phase.
struct ColdReader {
  bool active = false;
  double bytes = 0;
  std::optional<std::uint64_t> resident;  ///< pages of its input in its page cache before; if reported
  std::optional<double> wire;             ///< B received by wire or from devices; if reported
};

/// Asks the page cache to drop these files; pages that stayed. Nothing if a file system does not report it.
std::optional<std::uint64_t> drop_cached(const std::vector<std::string>& paths);

/// Evidence of one rank over a run.
class ColdLedger {
 public:
  /// `server_memory`: B that the operator declares; 0: none.
  ColdLedger(bool on_other_nodes, std::uint64_t server_memory, std::size_t rank)
      : on_other_nodes_(on_other_nodes), server_memory_(server_memory), rank_(rank) {}
  /// Takes a phase in, by rank. If it also writes, no reader has `wire`.
  void take(const std::vector<ColdReader>& readers);
  /// Records cold_rung, resident_pages, wire_share, set_over_client_memory and set_over_server_memory where known.
  void record(Recorder& record) const;

 private:
  bool on_other_nodes_;
  std::uint64_t server_memory_;
  std::size_t rank_;
  std::optional<int> rung_;
  std::optional<std::uint64_t> resident_;
  std::optional<double> wire_share_, over_client_, over_server_;
};

}  // namespace assay::cluster_storage
