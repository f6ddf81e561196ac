// evidence_reader: finds a record among those that were read, or reads and packs it.
#include "orchestrator/judge/evidence/evidence_reader.h"

#include <atomic>
#include <mutex>
#include <unordered_map>

#include <fmt/format.h>

#include "probes/core/record_reader.h"
#include "probes/core/strict_object.h"

namespace assay::judge {
namespace {

/// Path and size too: a digest alone, which no reader has compared yet, identifies no file.
std::string key_of(const EvidenceFile& file) { return fmt::format("{} {} {}", file.path, file.sha256, file.bytes); }

}  // namespace
struct KeptRecords::Internal {
  using Kept = std::expected<std::string, InputError>;
  std::mutex mutex;  ///< of all below, but for the last
  std::unordered_map<std::string, Kept> records;
  std::size_t bytes = 0;
  bool full = false;
  std::atomic<std::size_t> parsed = 0;

  /// The entry of a file, or nullptr. Entries never move or vanish.
  const Kept* find(const std::string& key) {
    const std::lock_guard lock(mutex);
    const auto found = records.find(key);
    return found == records.end() ? nullptr : &found->second;
  }
  void keep(const std::string& key, Kept kept) {
    const std::size_t size = key.size() + (kept ? kept->size() : kept.error().text().size());
    const std::lock_guard lock(mutex);
    full = full || bytes + size > kMostBytes;
    if (!full && records.try_emplace(key, std::move(kept)).second) bytes += size;
  }
};

KeptRecords::KeptRecords() : kept_(std::make_shared<Internal>()) {}

bool KeptRecords::has(const EvidenceFile& file) const {
  const bool known = kept_->find(key_of(file)) != nullptr;
  const std::lock_guard lock(kept_->mutex);
  return known || kept_->full;
}

std::expected<TimedRecord, InputError> KeptRecords::get(const EvidenceFile& file, const Description& probe,
                                                        const std::string& document,
                                                        const EvidenceReader::Bytes& read) const {
  const std::string key = key_of(file);
  if (const auto* kept = kept_->find(key)) {
    if (!*kept) return std::unexpected(located(document, kept->error()));
    auto timed = unpacked(**kept);
    if (timed.record.start.probe == probe.name && timed.record.start.revision == probe.revision) return timed;
  }
  const auto bytes = read(file);
  if (!bytes) return std::unexpected(bytes.error());  // not kept: a file that cannot be read now may be later
  ++kept_->parsed;
  TimedRecord timed;
  auto record = read_record(*bytes, probe, {}, &timed.times);
  if (record) timed.record = std::move(*record);
  kept_->keep(key, record ? Internal::Kept(packed(timed)) : std::unexpected(record.error()));
  if (!record) return std::unexpected(located(document, record.error()));
  return timed;
}

std::size_t KeptRecords::parsed() const { return kept_->parsed; }

}  // namespace assay::judge
