// shown: the table, JSON, CSV and page of a mapping.
#include "reports/requirements/shown.h"

#include <algorithm>

#include <fmt/format.h>

#include "orchestrator/files/terminal.h"
#include "probes/core/how_many.h"
#include "probes/core/json_io.h"
#include "probes/core/text.h"
#include "reports/exports/cells.h"
#include "reports/figures/html.h"
#include "reports/figures/result_text.h"
#include "reports/page/style.h"

namespace assay::requirements {
namespace {

using nlohmann::ordered_json;

std::string target_of(const Mapping& mapping, const plan::Requirement& requirement) {
  return figures::target_words(mapping.run->content.run.plan.profile, requirement);
}

std::string requirement_lines(const Mapping& mapping, const Answering& one, std::size_t width) {
  const auto& requirement = *one.requirement;
  std::string text =
      files::wrapped(harmless(fmt::format("{}{}: {}; {}", requirement.id, requirement.required ? "" : " (advisory)",
                                          target_of(mapping, requirement), outcome_words(one)),
                              4 * kLongestQuoted),
                     width, "      ");
  if (one.worst == nullptr) return text;
  for (const auto* record : mapping.records(*one.worst))
    text += fmt::format("        {} sha256 {}\n", bounded(record->path), record->sha256);
  return text;
}

ordered_json document_of(const Mapping& mapping, const Answering& one) {
  const auto& requirement = *one.requirement;
  ordered_json outcomes = ordered_json::object();
  for (const auto& [outcome, count] : one.counts) outcomes[judge::to_string(outcome)] = count;
  ordered_json cells = ordered_json::array();
  for (const auto* cell : one.cells) {
    ordered_json records = ordered_json::array();
    for (const auto* record : mapping.records(*cell))
      records.push_back({{"path", record->path}, {"sha256", record->sha256}});
    cells.push_back({{"node", cell->node},
                     {"subject", ordered_json(assay::to_json(cell->subject))},
                     {"outcome", judge::to_string(cell->outcome)},
                     {"value", cell->value ? ordered_json(*cell->value) : ordered_json()},
                     {"step", cell->step},
                     {"reason", bounded(cell->reason)},
                     {"records", std::move(records)}});
  }
  return {{"id", requirement.id},
          {"title", requirement.title},
          {"probe", requirement.probe},
          {"metric", requirement.judged()},
          {"unit", requirement.limit.unit},
          {"limit", target_of(mapping, requirement)},
          {"required", requirement.required},
          {"outcomes", std::move(outcomes)},
          {"cells", std::move(cells)}};
}

ordered_json document_of(const Found& found) {
  ordered_json would_be;
  if (found.would_be) would_be = word_of(*found.would_be);
  return {{"id", found.row->id},
          {"section", found.row->section},
          {"text", found.row->text},
          {"address", found.row->address},
          {"state", word_of(found.state)},
          {"would_be", std::move(would_be)},
          {"outside", found.row->outside ? ordered_json(word_of(*found.row->outside)) : ordered_json()},
          {"reason", found.reason},
          {"requirements", found.requirements}};
}

ordered_json document_of(const dossier::OpenedRun& opened) {
  const auto& run = opened.content.run;
  return {{"path", opened.path},
          {"standing", opened.standing},
          {"signers", opened.signers},
          {"self_signed", !opened.content.self_signed.empty()},
          {"simulated", run.plan.simulation.has_value()},
          {"rehearsal", run.plan.quick},
          {"run_id", run.journal.run_id},
          {"plan_sha256", run.plan_sha256},
          {"verdict_sha256", opened.content.verdict_sha256},
          {"site", run.plan.site.name},
          {"nodes", run.plan.site.nodes.size()},
          {"profile", run.plan.profile.name},
          {"profile_revision", run.plan.profile.revision},
          {"began", run.journal.begin},
          {"ended", run.journal.last},
          {"overall", judge::to_string(opened.content.verdict.overall)}};
}

using figures::escape;

constexpr std::string_view kSheet = R"css(
.state { font-weight: 600; white-space: nowrap; } .state.met { color: var(--good); } .state.not_met { color: var(--bad); } .state.not_tested { color: var(--warn); } .state.outside { color: var(--soft); font-weight: 400; }
.state small { display: block; } table.rows td:first-child { width: 36mm; } table.rows td:nth-child(2) { width: 26mm; } table.rows .why { color: var(--soft); margin: 0.8mm 0 0; }
table.answering td:first-child { min-width: 30mm; }
@media screen and (max-width: 640px) { table.rows, table.rows tbody, table.rows td { display: block; } .scroll > table.rows { min-width: 0; } table.rows thead { display: none; } table.rows tr { display: block; border-bottom: 0.5pt solid var(--rule); padding: 1.5mm 0; } table.rows td:nth-child(n) { border: 0; padding: 0.3mm 0; width: auto; } .state small { display: inline; margin-left: 1.5mm; } }
)css";

std::string banner(const char* word, const std::string& text) {
  return fmt::format("<div class=\"banner\"><div class=\"word\">{}</div><p>{}</p></div>\n", word, escape(text));
}

std::string state_html(const Found& found) {
  std::string words(word_of(found.state));
  std::ranges::replace(words, '_', ' ');
  std::string html = fmt::format("<span class=\"state {}\">{}", word_of(found.state), words);
  if (found.would_be && *found.would_be != found.state) {
    std::string would(word_of(*found.would_be));
    std::ranges::replace(would, '_', ' ');
    html += fmt::format("<small>would be {}</small>", would);
  }
  return html + "</span>";
}

std::string link(const Mapping& mapping, const std::string& id) {
  const Answering& one = mapping.answering.at(id);
  return fmt::format("<a href=\"#{0}\">{0}</a>{1} {2}/{3}", escape(id), one.requirement->required ? "" : " (advisory)",
                     one.passed(), one.cells.size());
}

std::string row_html(const Mapping& mapping, const Found& found) {
  std::string text = escape(found.row->text);
  if (found.row->outside) {
    std::string kind(word_of(*found.row->outside));
    std::ranges::replace(kind, '_', ' ');
    text += fmt::format("<p class=\"why small\">{}: {}</p>", kind, escape(found.reason));
    return figures::row({escape(found.row->id), state_html(found), text});
  }
  std::string links;
  for (const auto& id : found.requirements) links += (links.empty() ? "" : " · ") + link(mapping, id);
  if (found.would_be.value_or(found.state) != State::met)
    text += fmt::format("<p class=\"why small\">{}</p>", escape(bounded(found.reason)));
  if (!links.empty()) text += fmt::format("<p class=\"why small\">{}</p>", links);
  return figures::row({escape(found.row->id), state_html(found), text});
}

std::string sections(const Mapping& mapping) {
  std::string html;
  for (std::size_t i = 0; i < mapping.rows.size();) {
    const std::string& section = mapping.rows[i].row->section;
    std::vector<std::string> rows;
    for (; i < mapping.rows.size() && mapping.rows[i].row->section == section; ++i)
      rows.push_back(row_html(mapping, mapping.rows[i]));
    html += figures::element("h2", section) + "\n" +
            figures::table("rows", section, {"Demand", "This run", "Text, and its requirements"}, rows);
  }
  return html;
}

std::string answering_table(const Mapping& mapping) {
  if (mapping.answering.empty()) return "<p>No requirement of this plan answers a row.</p>\n";
  std::vector<std::string> rows;
  for (const auto& [id, one] : mapping.answering) {
    const auto& requirement = *one.requirement;
    std::string record;
    if (one.worst != nullptr) {
      record = escape(fmt::format("{} · step {}", bounded(judge::place_of(*one.worst)), one.worst->step));
      for (const auto* file : mapping.records(*one.worst)) {
        record += "<br><code>" + escape(bounded(file->path)) + "</code> " + figures::digest_html(file->sha256);
      }
    }
    rows.push_back(
        figures::row({fmt::format("<span id=\"{0}\">{0}</span>", escape(id)),
                      escape(fmt::format("{} of {}, {}", requirement.figure(), requirement.probe,
                                         figures::target_words(mapping.run->content.run.plan.profile, requirement))),
                      fmt::format("{} of {}", one.passed(), one.cells.size()),
                      one.worst == nullptr ? "—" : figures::outcome_box(one.worst->outcome), record}));
  }
  return figures::table("answering", "Requirements that answer",
                        {"Requirement", "Figure and limit", "Pass", "Worst cell", "Its record, SHA-256"}, rows);
}

std::string facts(const Mapping& mapping) {
  const auto& catalogue = *mapping.catalogue;
  const auto& run = mapping.run->content.run;
  std::vector<std::pair<std::string, std::string>> rows = {
      {"Catalogue", escape(fmt::format("{} revision {}", catalogue.name, catalogue.revision))},
      {"Paraphrases", escape(fmt::format("{}, read {}: {}", catalogue.document, catalogue.date, catalogue.address))}};
  if (!catalogue.note.empty()) rows.emplace_back("Left out", escape(catalogue.note));
  rows.emplace_back("Run",
                    escape(fmt::format("{}, {} to {}", run.journal.run_id, run.journal.begin, run.journal.last)));
  rows.emplace_back("Site",
                    escape(fmt::format("{}, {}", run.plan.site.name, how_many(run.plan.site.nodes.size(), "node"))));
  rows.emplace_back("Profile", escape(fmt::format("{} revision {}", run.plan.profile.name, run.plan.profile.revision)));
  rows.emplace_back("Verdict", escape(judge::to_string(mapping.run->content.verdict.overall)));
  rows.emplace_back("Standing", escape(standing_words(*mapping.run)));
  rows.emplace_back("Verdict, SHA-256", figures::digest_html(mapping.run->content.verdict_sha256));
  for (const auto& note : mapping.notes) rows.emplace_back("Deviation", escape(note));
  return figures::facts("The catalogue and the run", rows);
}

}  // namespace

