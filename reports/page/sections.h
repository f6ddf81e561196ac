// sections: the parts of the report, in order.
#pragma once

#include <string>
#include <vector>

#include "reports/figures/network_curves.h"
#include "reports/figures/result_words.h"
#include "reports/page/content.h"

namespace assay::page {

/// Places, attempts and files that are listed one by one. Beyond it, only those that do not pass or did not exit are
/// listed, with the file that lists all.
inline constexpr std::size_t kMostListed = 512;

/// What the page is: a report, or a simulation of one.
const char* report_title(const ReportContent& content);
/// Title, verdict, what was tested, when, by which plan, and who signs.
std::string cover_section(const ReportContent& content);
/// Every judged cell: target, acceptance limit, value, margin, risk, verdict.
std::string conformity_section(const ReportContent& content);
/// The decision rule in words, with its parameters.
std::string decision_section(const ReportContent& content);
/// Requirement by node; every planned cell.
std::string coverage_section(const ReportContent& content);
/// For each requirement: target and its source, figure, uncertainty.
std::string results_section(const ReportContent& content);
/// Matrices of one requirement: its pairs, and its rails by leaves; empty where it has neither.
std::string requirement_charts(const ReportContent& content, const figures::StepIndex& steps,
                               const plan::Requirement& requirement, const figures::ResultsOf& results);
/// Curves over sizes of messages and of groups; empty where no requirements make one.
std::string network_section(const ReportContent& content, const figures::StepIndex& steps,
                            const figures::ResultsOf& results);
/// Faults that were located after a group or pair missed a limit; empty without any.
std::string localised_section(const ReportContent& content);
/// Required and recorded conditions.
std::string conditions_section(const ReportContent& content);
/// Departures from the method.
std::string deviations_section(const ReportContent& content);
/// The method of each probe, as the plan describes it.
std::string methods_section(const ReportContent& content);
/// The probes as instruments: revision, digest, uncertainty.
std::string instruments_section(const ReportContent& content);
/// The facts of the nodes.
std::string nodes_section(const ReportContent& content);
/// Every attempt with its outcome.
std::string attempts_section(const ReportContent& content);
/// Digests of the evidence.
std::string evidence_section(const ReportContent& content);
/// What is not claimed.
std::string non_claims_section();
/// How to check the dossier.
std::string verification_section(const ReportContent& content);

}  // namespace assay::page
