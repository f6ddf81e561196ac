// cold_ledger: keeps the weakest evidence of all reading phases; see cold_ledger.h.
#include "workloads/storage/shared/cold_ledger.h"

#include <algorithm>
#include <system_error>

#include "probes/core/filesystem_facts.h"
#include "probes/core/host_facts.h"
#include "workloads/storage/shared/cold_read.h"
#include "workloads/storage/shared/storage_ranks.h"

namespace assay::cluster_storage {

std::optional<std::uint64_t> drop_cached(const std::vector<std::string>& paths) {
  std::uint64_t resident = 0;
  try {
    for (const auto& path : paths) {
      drop_pages(path);
      resident += resident_pages(path);
    }
  } catch (const std::system_error&) {  // a file system whose files cannot be mapped does not report pages
    return std::nullopt;
  }
  return resident;
}

void ColdLedger::take(const std::vector<ColdReader>& readers) {
  ColdEvidence evidence{
      .resident_pages = 0, .wire_share = {}, .other_node = on_other_nodes_, .set_over_server_memory = {}};
  double bytes = 0;
  for (const auto& reader : readers) {
    if (!reader.active) continue;
    bytes += reader.bytes;
    if (!reader.resident) evidence.resident_pages = std::nullopt;
    if (evidence.resident_pages && reader.resident)
      evidence.resident_pages = std::max(*evidence.resident_pages, *reader.resident);
    if (reader.wire && reader.bytes > 0) keep_least(evidence.wire_share, *reader.wire / reader.bytes);
  }
  const auto& mine = readers[rank_];
  if (mine.active) {
    if (mine.resident) resident_ = std::max(resident_.value_or(0), *mine.resident);
    if (mine.wire && mine.bytes > 0) keep_least(wire_share_, *mine.wire / mine.bytes);
    keep_least(over_client_, mine.bytes / static_cast<double>(total_memory().count));
  }
  if (server_memory_ > 0) evidence.set_over_server_memory = bytes / static_cast<double>(server_memory_);
  keep_least(over_server_, evidence.set_over_server_memory);
  rung_ = std::min(rung_.value_or(cold_rung(evidence)), cold_rung(evidence));
}

void ColdLedger::record(Recorder& record) const {
  if (rung_) record.condition("cold_rung", std::int64_t{*rung_});
  if (resident_) record.condition("resident_pages", static_cast<std::int64_t>(*resident_));
  if (wire_share_) record.condition("wire_share", *wire_share_);
  if (over_client_) record.condition("set_over_client_memory", *over_client_);
  if (over_server_) record.condition("set_over_server_memory", *over_server_);
}

}  // namespace assay::cluster_storage