std::string table(const Mapping& mapping, std::size_t width) {
  const auto& catalogue = *mapping.catalogue;
  const auto& run = mapping.run->content;
  const auto line = [&](const char* name, const std::string& value) {
    return files::wrapped(harmless(value), width, fmt::format("{:<11}", name));
  };
  std::string text =
      line("catalogue", fmt::format("{} revision {}: {}", catalogue.name, catalogue.revision, catalogue.title));
  text += line("of", fmt::format("{}, read {}, {}", catalogue.document, catalogue.date, catalogue.address));
  if (!catalogue.note.empty()) text += line("note", catalogue.note);
  text += line("run", fmt::format("{} by {} revision {} on {} of {}", run.run.journal.run_id, run.run.plan.profile.name,
                                  run.run.plan.profile.revision, how_many(run.run.plan.site.nodes.size(), "node"),
                                  run.run.plan.site.name));
  text += line("standing", standing_words(*mapping.run));
  text += line("verdict", judge::to_string(run.verdict.overall));
  if (!mapping.no_test.empty()) text += line("", mapping.no_test);
  for (const auto& note : mapping.notes) text += line("note", note);
  std::string section;
  for (const auto& found : mapping.rows) {
    if (found.row->section != section) text += "\n" + harmless(section = found.row->section) + "\n";
    text += files::wrapped(harmless(found.row->text), width,
                           fmt::format("  {:<9} {:<10} ", harmless(found.row->id), state_words(found)));
    if (found.would_be.value_or(found.state) != State::met)  // the requirements below say the same of one that is met
      text += files::wrapped(harmless(found.reason, 4 * kLongestQuoted), width, "    ");
    for (const auto& id : found.requirements) text += requirement_lines(mapping, mapping.answering.at(id), width);
  }
  text += "\n";
  for (const auto& word : words_of(State{})) {
    std::string name(word.text);
    std::ranges::replace(name, '_', ' ');
    text +=
        fmt::format("{}{} {}", word.value == State::met ? "" : ", ", mapping.counts.at(std::string(word.text)), name);
  }
  return text + "\n";
}

