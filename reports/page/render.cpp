// render: the report as one HTML page without references to other files.
#include "reports/page/render.h"

#include <iterator>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "orchestrator/files/in_parallel.h"
#include "reports/figures/html.h"
#include "reports/page/sections.h"
#include "reports/page/style.h"

namespace assay::page {
namespace {

struct Section {
  const char* name;
  std::string (*make)(const ReportContent&);
  bool has_short_names = false;  ///< of GPUs
};
constexpr Section kSections[] = {{"cover", cover_section, true},
                                 {"statement of conformity", conformity_section, true},
                                 {"decision rule", decision_section, true},
                                 {"coverage", coverage_section, true},
                                 {"results", results_section, true},
                                 {"faults located", localised_section, true},
                                 {"conditions", conditions_section, true},
                                 {"deviations", deviations_section, true},
                                 {"methods", methods_section, true},
                                 {"instruments", instruments_section},
                                 {"machines", nodes_section},
                                 {"names of GPUs", gpu_names_section},
                                 {"attempts", attempts_section, true},
                                 {"evidence", evidence_section},
                                 {"what is not claimed", non_claims_section},
                                 {"how to verify", verification_section}};

/// The sections in their order, made by several threads.
std::string sections_of(const ReportContent& content) {
  std::vector<std::string> all(std::size(kSections));
  files::in_parallel(all.size(), files::usual_threads(), [&](unsigned, std::size_t i) {
    all[i] = part_of_page(kSections[i].name, [&] { return kSections[i].make(content); });
  });
  std::string html;
  for (std::size_t i = 0; i < all.size();) {
    const bool shortens = kSections[i].has_short_names;
    std::string neighbours;
    for (; i < all.size() && kSections[i].has_short_names == shortens; ++i) neighbours += all[i];
    html += shortens ? with_short_names(content, std::move(neighbours)) : neighbours;
  }
  return html;
}

}  // namespace

std::string render_html(const ReportContent& content) {
  const std::string run_id = content.run.journal.run_id;
  const bool simulated = content.run.plan.simulation.has_value();
  const std::string title = report_title(content);
  std::string html = "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n";
  // The policy makes the browser fetch nothing.
  html += "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n";
  html += "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n";
  html += fmt::format("<meta name=\"generator\" content=\"{}\">\n", kRenderer);
  const std::string what = fmt::format("{}, {}", figures::escape(content.run.plan.site.name),
                                       figures::escape(content.run.plan.profile.name));
  const std::string head =
      simulated ? fmt::format("{}: {}", figures::escape(title), what)
                : fmt::format("{}: {} — {}", to_string(content.verdict.overall), what, figures::escape(title));
  html += fmt::format("<title>{} {}</title>\n<style>{}{}</style>\n</head>\n<body>\n<main>\n", head,
                      figures::escape(run_id), style_sheet(title + " " + run_id), simulated ? watermark_style() : "");
  // Fixed elements are printed on every page.
  if (simulated) html += "<div class=\"watermark\">SIMULATION</div>\n";
  html += sections_of(content);
  html += "<p class=\"end\">— end of report —</p>\n</main>\n</body>\n</html>\n";
  return html;
}

}  // namespace assay::page
