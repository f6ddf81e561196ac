// evidence_files: a run's files in memory, checked against each other and judged again.
#pragma once

#include <cstdint>
#include <expected>
#include <map>
#include <string>

#include "orchestrator/judge/evidence/evidence.h"
#include "orchestrator/judge/verdict.h"
#include "reports/evidence/manifest.h"

namespace assay::evidence {

/// Bytes of the records that are kept in memory; those beyond are read again when they are judged.
inline constexpr std::uint64_t kMostKept = 256 << 20;

/// The files of a run by path in the run directory, each digested when it is read. Logs are not kept, and of the other
/// files only as many as kMostKept has room for, the documents of the run first.
struct EvidenceFiles {
  std::string root;  ///< folder from which read() takes files that are not kept
  Manifest digests;
  std::map<std::string, std::uint64_t> sizes;
  std::map<std::string, std::string> kept;
  std::uint64_t kept_bytes = 0;
  judge::KeptRecords records;  ///< as far as they were read: judgement, page and checks share them

  /// Adds a file.
  void add(const std::string& path, std::string bytes);
  /// A file's bytes as they were added; an error when it has changed since.
  [[nodiscard]] std::expected<std::string, InputError> read(const std::string& path) const;
};

/// The contents of consistent evidence.
struct Examined {
  judge::Run run;
  judge::Verdict verdict;
  std::string verdict_sha256;
  std::string journal_sha256;
};

/// The files of the run in `directory`: plan.json, journal.jsonl, verdict.json, report.html if it exists, records/ and
/// logs/. Other files are ignored.
std::expected<EvidenceFiles, InputError> read_evidence_files(const std::string& directory);

/// Evidence as judge() wants it, from memory; `files` must outlive it.
judge::EvidenceReader evidence_in(const EvidenceFiles& files);

/// Reads plan, journal and verdict strictly and judges again. Refused: a journal of another plan, a journalled file
/// that is missing or differs from the journal, a verdict that is not byte for byte that of judging now.
std::expected<Examined, InputError> examine(const EvidenceFiles& files);

}  // namespace assay::evidence