std::string json_of(const Mapping& mapping) {
  const auto& catalogue = *mapping.catalogue;
  ordered_json rows = ordered_json::array(), requirements = ordered_json::array();
  for (const auto& found : mapping.rows) rows.push_back(document_of(found));
  for (const auto& [id, one] : mapping.answering) requirements.push_back(document_of(mapping, one));
  const ordered_json document = {{"schema", "assay.requirements/1"},
                                 {"catalogue",
                                  {{"name", catalogue.name},
                                   {"title", catalogue.title},
                                   {"revision", catalogue.revision},
                                   {"document", catalogue.document},
                                   {"address", catalogue.address},
                                   {"date", catalogue.date},
                                   {"note", catalogue.note},
                                   {"sha256", catalogue.sha256}}},
                                 {"run", document_of(*mapping.run)},
                                 {"no_test", mapping.no_test},
                                 {"notes", mapping.notes},
                                 {"counts", mapping.counts},
                                 {"rows", std::move(rows)},
                                 {"requirements", std::move(requirements)}};
  return document.dump(1, ' ', true, ordered_json::error_handler_t::replace) + "\n";
}

std::string csv(const Mapping& mapping) {
  using exports::csv_field;
  std::string text =
      "catalogue,run_id,standing,simulated,rehearsal,id,section,state,would_be,text,reason,requirement,required,limit,"
      "cells,passed,outcome,place,step,record,sha256\n";
  const auto& run = mapping.run->content.run;
  const std::string head = fmt::format("{},{},{},{},{}", csv_field(mapping.catalogue->name),
                                       csv_field(run.journal.run_id), csv_field(standing_words(*mapping.run)),
                                       run.plan.simulation ? "true" : "false", run.plan.quick ? "true" : "false");
  for (const auto& found : mapping.rows) {
    const std::string row =
        fmt::format("{},{},{},{},{},{},{}", head, csv_field(found.row->id), csv_field(found.row->section),
                    csv_field(word_of(found.state)), csv_field(found.would_be ? word_of(*found.would_be) : ""),
                    csv_field(found.row->text), csv_field(found.reason));
    if (found.requirements.empty()) text += row + ",,,,,,,,,,\n";
    for (const auto& id : found.requirements) {
      const Answering& one = mapping.answering.at(id);
      text += fmt::format("{},{},{},{},{},{}", row, csv_field(id), one.requirement->required ? "true" : "false",
                          csv_field(target_of(mapping, *one.requirement)), one.cells.size(), one.passed());
      const auto records =
          one.worst == nullptr ? std::vector<const judge::EvidenceFile*>{} : mapping.records(*one.worst);
      if (one.worst == nullptr)
        text += ",,,";
      else
        text += fmt::format(",{},{},{}", csv_field(judge::to_string(one.worst->outcome)),
                            csv_field(bounded(judge::place_of(*one.worst))), csv_field(one.worst->step));
      text +=
          records.empty() ? ",,\n" : fmt::format(",{},{}\n", csv_field(records.front()->path), records.front()->sha256);
    }
  }
  return text;
}

