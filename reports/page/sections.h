// sections: the parts of the report, in order.
#pragma once

#include <cstddef>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "reports/figures/network_curves.h"
#include "reports/figures/result_text.h"
#include "reports/page/content.h"

namespace assay::page {

/// Places, attempts and files that are listed one by one. Beyond it, only those that do not pass or did not exit are
/// listed, with the file that lists all.
inline constexpr std::size_t kMostListed = 512;

/// The numbered sections, from 1: as shown by the contents list and heading().
inline constexpr const char* kSectionTitles[] = {"Statement of conformity",
                                                 "Decision rule",
                                                 "Coverage",
                                                 "Results",
                                                 "Conditions",
                                                 "Deviations",
                                                 "Methods",
                                                 "Instruments",
                                                 "Machines",
                                                 "Attempts",
                                                 "Evidence",
                                                 "What is not claimed",
                                                 "How to verify"};

/// The result of `make`; if it throws for another reason than a lack of memory, a line that names `part`, has
/// kMissingPart and is the same on every machine: a page in which a part is missing can still be signed and compared.
std::string part_of_page(const std::string& part, const std::function<std::string()>& make);

/// The heading of section `number`, with the anchor that the contents lead to.
std::string heading(std::size_t number);
/// The contents, with links.
std::string contents_section();
/// "R1, R3 to R7": `numbers` of requirements, in their order.
std::string number_ranges(const std::set<std::size_t>& numbers);
/// "#R3": the place of a requirement in the results, without the '#'.
std::string anchor_of(const plan::Profile& profile, const std::string& requirement);
/// " Action: reset (xid_numbers 48).", in HTML; empty for a result that asks for none.
std::string action_words(const ReportContent& content, const judge::Result& result);
/// Consequences of the verdict: actions, the parts at fault and places to look at, which requirements to look at first,
/// which nodes were lost, and the matrix of pairs where one shows it.
std::string action_section(const ReportContent& content);
/// The GPUs with model, serial number and driver, and for each rate the slowest with limit, clock, power and
/// temperature; empty without records of GPUs.
std::string gpu_section(const ReportContent& content);
/// The short names of GPUs in this page, each with its UUID; empty if no subject is a GPU.
std::string gpu_names_section(const ReportContent& content);
/// `html` with the short name in place of the UUID of every GPU that was judged: "GPU-8f2c01d4", longer where two
/// would be alike.
std::string with_short_names(const ReportContent& content, std::string html);
/// The matrix of the pairs of `requirement`; empty if it has none.
std::string pair_figure(const ReportContent& content, const figures::StepIndex& steps,
                        const plan::Requirement& requirement, const figures::ResultsOf& results);

/// The kind of the page: a report, or a simulation of one.
const char* report_title(const ReportContent& content);
/// Title, verdict, subject and time of the test, plan, and signatories.
std::string cover_section(const ReportContent& content);
/// Every judged cell: target, acceptance limit, value, margin, risk, verdict.
std::string conformity_section(const ReportContent& content);
/// The decision rule in words, with its parameters.
std::string decision_section(const ReportContent& content);
/// The agreement of vendor and buyer and what the plan makes of it, in one sentence without a full stop (HTML); the
/// plan has one.
std::string agreed_risk_words(const plan::Plan& plan);
/// The same with the plan's operating characteristic; empty if nothing was agreed on.
std::string agreed_risk_tables(const plan::Plan& plan);
/// The agreement on hours under load, and what came of it (HTML); the plan has one.
std::string stability_outcome(const plan::Plan& plan, const judge::Results& results);
/// The path of its interruptions along the boundaries, and its operating characteristic; empty without an agreement.
std::string stability_tables(const plan::Plan& plan, const judge::Results& results);
/// Requirement by node; every planned cell.
std::string coverage_section(const ReportContent& content);
/// For each requirement: target and its source, figure, uncertainty.
std::string results_section(const ReportContent& content);
/// Power over time and heat of cooling units, by the site's meters; empty if none were read.
std::string power_section(const ReportContent& content);
/// The matrix of tenants and paths between them; empty if none was tried.
std::string crossing_section(const ReportContent& content);
/// Matrices of one requirement: its pairs, its rails by leaves, its faults by place; empty if it has none. A
/// counter has none of pairs and rails.
std::string requirement_charts(const ReportContent& content, const figures::StepIndex& steps,
                               const plan::Requirement& requirement, const figures::ResultsOf& results, bool counter);
/// Whether every sample of all `results` of `requirement` is one whole number, as of counters that stay at 0: a row
/// says it, a figure would not.
bool is_counter(const ReportContent& content, const plan::Requirement& requirement,
                const std::vector<const judge::Result*>& results);
/// Curves over sizes of messages and of groups; empty if no requirements make one.
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
/// The limits of the claim.
std::string non_claims_section(const ReportContent& content);
/// How to check the dossier.
std::string verification_section(const ReportContent& content);

}  // namespace assay::page
