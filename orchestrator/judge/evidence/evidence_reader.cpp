// evidence_reader: finds a record among those that were read, or reads and packs it.
#include "orchestrator/judge/evidence/evidence_reader.h"

#include <atomic>
#include <map>
#include <mutex>
#include <string_view>
#include <unordered_map>

#include <fmt/format.h>

#include "orchestrator/files/spilled_bytes.h"
#include "probes/core/record_reader.h"
#include "probes/core/strict_object.h"

namespace assay::judge {
namespace {

/// Path and size too: a digest alone, which no reader has compared yet, identifies no file.
std::string key_of(const EvidenceFile& file) { return fmt::format("{} {} {}\n", file.path, file.sha256, file.bytes); }

}  // namespace
struct KeptRecords::Internal {
  /// Where the key of a record is and, behind it, the packed bytes.
  struct Place {
    std::uint64_t begin = 0;
    std::uint32_t key = 0, packed = 0;  ///< sizes
    std::size_t hash = 0;               ///< of both
  };
  static constexpr std::size_t kMostRefused = std::size_t{64} << 20;  // bytes of the words of refusals
  static constexpr auto hash_of = std::hash<std::string_view>{};

  files::SpilledBytes bytes{kInMemory, kMostBytes};
  std::atomic<std::size_t> parsed = 0;
  std::mutex mutex;                               ///< of all below
  std::unordered_map<std::size_t, Place> places;  ///< by the hash of the key; a second one of a hash is not kept
  std::map<std::string, InputError, std::less<>> refused;  ///< by key
  std::size_t refused_bytes = 0;

  /// The packed record of a file, or why it is refused; empty if neither is known.
  std::expected<std::string, InputError> find(std::string_view key) {
    Place place;
    {
      const std::lock_guard lock(mutex);
      if (const auto why = refused.find(key); why != refused.end()) return std::unexpected(why->second);
      const auto found = places.find(hash_of(key));
      if (found == places.end()) return "";
      place = found->second;
    }
    auto kept = bytes.read(place.begin, std::size_t{place.key} + place.packed);
    if (!kept || hash_of(*kept) != place.hash || std::string_view(*kept).substr(0, place.key) != key) return "";
    return std::move(kept->erase(0, place.key));
  }
  void keep(const std::string& key, const std::expected<std::string, InputError>& read) {
    const std::lock_guard lock(mutex);
    if (!read) {
      refused_bytes += key.size() + read.error().text().size();
      if (refused_bytes <= kMostRefused) refused.try_emplace(key, read.error());
      return;
    }
    const auto [place, is_new] = places.try_emplace(hash_of(key));
    if (!is_new) return;
    const std::string both = key + *read;
    const auto begin = bytes.add(both);
    if (begin)
      place->second = {.begin = *begin,
                       .key = static_cast<std::uint32_t>(key.size()),
                       .packed = static_cast<std::uint32_t>(read->size()),
                       .hash = hash_of(both)};
    else
      places.erase(place);
  }
};

KeptRecords::KeptRecords() : kept_(std::make_shared<Internal>()) {}

bool KeptRecords::has(const EvidenceFile& file) const {
  const std::string key = key_of(file);
  const std::lock_guard lock(kept_->mutex);
  return kept_->places.contains(Internal::hash_of(key)) || kept_->refused.contains(key) || kept_->bytes.is_full();
}

std::expected<TimedRecord, InputError> KeptRecords::get(const EvidenceFile& file, const Description& probe,
                                                        const std::string& document,
                                                        const EvidenceReader::Bytes& read) const {
  const std::string key = key_of(file);
  auto kept = kept_->find(key);
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
