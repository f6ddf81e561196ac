// content: everything that a report shows, as values.
#pragma once

#include <array>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "orchestrator/judge/evidence/gpu_answer.h"
#include "orchestrator/judge/evidence/tpm_answer.h"
#include "orchestrator/judge/overall/advice.h"
#include "reports/evidence/evidence_files.h"

namespace assay::page {

/// Steps whose conditions are printed in full, from the first on; the evidence has all.
inline constexpr std::size_t kMostRecordedSteps = 64;

/// A waiver as the first page shows it: a buyer's signed acceptance of cells that do not pass.
struct ShownWaiver {
  std::vector<std::string> cells;  ///< "memory.copy on n03: fail"
  std::string reason, until, by;
};

/// A run with its verdict and records, ready to be drawn.
struct ReportContent {
  judge::Run run;
  judge::Verdict verdict;
  std::string verdict_sha256, journal_sha256;
  std::string self_signed;                             ///< fingerprint of the key when the tester signs; else empty
  std::map<std::string, std::vector<Record>> records;  ///< by step, of attempts that completed and can be read; only of
                                                       ///< steps that the page shows more of than their verdict
  std::map<std::string, std::vector<Record>> companions;  ///< by step, likewise
  std::map<std::string, std::vector<Record>> metered;  ///< by step with figures of meters: as site_evidence() cuts them
  std::map<int, Record> watches;                       ///< the head's readings of the site's meters, by watch

  /// Of results of this verdict that are drawn as a distribution: the smallest and the largest sample.
  std::unordered_map<const judge::Result*, std::array<double, 2>> ranges;

  std::map<std::string, double> wire_limits;  ///< B/s by step of several nodes: what the slower of its ports carries in
                                              ///< one direction, where a record has it

  /// Facts in the nodes' records of site::kComparedProbes, by fact and node; "absent" for a node without the fact.
  std::map<std::string, std::map<std::string, std::string>> settings = {};

  std::map<std::string, judge::TpmAnswer> tpms = {};       ///< by node; empty if the plan asks none
  std::map<std::string, judge::GpuAnswers> attested = {};  ///< likewise

  judge::Advices advices = {};  ///< for results of this verdict

  std::vector<ShownWaiver> waivers = {};  ///< none in a dossier: they are granted after the run and lie beside it

  /// The requirement of this id; it must be one of the plan.
  [[nodiscard]] const plan::Requirement& requirement(const std::string& id) const;
  /// Every sample that was pooled for `result`, which must be one of the verdict's, in the order taken; of many
  /// subjects, which are drawn as a distribution, the smallest and the largest alone.
  [[nodiscard]] std::vector<double> samples(const judge::Result& result) const;
};

/// The same from a run that was judged in memory; nothing of it is copied.
ReportContent report_content(evidence::Examined&& examined, const judge::EvidenceReader& evidence,
                             const std::string& self_signed);

/// The content from evidence that examine() has passed.
ReportContent report_content(const evidence::Examined& examined, const judge::EvidenceReader& evidence,
                             const std::string& self_signed);

}  // namespace assay::page
