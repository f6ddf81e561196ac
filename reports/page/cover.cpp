// cover: the first page: title, verdict, the subject of the test, and the signer.
#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include <fmt/format.h>

#include "orchestrator/judge/overall/node_verdicts.h"
#include "reports/figures/captions.h"
#include "reports/figures/html.h"
#include "reports/page/sections.h"

namespace assay::page {
namespace {

std::string banner(const char* word, const std::string& html) {
  return fmt::format("<div class=\"banner\"><div class=\"word\">{}</div><p>{}</p></div>\n", word, html);
}

std::string banners(const ReportContent& content) {
  std::string html;
  if (content.run.plan.simulation) {
    html += banner("SIMULATION",
                   "Nothing was measured. All records are generated from a seed and a list of faults; this page shows "
                   "the form of a report and is neither an acceptance nor a rejection.");
  }
  if (content.run.plan.quick) {
    html += banner("REHEARSAL",
                   "Quick parameters were used. The figures show that the procedure works; they are neither an "
                   "acceptance nor a rejection.");
  }
  if (!content.run.plan.only.empty())
    html += banner("PARTIAL", "Only a part of the profile was planned; a partial run is never accepted.");
  return html;
}

/// The signer, if it is the tester; below the verdict.
std::string signature_banner(const ReportContent& content) {
  std::string html;
  if (!content.self_signed.empty()) {
    html += banner("SELF-SIGNED",
                   "The key belongs to the tester. The signature proves that nothing was changed since; it does not "
                   "prove the identity of the signer. Key " +
                       figures::digest_html(content.self_signed));
  }
  return html;
}

/// "2026-01-05 06:37:41 UTC" for people.
std::string moment(const std::string& utc) {
  if (utc.empty()) return "—";
  constexpr std::size_t kDate = 10;  // of "2026-01-05T06:37:41.211Z"
  constexpr std::size_t kTime = 8;
  return figures::escape(utc.substr(0, kDate) + " " + utc.substr(kDate + 1, kTime) + " UTC");
}

/// Waivers, below the verdict that they do not change.
std::string waiver_banners(const ReportContent& content) {
  constexpr std::size_t kMostShown = 20;  // cells of one waiver
  std::string html;
  for (const auto& waiver : content.waivers) {
    std::string cells;
    for (std::size_t i = 0; i < std::min(waiver.cells.size(), kMostShown); ++i)
      cells += (i == 0 ? "" : "; ") + figures::escape(waiver.cells[i]);
    if (waiver.cells.size() > kMostShown) cells += fmt::format("; and {} more", waiver.cells.size() - kMostShown);
    html +=
        banner("WAIVED", fmt::format("{}. Reason: {}. Until {}, by {}. The verdict is not changed by it.", cells,
                                     figures::escape(waiver.reason), moment(waiver.until), figures::escape(waiver.by)));
  }
  return html;
}

/// The required cells by outcome, and the others in one line.
std::string counts(const judge::Verdict& verdict) {
  std::map<judge::Outcome, std::size_t> required;
  std::vector<const judge::Result*> others;
  for (const auto& result : verdict.results) {
    if (result.required)
      ++required[result.outcome];
    else
      others.push_back(&result);
  }
  std::string html = "<div class=\"counts\">\n";
  for (const auto outcome :
       {judge::Outcome::pass, judge::Outcome::conditional_pass, judge::Outcome::conditional_fail, judge::Outcome::fail,
        judge::Outcome::inconclusive, judge::Outcome::not_measured, judge::Outcome::error})
    html += fmt::format("<div><b>{}</b>{}</div>\n", required[outcome], figures::outcome_words(outcome));
  html += "</div>\n";
  if (others.empty()) return html;
  return html + fmt::format("<p class=\"small\">Of required cells. Advisory, or not checked: {}.</p>\n",
                            figures::outcome_counts(others));
}

}  // namespace

const char* report_title(const ReportContent& content) {
  return content.run.plan.simulation ? "SIMULATION of an acceptance test report" : "Acceptance test report";
}

/// "2 set aside by the surroundings that nodes state, 1 lost, 0 interrupted, of 45"; empty if every attempt counts.
std::string uncounted_attempts(const ReportContent& content) {
  std::set<std::pair<std::string_view, int>> set_aside;
  for (const auto& result : content.verdict.results) {
    for (const auto& one : result.set_aside) set_aside.emplace(result.step, one.attempt);
  }
  const auto& attempts = content.run.journal.attempts;
  const auto lost = std::ranges::count(attempts, AttemptOutcome::lost, &judge::Attempt::outcome);
  const auto interrupted = std::ranges::count(attempts, AttemptOutcome::interrupted, &judge::Attempt::outcome);
  if (set_aside.empty() && lost + interrupted == 0) return "";
  return fmt::format("{} set aside by the surroundings that nodes state, {} lost, {} interrupted, of {}",
                     set_aside.size(), lost, interrupted, attempts.size());
}

std::string cover_section(const ReportContent& content) {
  const plan::Plan& plan = content.run.plan;
  const judge::Journal& journal = content.run.journal;
  const std::string word = to_string(content.verdict.overall);
  std::string html = fmt::format("<div class=\"masthead\"><b>ASSAY</b><span>Report {}</span></div>\n",
                                 figures::escape(journal.run_id));
  html += fmt::format("<h1>{}</h1>\n", report_title(content));
  html += fmt::format("<p class=\"subtitle\">{} — {}</p>\n", figures::escape(plan.site.name),
                      figures::escape(plan.profile.title));
  html += banners(content);
  html += fmt::format("<div class=\"verdict {}\"><div class=\"word\">{}</div><p>{}</p></div>\n", word,
                      figures::upper_case(word), figures::escape(content.verdict.reason));
  html += waiver_banners(content);
  html += part_of_page("what to do", [&] { return action_section(content); }) + counts(content.verdict) +
          part_of_page("GPUs", [&] { return gpu_section(content); }) + signature_banner(content) + contents_section();
  const std::string signer =
      content.self_signed.empty()
          ? "the signers of the dossier that contains this page; outside of a verified dossier this page is unsigned"
          : "<strong>SELF-SIGNED</strong>, key " + figures::digest_html(content.self_signed);
  std::vector<std::pair<std::string, std::string>> test = {
      {"Site", fmt::format("{}, {} {}", figures::escape(plan.site.name), plan.site.nodes.size(),
                           plan.site.nodes.size() == 1 ? "node" : "nodes")},
      {"Nodes", judge::fleet_statement(content.verdict.nodes)},
      {"Targets", fmt::format("profile {}, revision {}", figures::escape(plan.profile.name), plan.profile.revision)},
      {"Start of test", moment(journal.begin)},
      {"End of test", journal.end.empty() ? "not finished" : moment(journal.end)},
      {"Run", "<code>" + figures::escape(journal.run_id) + "</code>"},
      {"Plan (SHA-256)", figures::digest_html(content.run.plan_sha256)},
      {"Verdict (SHA-256)", figures::digest_html(content.verdict_sha256)},
      {"Software", "assay " + figures::escape(plan.assay_version)},
      {"Signed by", signer}};
  if (const auto words = uncounted_attempts(content); !words.empty()) test.emplace_back("Attempts not counted", words);
  if (plan.agreed_risk) test.emplace_back("Agreed risks", agreed_risk_words(plan));
  if (plan.agreed_stability) test.emplace_back("Agreed stability", stability_outcome(plan, content.verdict.results));
  html += figures::facts("The test", test);
  return html +
         "<p class=\"small\">The results relate only to the items tested, at the time of the test and under the "
         "recorded conditions. <span class=\"on-paper\">This is the short form for paper: report.html in the dossier "
         "lists every result, figure, method, condition and attempt.</span> " +
         (content.waivers.empty() ? "This page is rendered from the signed evidence alone.</p>\n"
                                  : "This page is rendered from the signed evidence and the waivers above; it is not "
                                    "the one in the dossier.</p>\n");
}

}  // namespace assay::page
