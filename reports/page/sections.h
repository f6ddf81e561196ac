// sections: the parts of the report, in the order in which they stand.
#pragma once

#include <string>
#include <vector>

#include "reports/figures/network_curves.h"
#include "reports/figures/scale.h"
#include "reports/page/content.h"

namespace assay {

/// Places, attempts and files that are printed one by one; of more, those that need to be looked at, and where the
/// others are.
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
std::string requirement_charts(const ReportContent& content, const StepIndex& steps, const Requirement& requirement,
                               const ResultsOf& results);
/// Curves over sizes of messages and of groups; empty where no requirements make one.
std::string network_section(const ReportContent& content, const StepIndex& steps, const ResultsOf& results);
/// Who is at fault where nodes that work together fell short; empty where none did.
std::string localised_section(const ReportContent& content);
/// What was demanded beside the numbers, and everything else that was recorded with them.
std::string conditions_section(const ReportContent& content);
/// Departures from the method.
std::string deviations_section(const ReportContent& content);
/// How each probe measures, in its own words from the plan.
std::string methods_section(const ReportContent& content);
/// The probes as instruments: revision, digest, uncertainty.
std::string instruments_section(const ReportContent& content);
/// What the nodes are.
std::string nodes_section(const ReportContent& content);
/// Every attempt with its outcome.
std::string attempts_section(const ReportContent& content);
/// Digests of the evidence.
std::string evidence_section(const ReportContent& content);
/// What is not claimed.
std::string non_claims_section();
/// How to check the dossier.
std::string verification_section(const ReportContent& content);

/// The word of `outcome` as people read it: "conditional pass".
std::string outcome_words(Outcome outcome);
/// The same as a labelled box.
std::string outcome_box(Outcome outcome);
/// One letter for the coverage matrix: P p f F ? - E.
std::string outcome_letter(Outcome outcome);
/// "R3": the number of the requirement in the profile, from 1.
std::string requirement_number(const ReportContent& content, const std::string& id);
/// The promise in words: "at least 0.9 × peak fp64 (1.2 TFLOP/s)", with absolute limits exact in base units.
std::string target_words(const ReportContent& content, const Requirement& requirement);
/// Through which plane, on which pairs or groups, and what ran meanwhile: "through the plane parameter; pairs across
/// leaves, each alone". Empty for nodes by themselves on no plane.
std::string placement_words(const Requirement& requirement);
/// The scale on which value, limits and acceptance limits of `result` stand side by side.
Scale result_scale(const Result& result);
/// "n01", or "n01 · gpu GPU-8f2…" for finer subjects.
std::string subject_words(const Result& result);

}  // namespace assay
