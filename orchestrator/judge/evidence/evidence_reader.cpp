// evidence_reader: finds a record among those that were read, or reads and packs it.
#include "orchestrator/judge/evidence/evidence_reader.h"

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string_view>
#include <unordered_set>

#include <fmt/format.h>

#include "probes/core/record_reader.h"
#include "probes/core/strict_object.h"

namespace assay::judge {
namespace {

/// Path and size too: a digest alone, which no reader has compared yet, identifies no file.
std::string key_of(const EvidenceFile& file) { return fmt::format("{} {} {}\n", file.path, file.sha256, file.bytes); }

}  // namespace
struct KeptRecords::Internal {
  /// A record in as little memory as it takes: its key and, behind that, the packed bytes.
  struct Kept {
    std::string bytes;
    std::uint32_t key = 0;  ///< its length

    [[nodiscard]] std::string_view of() const { return std::string_view(bytes).substr(0, key); }
    [[nodiscard]] std::string_view packed() const { return std::string_view(bytes).substr(key); }
  };
  struct ByKey {
    using is_transparent = void;
    static std::string_view key(std::string_view key) { return key; }
    static std::string_view key(const Kept& kept) { return kept.of(); }
    std::size_t operator()(const auto& one) const { return std::hash<std::string_view>{}(key(one)); }
    bool operator()(const auto& a, const auto& b) const { return key(a) == key(b); }
  };

  std::mutex mutex;  ///< of all below, but for the last
  std::unordered_set<Kept, ByKey, ByKey> records;
  std::map<std::string, InputError, std::less<>> refused;  ///< by key
  std::size_t bytes = 0;
  bool full = false;
  std::atomic<std::size_t> parsed = 0;

  /// The packed record of a file, or why it is refused; empty if neither is known. Entries never move or vanish.
  std::expected<std::string_view, InputError> find(std::string_view key) {
    const std::lock_guard lock(mutex);
    if (const auto why = refused.find(key); why != refused.end()) return std::unexpected(why->second);
    const auto found = records.find(key);
    return found == records.end() ? std::string_view() : found->packed();
  }
  void keep(const std::string& key, const std::expected<std::string, InputError>& read) {
    const std::size_t size = key.size() + (read ? read->size() : read.error().text().size());
    const std::lock_guard lock(mutex);
    full = full || bytes + size > kMostBytes;
    if (full) return;
    if (read ? records.insert({.bytes = key + *read, .key = static_cast<std::uint32_t>(key.size())}).second
             : refused.try_emplace(key, read.error()).second)
      bytes += size;
  }
};

KeptRecords::KeptRecords() : kept_(std::make_shared<Internal>()) {}

bool KeptRecords::has(const EvidenceFile& file) const {
  const auto kept = kept_->find(key_of(file));
  const std::lock_guard lock(kept_->mutex);
  return !kept || !kept->empty() || kept_->full;
}

std::expected<TimedRecord, InputError> KeptRecords::get(const EvidenceFile& file, const Description& probe,
                                                        const std::string& document,
                                                        const EvidenceReader::Bytes& read) const {
  const std::string key = key_of(file);
  const auto kept = kept_->find(key);
  if (!kept) return std::unexpected(located(document, kept.error()));
  if (!kept->empty()) {
    auto timed = unpacked(*kept);
    if (timed.record.start.probe == probe.name && timed.record.start.revision == probe.revision) return timed;
  }
  const auto bytes = read(file);
  if (!bytes) return std::unexpected(bytes.error());  // not kept: a file that cannot be read now may be later
  ++kept_->parsed;
  TimedRecord timed;
  auto record = read_record(*bytes, probe, {}, &timed.times);
  if (record) timed.record = std::move(*record);
  kept_->keep(key, record ? packed(timed) : std::expected<std::string, InputError>(std::unexpected(record.error())));
  if (!record) return std::unexpected(located(document, record.error()));
  return timed;
}

std::size_t KeptRecords::parsed() const { return kept_->parsed; }

}  // namespace assay::judge
