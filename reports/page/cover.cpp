// cover: the first page, and the words that all sections share.
#include <algorithm>
#include <cctype>
#include <span>

#include <fmt/format.h>

#include "reports/figures/html.h"
#include "reports/page/sections.h"

namespace assay {
namespace {

std::string upper(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

std::string banner(const char* word, const std::string& html) {
  return fmt::format("<div class=\"banner\"><div class=\"word\">{}</div><p>{}</p></div>\n", word, html);
}

std::string banners(const ReportContent& content) {
  std::string html;
  if (content.run.plan.simulation) {
    html += banner("SIMULATION",
                   "Nothing was measured. Every record is made up from a seed and a list of faults; the page shows "
                   "what a report would look "
                   "like, and accepts and rejects nothing.");
  }
  if (content.run.plan.quick) {
    html += banner(
        "REHEARSAL",
        "Quick parameters were used. The figures show that the procedure works; they accept and reject nothing.");
  }
  if (!content.run.plan.only.empty())
    html += banner("PARTIAL", "Only a part of the profile was planned, so the whole cannot be accepted.");
  if (!content.self_signed.empty()) {
    html += banner("SELF-SIGNED",
                   "The key belongs to whoever ran the test. The signature shows that nothing was changed since; it "
                   "does not show who "
                   "signed. Key " +
                       digest_html(content.self_signed));
  }
  return html;
}

std::string counts(const Verdict& verdict) {
  std::string html = "<div class=\"counts\">\n";
  for (const auto outcome : {Outcome::pass, Outcome::conditional_pass, Outcome::conditional_fail, Outcome::fail,
                             Outcome::inconclusive, Outcome::not_measured, Outcome::error}) {
    const auto found = verdict.counts.find(to_string(outcome));
    html += fmt::format("<div><b>{}</b>{}</div>\n", found == verdict.counts.end() ? 0 : found->second,
                        outcome_words(outcome));
  }
  return html + "</div>\n";
}

/// "450.0 GB/s (450000000000 B/s)": for reading, and with every digit.
std::string shown_and_exact(double value, const std::string& unit) {
  const std::string shown = scale_for(std::span(&value, 1), unit).text(value);
  const std::string exact = exact_text(value, unit);
  return unit == "1" || shown == exact ? exact : fmt::format("{} ({})", shown, exact);
}

/// "2026-01-05 06:37:41 UTC" for people.
std::string moment(const std::string& utc) {
  if (utc.empty()) return "—";
  constexpr std::size_t kDate = 10;  // of "2026-01-05T06:37:41.211Z"
  constexpr std::size_t kTime = 8;
  return escape(utc.substr(0, kDate) + " " + utc.substr(kDate + 1, kTime) + " UTC");
}

}  // namespace

const char* report_title(const ReportContent& content) {
  return content.run.plan.simulation ? "SIMULATION of an acceptance test report" : "Acceptance test report";
}

std::string cover_section(const ReportContent& content) {
  const Plan& plan = content.run.plan;
  const Journal& journal = content.run.journal;
  const std::string word = to_string(content.verdict.overall);
  std::string html =
      fmt::format("<div class=\"masthead\"><b>ASSAY</b><span>Report {}</span></div>\n", escape(journal.run_id));
  html += fmt::format("<h1>{}</h1>\n", report_title(content));
  html += fmt::format("<p class=\"subtitle\">{} — {}</p>\n", escape(plan.site.name), escape(plan.profile.title));
  html += banners(content);
  html += fmt::format("<div class=\"verdict {}\"><div class=\"word\">{}</div><p>{}</p></div>\n", word, upper(word),
                      escape(content.verdict.reason));
  html += counts(content.verdict);
  const std::string signer = content.self_signed.empty()
                                 ? "Whoever signed the statement of the dossier in which this page lies; outside a "
                                   "verified dossier this page is unsigned."
                                 : "<strong>SELF-SIGNED</strong>, key " + digest_html(content.self_signed);
  html += facts({{"Site", fmt::format("{}, {} {}", escape(plan.site.name), plan.site.nodes.size(),
                                      plan.site.nodes.size() == 1 ? "node" : "nodes")},
                 {"Targets", fmt::format("profile {}, revision {}", escape(plan.profile.name), plan.profile.revision)},
                 {"Test begun", moment(journal.begin)},
                 {"Test ended", journal.end.empty() ? "not ended" : moment(journal.end)},
                 {"Run", "<code>" + escape(journal.run_id) + "</code>"},
                 {"Plan (SHA-256)", digest_html(content.run.plan_sha256)},
                 {"Verdict (SHA-256)", digest_html(content.verdict_sha256)},
                 {"Conducted with", "assay " + escape(plan.assay_version)},
                 {"Signed by", signer}});
  return html +
         "<p class=\"small\">The results relate only to the items tested, at the time of the test and under the "
         "conditions recorded. "
         "This page is made from the signed evidence and from nothing else.</p>\n";
}

std::string outcome_words(Outcome outcome) {
  std::string words = to_string(outcome);
  std::ranges::replace(words, '_', ' ');
  return words;
}

std::string outcome_box(Outcome outcome) {
  return fmt::format("<span class=\"outcome {}\">{}</span>", to_string(outcome), outcome_words(outcome));
}

std::string outcome_letter(Outcome outcome) {
  switch (outcome) {
    case Outcome::pass:
      return "P";
    case Outcome::conditional_pass:
      return "p";
    case Outcome::conditional_fail:
      return "f";
    case Outcome::fail:
      return "F";
    case Outcome::inconclusive:
      return "?";
    case Outcome::not_measured:
      return "–";
    case Outcome::error:
      return "E";
  }
  return "E";
}

std::string requirement_number(const ReportContent& content, const std::string& id) {
  const auto& all = content.run.plan.profile.requirements;
  return fmt::format("R{}", std::ranges::find(all, id, &Requirement::id) - all.begin() + 1);
}

std::string placement_words(const Requirement& requirement) {
  std::string words = requirement.plane.empty() ? "" : "through the plane " + requirement.plane;
  const auto add = [&](const std::string& more) { words += (words.empty() ? "" : "; ") + more; };
  if (requirement.scope == "pair") {
    std::string which = requirement.pairs.empty() || requirement.pairs == "all" ? "" : " " + requirement.pairs;
    std::ranges::replace(which, '_', ' ');
    add(fmt::format("pairs{}, {}", which, requirement.alone ? "each alone" : "those of a round side by side"));
  }
  if (requirement.scope == "group") add("groups: " + (requirement.by.empty() ? "rack" : requirement.by));
  if (requirement.scope == "cluster") add("all nodes at once");
  return words;
}

std::string target_words(const ReportContent& content, const Requirement& requirement) {
  const Limit& limit = requirement.limit;
  const auto side = [&](double stated) -> std::string {
    const std::string share = fmt::format("{:.15g} × ", stated);
    switch (limit.reference) {
      case Reference::none:
        return shown_and_exact(stated, limit.unit);
      case Reference::peak: {
        const Peak& peak = content.run.plan.profile.peaks.at(limit.name);
        return fmt::format("{}design peak {} of {}", share, limit.name, shown_and_exact(peak.value, peak.unit));
      }
      case Reference::metric:
        return fmt::format("{}the measured {}", share, limit.name);
      case Reference::best_sample:
        return share + "the best sample";
      case Reference::fleet_median:
        return share + "the fleet's median";
      case Reference::smallest_group:
        return share + "what the smallest group reached";
      case Reference::smallest_group_by_nodes:
        return share + "what the smallest group reached, for as many nodes";
    }
    return share;
  };
  std::string words;
  if (limit.at_least) words = "at least " + side(*limit.at_least);
  if (limit.at_most) words += (words.empty() ? "at most " : " and at most ") + side(*limit.at_most);
  return words;
}

Scale result_scale(const Result& result) {
  std::vector<double> side_by_side;
  for (const auto& one :
       {result.value, result.limit_low, result.limit_high, result.acceptance_low, result.acceptance_high}) {
    if (one) side_by_side.push_back(*one);
  }
  return scale_for(side_by_side, result.unit);
}

std::string subject_words(const Result& result) {
  if (result.subject.kind == "node" || result.subject.id == result.node) return result.node;
  return fmt::format("{} · {} {}", result.node, result.subject.kind, result.subject.id);
}

}  // namespace assay
