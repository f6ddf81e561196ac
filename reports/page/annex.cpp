// annex: methods, instruments, machines, attempts, evidence and the limits of the claim.
#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "orchestrator/judge/overall/limitations.h"
#include "orchestrator/judge/overall/ranking.h"
#include "orchestrator/site/check.h"
#include "reports/figures/html.h"
#include "reports/page/non_claims.h"
#include "reports/page/sections.h"

namespace assay::page {
namespace {

std::string fact_words(const nlohmann::json& fact) {
  return fact.is_string() ? fact.get<std::string>()
                          : fact.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

using FactsByName = std::map<std::string, std::map<std::string, std::string>>;

/// The reports of agents, by name and node, as words; "absent" for a node without the fact.
FactsByName facts_by_name(const judge::Journal& journal) {
  FactsByName by_name;
  for (const auto& [node, facts] : journal.node_facts) {
    if (!facts.is_object()) continue;
    for (const auto& [name, fact] : facts.items()) by_name[name][node] = fact_words(fact);
  }
  for (auto& [name, by_node] : by_name) {
    for (const auto& [node, facts] : journal.node_facts) by_node.emplace(node, "absent");
  }
  return by_name;
}

/// Facts that no two machines share.
bool is_own(const std::string& fact) { return fact == "name" || fact == "boot_id"; }

/// The names and boots of several machines, a row for each.
std::string own_facts(const judge::Journal& journal, const FactsByName& by_name) {
  const std::size_t nodes = journal.node_facts.size();
  std::vector<std::string> titles = {"Node"}, rows;
  for (const auto& [name, by_node] : by_name) {
    if (is_own(name)) titles.push_back(name);
  }
  if (nodes < 2 || titles.size() == 1) return "";
  for (const auto& [node, unused] : journal.node_facts) {
    if (rows.size() == kMostListed) break;
    std::vector<std::string> cells = {figures::escape(node)};
    for (auto title = titles.begin() + 1; title != titles.end(); ++title)
      cells.push_back(figures::escape(by_name.at(*title).at(node)));
    rows.push_back(figures::row(cells));
  }
  std::string table = figures::table("nodes", "Names and boots of the machines", titles, rows);
  if (rows.size() == nodes) return table;
  return table + fmt::format("<p>The first {} of {}; evidence/journal.jsonl lists all.</p>\n", rows.size(), nodes);
}

/// What the TPM of each node answered, a row for each; empty if none was asked.
std::string tpms_table(const ReportContent& content) {
  std::vector<std::string> rows;
  for (const auto& [node, tpm] : content.tpms) {
    if (rows.size() == kMostListed) break;
    const bool answered = tpm.outcome == judge::AnswerOutcome::answered;
    rows.push_back(figures::row({figures::escape(node),
                                 figures::escape(answered ? "answered" : fmt::format("{}: {}", tpm.outcome, tpm.words)),
                                 tpm.key.empty() ? "" : figures::digest_html(tpm.key),
                                 !answered       ? ""
                                 : tpm.activated ? "bound"
                                                 : "not bound",
                                 tpm.pcr_digest.empty() ? "" : figures::digest_html(tpm.pcr_digest)}));
  }
  if (rows.empty()) return "";
  return figures::table("tpms", "TPMs of the nodes",
                        {"Node", "Answer", "SHA-256 of the key", "To the endorsement key", "SHA-256 of the registers"},
                        rows) +
         "<p>That a TPM answers does not show that it is in this machine. Whose TPM it is, the receiver checks: "
         "<code>assay-report verify --tpm-roots --tpm-keys</code>.</p>\n";
}

/// What each GPU answered that was asked for its attestation, a row for each; empty if none was asked.
std::string attested_table(const ReportContent& content) {
  std::vector<std::string> rows;
  for (const auto& [node, of_node] : content.attested) {
    for (const auto& [uuid, gpu] : of_node.gpus) {
      if (rows.size() == kMostListed) break;
      const bool answered = gpu.outcome == judge::AnswerOutcome::answered;
      rows.push_back(
          figures::row({figures::escape(node), figures::escape(uuid),
                        figures::escape(answered ? "answered" : fmt::format("{}: {}", gpu.outcome, gpu.words)),
                        gpu.key.empty() ? "" : figures::digest_html(gpu.key), figures::escape(gpu.driver),
                        figures::escape(gpu.vbios)}));
    }
    if (of_node.gpus.empty() && rows.size() < kMostListed)
      rows.push_back(
          figures::row({figures::escape(node), "",
                        figures::escape(fmt::format("{}: {}", of_node.outcome, of_node.words)), "", "", ""}));
  }
  if (rows.empty()) return "";
  return figures::table(
             "attested", "Attestation of the GPUs",
             {"Node", "GPU", "Answer", "SHA-256 of the identity key", "Driver, by the GPU", "VBIOS, by the GPU"},
             rows) +
         "<p>That a GPU answers does not show that it is in this machine. Whose GPU it is, the receiver checks: "
         "<code>assay-report verify --gpu-roots --gpu-keys</code>. Measurements are not compared with those of the "
         "maker.</p>\n";
}

/// A row for each of these facts that differs between machines.
void add_differences(const FactsByName& facts, std::vector<std::string>& rows) {
  for (const auto& [fact, by_node] : facts) {
    const auto difference = is_own(fact) ? std::nullopt : site::difference_of(fact, by_node);
    if (!difference) continue;
    rows.push_back(figures::row({"<code>" + figures::escape(fact) + "</code>",
                                 figures::escape(site::difference_words(*difference, by_node.size()))}));
  }
}

}  // namespace

std::string deviations_section(const ReportContent& content) {
  std::string html = heading(6);
  if (content.verdict.deviations.empty()) return html + "<p>None: every step ran as planned.</p>\n";
  std::vector<std::string> rows;
  for (const auto& deviation : judge::common_deviations(content.verdict)) {
    std::string step = deviation.step.empty() ? "whole run" : "<code>" + figures::escape(deviation.step) + "</code>";
    if (deviation.steps > 1) step += fmt::format(" and {} more", deviation.steps - 1);
    rows.push_back(figures::row({step, figures::escape(deviation.what)}));
  }
  return html + figures::table("deviations", "Departures from the method", {"Step", "Deviation"}, rows);
}

std::string methods_section(const ReportContent& content) {
  std::string html = heading(7) +
                     "<p class=\"on-paper\">Section 7 of report.html describes each probe in full.</p>\n<div "
                     "class=\"detail\">\n<p>As each probe describes itself, recorded in the plan.</p>\n";
  for (const auto& [name, probe] : content.run.plan.probes) {
    const Description& description = probe.description;
    html += fmt::format("<h3><code>{}</code>{}</h3>\n", figures::escape(name),
                        description.companion ? " (samples while other probes run)" : "");
    html += figures::element("p", description.measures) + figures::element("p", description.method);
    html += "<p>Source: " + figures::escape(description.source) + "</p>\n";
    std::vector<std::string> rows;
    for (const auto& metric : description.metrics)
      rows.push_back(figures::row({"<code>" + figures::escape(metric.name) + "</code>", figures::escape(metric.unit),
                                   figures::escape(metric.meaning)}));
    html += figures::table("metrics", "Metrics of " + name, {"Metric", "Unit", "Meaning"}, rows);
  }
  std::vector<std::string> rows;
  std::set<std::string> seen;
  for (const auto& step : content.run.plan.steps) {
    const std::string parameters = to_json(step.parameters).dump();
    if (!seen.insert(step.probe + parameters).second) continue;
    std::string words;
    for (const auto& [parameter, value] : step.parameters)
      words += fmt::format("{}{} = {}", words.empty() ? "" : ", ", parameter, to_json(value).dump());
    rows.push_back(figures::row({"<code>" + figures::escape(step.probe) + "</code>", figures::escape(words)}));
  }
  return html + "<h3>Parameters used</h3>\n" +
         figures::table("parameters", "Parameters of the steps", {"Probe", "Parameters (base units)"}, rows) +
         "</div>\n";
}

std::string instruments_section(const ReportContent& content) {
  std::vector<std::string> rows;
  for (const auto& [name, probe] : content.run.plan.probes) {
    std::string uncertainty;
    double between_runs = 0;
    for (const auto& metric : probe.description.metrics) {
      between_runs = std::max(between_runs, metric.between_runs);
      if (metric.instrument > 0)
        uncertainty +=
            fmt::format("{}{}: {}", uncertainty.empty() ? "" : "; ", metric.name, figures::percent(metric.instrument));
    }
    rows.push_back(figures::row(
        {"<code>" + figures::escape(name) + "</code>", fmt::format("{}", probe.description.revision),
         uncertainty.empty() ? "none stated" : figures::escape(uncertainty),
         between_runs > 0 ? figures::percent(between_runs) + ": " + figures::escape(probe.description.between_runs)
                          : "none stated",
         figures::digest_html(probe.sha256)}));
  }
  return heading(8) +
         "<p>The instruments are the probes. A new revision means that the reported numbers may differ; the digest is "
         "that of the program that ran. A machine whose long-run figure is exactly at its limit passes with at most "
         "the "
         "profile's risk if its fresh runs scatter normally, or by no more than the deviation stated here.</p>\n" +
         figures::table("instruments", "The probes as instruments",
                        {"Probe", "Revision", "Relative standard uncertainty (type B)",
                         "Deviation between runs, at least", "SHA-256 of the program"},
                        rows);
}

std::string nodes_section(const ReportContent& content) {
  const auto by_name = facts_by_name(content.run.journal);
  const std::size_t nodes = content.run.journal.node_facts.size();
  std::string html = heading(9);
  html += fmt::format("<p>{} of {} nodes reported their facts.</p>\n", nodes, content.run.plan.site.nodes.size());
  std::vector<std::pair<std::string, std::string>> common;
  for (const auto& [name, by_node] : by_name) {
    if ((nodes > 1 && is_own(name)) || site::difference_of(name, by_node)) continue;
    const auto& value = by_node.begin()->second;
    const bool is_equal = std::ranges::all_of(by_node, [&](const auto& one) { return one.second == value; });
    common.emplace_back(name, figures::escape(value) + (is_equal ? "" : " (within 1 %)"));
  }
  if (!common.empty())
    html += (nodes == 1 ? "" : "<h3>Same on all nodes</h3>\n") + figures::facts("Facts of the machines", common);
  std::vector<std::string> differences;
  add_differences(by_name, differences);
  add_differences(content.settings, differences);
  if (!differences.empty())
    html += "<h3>Differences</h3>\n" + figures::table("differences", "Facts and settings that differ between nodes",
                                                      {"Fact", "Values"}, differences);
  html += own_facts(content.run.journal, by_name) + tpms_table(content) + attested_table(content);
  for (const auto& event : content.run.journal.node_events) {
    html += fmt::format("<p>{}: node {}: {}</p>\n", figures::escape(event.time), figures::escape(event.node),
                        figures::escape(event.reason));
  }
  return html;
}

std::string attempts_section(const ReportContent& content) {
  const auto& attempts = content.run.journal.attempts;
  const bool all = attempts.size() <= kMostListed;
  std::map<std::string_view, int> planned;
  for (const auto& step : content.run.plan.steps) planned[step.id] = step.attempts;
  const auto is_ordinary = [&](const judge::Attempt& attempt) {
    const auto step = planned.find(attempt.step);
    return attempt.outcome == AttemptOutcome::exited && step != planned.end() && attempt.number <= step->second;
  };
  std::vector<std::string> rows;
  std::size_t exited = 0, omitted = 0;
  for (const auto& attempt : attempts) {
    const bool ended = attempt.outcome == AttemptOutcome::exited;
    exited += ended ? 1 : 0;
    omitted += !all && is_ordinary(attempt) ? 1 : 0;
    if (!all && is_ordinary(attempt)) continue;
    rows.push_back(
        figures::row({"<code>" + figures::escape(attempt.step) + "</code>", fmt::format("{}", attempt.number),
                      figures::escape(attempt.node), figures::escape(attempt.begin),
                      attempt.end.empty() ? "—" : figures::escape(attempt.end), std::string(word_of(attempt.outcome)),
                      figures::escape(attempt.reason)},
                     ended ? "detail" : ""));
  }
  std::string html =
      heading(10) +
      "<p>Every attempt that was started, with its outcome; “exited” means that the probe finished by itself.</p>\n";
  if (attempts.empty()) return html + "<p>None.</p>\n";
  if (!all)
    html += fmt::format("<p>{} planned attempts that exited are omitted; evidence/journal.jsonl lists them.</p>\n",
                        omitted);
  if (exited > 0)
    html += fmt::format("<p class=\"on-paper\">{} of {} attempts exited; section 10 of report.html lists them.</p>\n",
                        exited, attempts.size());
  const std::string table = figures::table(
      "attempts", "Attempts", {"Step", "Attempt", "Node", "Begin (UTC)", "End (UTC)", "Outcome", "Reason"}, rows);
  return html + (exited == attempts.size() ? "<div class=\"detail\">" + table + "</div>\n" : table);
}

std::string evidence_section(const ReportContent& content) {
  std::vector<std::string> rows = {figures::row({"plan.json", "", figures::digest_html(content.run.plan_sha256)}),
                                   figures::row({"journal.jsonl", "", figures::digest_html(content.journal_sha256)}),
                                   figures::row({"verdict.json", "", figures::digest_html(content.verdict_sha256)})};
  std::size_t files = 0;
  content.run.journal.each_file([&](const judge::EvidenceFile& file) {
    if (++files <= kMostListed)
      rows.push_back(figures::row(
          {figures::escape(file.path), fmt::format("{}", file.bytes), figures::digest_html(file.sha256)}, "detail"));
  });
  std::string html = heading(11) + "<p>Paths are relative to <code>evidence/</code> in the dossier.</p>\n";
  if (files > kMostListed) {
    html += fmt::format("<p>The first {} of {} files; MANIFEST.sha256 lists all.</p>\n", kMostListed, files);
  }
  html += fmt::format("<p class=\"on-paper\">The digests of the {} records are in the journal.</p>\n", files);
  return html + figures::table("evidence", "Files of the evidence", {"File", "Bytes", "SHA-256"}, rows);
}

std::string non_claims_section(const ReportContent& content) {
  std::string html = heading(12) + "<ul>\n";
  for (const auto& claim : non_claims()) html += figures::element("li", claim) + "\n";
  for (const auto& deviation : content.verdict.deviations) {
    if (judge::claims_less(deviation)) html += "<li class=\"detail\">" + figures::escape(deviation.what) + "</li>\n";
  }
  return html + "<li class=\"on-paper\">Section 6 says what was not checked, and what is relative only.</li>\n</ul>\n";
}

std::string verification_section(const ReportContent& content) {
  std::string html =
      heading(13) +
      "<p>Obtain the public key of the signer through a channel independent of this dossier, compare its fingerprint, "
      "and run:</p>\n<pre>assay-report fingerprint signer.pub\nassay-report verify DOSSIER --key signer.pub --plan " +
      figures::escape(content.run.plan_sha256) + "</pre>\n";
  html +=
      "<p>This checks the signature and the completeness and integrity of the evidence, judges every cell again from "
      "the raw samples, and renders this page again. VERIFY.txt in the dossier describes the check of signature and "
      "evidence with openssl, jq and coreutils alone.</p>\n";
  if (!content.self_signed.empty())
    html += "<p>Fingerprint of the key: " + figures::digest_html(content.self_signed) + ".</p>\n";
  return html;
}

}  // namespace assay::page
