// evidence_reader: the files of a run, and its records, each of which is read and checked once.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "orchestrator/files/in_parallel.h"
#include "orchestrator/judge/evidence/journal.h"
#include "orchestrator/judge/evidence/packed_record.h"
#include "probes/core/description.h"
#include "probes/core/error.h"

namespace assay::judge {

/// The records of one run that were read so far, packed, by path and SHA-256. In memory are the latest and the places
/// of the others, which files::SpilledBytes has; one that is damaged there is read from the evidence again. Copies have
/// the same ones. Any number of threads may use them.
class KeptRecords {
 public:
  /// Bytes that are kept in memory, and at most in all; records beyond are read again each time.
  static constexpr std::size_t kInMemory = std::size_t{8} << 20;
  static constexpr std::uint64_t kMostBytes = std::uint64_t{32} << 30;

  KeptRecords();

  /// Whether the record of `file` is kept, or there is no room for it.
  [[nodiscard]] bool has(const EvidenceFile& file) const;
  /// The record of `file`, whose bytes `read` gives if it is not kept yet. Errors of its content begin with `document`,
  /// if that has a name.
  std::expected<TimedRecord, InputError> get(
      const EvidenceFile& file, const Description& probe, const std::string& document,
      const std::function<std::expected<std::string, InputError>(const EvidenceFile&)>& read) const;
  /// How many records were read from their bytes so far: of each kept one that is 1, however often it was asked for.
  [[nodiscard]] std::size_t parsed() const;

 private:
  struct Internal;
  std::shared_ptr<Internal> kept_;
};

/// Reads the files of one run. Judgements that are given the same reader, or copies of it, share the records.
class EvidenceReader {
 public:
  /// The bytes of one evidence file by its path in the run directory; an error when it is missing or differs from the
  /// journal. Called by several threads at once.
  using Bytes = std::function<std::expected<std::string, InputError>(const EvidenceFile&)>;

  /// Reads nothing; to be replaced.
  EvidenceReader() = default;
  template <class Read>
  requires std::constructible_from<Bytes, Read> &&(!std::same_as<std::remove_cvref_t<Read>, EvidenceReader>)
      EvidenceReader(Read read, KeptRecords records = {}, unsigned threads = files::usual_threads())
      : bytes_(std::move(read)), records_(std::move(records)), threads_(threads) {}

  /// The bytes of `file`.
  std::expected<std::string, InputError> operator()(const EvidenceFile& file) const { return bytes_(file); }
  /// The record in `file`, of `probe` by the plan's description, as KeptRecords::get() has it.
  [[nodiscard]] std::expected<TimedRecord, InputError> record(const EvidenceFile& file, const Description& probe,
                                                              const std::string& document) const {
    return records_.get(file, probe, document, bytes_);
  }
  [[nodiscard]] const KeptRecords& records() const { return records_; }
  /// On how many threads a judgement works; its result is the same with any number.
  [[nodiscard]] unsigned threads() const { return threads_; }

 private:
  Bytes bytes_;
  KeptRecords records_;
  unsigned threads_ = 1;
};

}  // namespace assay::judge