std::string page_of(const Mapping& mapping) {
  const auto& run = *mapping.run;
  const bool simulated = run.content.run.plan.simulation.has_value();
  std::string html =
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
      "'unsafe-inline'\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n";
  html += fmt::format("<title>{}</title>\n<style>{}{}{}</style>\n</head>\n<body>\n<main>\n",
                      escape(mapping.catalogue->title), page::style_sheet("Requirements"), kSheet,
                      simulated ? page::watermark_style() : "");
  if (simulated) html += "<div class=\"watermark\" aria-hidden=\"true\">SIMULATION</div>\n";
  html += "<div class=\"masthead\"><b>ASSAY</b><span>Requirements</span></div>\n" +
          figures::element("h1", mapping.catalogue->title) + "\n";
  if (!mapping.no_test.empty()) html += banner("NO TEST", mapping.no_test);
  if (run.standing != "verified")
    html += banner("NOT VERIFIED", "No signature vouches for the run, or none was checked.");
  html += "<div class=\"counts\">\n";
  for (const auto& word : words_of(State{})) {
    std::string name(word.text);
    std::ranges::replace(name, '_', ' ');
    html += fmt::format("<div><b>{}</b>{}</div>\n", mapping.counts.at(std::string(word.text)), name);
  }
  html += "</div>\n" + facts(mapping) + sections(mapping) + "<h2>Records</h2>\n" + answering_table(mapping);
  html +=
      "<p class=\"small\">Met: every cell of every required requirement that answers passes. Not met: at least one "
      "fails. Not tested: anything else. The texts are paraphrases; the document itself decides.</p>\n";
  return html + "<p class=\"end\">— end of requirements —</p>\n</main>\n</body>\n</html>\n";
}

}  // namespace assay::requirements
