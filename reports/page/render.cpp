// render: the report as one HTML page without references to other files.
#include "reports/page/render.h"

#include <fmt/format.h>

#include "reports/figures/html.h"
#include "reports/page/sections.h"
#include "reports/page/style.h"

namespace assay::page {
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
  const auto part = [&](const char* name, std::string (*section)(const ReportContent&)) {
    return part_of_page(name, [&] { return section(content); });
  };
  html += with_short_names(content, part("cover", cover_section) + part("statement of conformity", conformity_section) +
                                        part("decision rule", decision_section) + part("coverage", coverage_section) +
                                        part("results", results_section) + part("faults located", localised_section) +
                                        part("conditions", conditions_section) +
                                        part("deviations", deviations_section) + part("methods", methods_section));
  html += part("instruments", instruments_section) + part("machines", nodes_section) +
          part("names of GPUs", gpu_names_section);
  html += with_short_names(content, part("attempts", attempts_section)) + part("evidence", evidence_section);
  html += part("what is not claimed", non_claims_section) + part("how to verify", verification_section);
  html += "<p class=\"end\">— end of report —</p>\n</main>\n</body>\n</html>\n";
  return html;
}

}  // namespace assay::page
