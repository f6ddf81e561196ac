// report_content: everything that a report shows, as values.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "reports/evidence_files.h"

namespace assay {

/// A run with its verdict and what was recorded, ready to be drawn.
struct ReportContent {
  Run run;
  Verdict verdict;
  std::string verdict_sha256, journal_sha256;
  std::string self_signed;  ///< fingerprint of the key when whoever ran the test signs; else empty
  std::map<std::string, std::vector<Record>> records;     ///< by step, of attempts that completed and can be read
  std::map<std::string, std::vector<Record>> companions;  ///< by step, likewise

  /// The requirement of this id; it must be one of the plan.
  [[nodiscard]] const Requirement& requirement(const std::string& id) const;
  /// Every sample that was pooled for `result`, in the order taken.
  [[nodiscard]] std::vector<double> samples(const Result& result) const;
};

/// The content from evidence that examine() has passed.
ReportContent report_content(const Examined& examined, const EvidenceReader& evidence, const std::string& self_signed);

}  // namespace assay
