// site_evidence: readings of the site's meters while the attempts of a step held their load.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "orchestrator/judge/evidence/evidence.h"

namespace assay::judge {

/// Path in the run directory of the output of the head's companion in its watch `number`.
std::string watch_record_path(int number, const std::string& probe);
/// The same of its standard error.
std::string watch_log_path(int number, const std::string& probe);

/// The records of `watches` by their numbers; those that are not there, refused or made up are left out, and `refused`
/// says why.
struct WatchRecords {
  std::map<int, Record> records;
  std::string refused;
};
WatchRecords watch_records(const plan::Plan& plan, const std::vector<Watch>& watches, const EvidenceReader& evidence);

/// The evidence for the figures of meters of `step`, whose own evidence is `found`: for each of its attempts one record
/// with every measurement of the watches cut to the time in which the attempt held its load (hold_begin_s and
/// hold_end_s of rank 0's record, seconds since 1970; the time of the attempt by the journal if it has none), without
/// the coordinates of time and meter; and with the conditions of the meters that it comes from, as conditions of its
/// subject. A measurement that covers less than nine tenths of that time is left out. Counts of a switch's port are
/// those of the whole watch that covers the load, from its first reading (from_s) to its last (to_s). `missing` has the
/// reasons by subject; `step.reason` is the one that holds for every subject. Where a requirement of the step asks for
/// it, energy_efficiency of each rack is joined from its power and the record of the load (site_efficiency.h),
/// outlets_wrong of each node from its turn (site_joins.h), and how two meters agree from stairs (site_agreement.h).
struct SiteEvidence {
  StepEvidence step;
  std::map<Subject, std::string> missing;
  std::map<std::pair<std::string, Subject>, std::string> words;       ///< meaning of a joined figure, by its metric
  std::map<std::pair<std::string, Subject>, std::string> not_joined;  ///< why it is not there
};
SiteEvidence site_evidence(const plan::Plan& plan, const plan::Step& step, const StepEvidence& found,
                           const Journal& journal, const EvidenceReader& evidence);

/// Whether `subject` was read in every attempt, and only this figure of it is not there, without a reason.
bool is_untold(const SiteEvidence& site, const std::string& metric, const Subject& subject);

/// Why there is no `metric` of `subject`, as a sentence.
std::string why_missing(const SiteEvidence& site, const std::string& metric, const Subject& subject);

/// Meaning of a joined figure, for the reason of a cell that does not pass; empty for any other figure.
std::string words_of(const SiteEvidence& site, const std::string& metric, const Subject& subject);

}  // namespace assay::judge
