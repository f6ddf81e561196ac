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
  html += with_short_names(content, cover_section(content) + conformity_section(content) + decision_section(content) +
                                        coverage_section(content) + results_section(content) +
                                        localised_section(content) + conditions_section(content) +
                                        deviations_section(content) + methods_section(content));
  html += instruments_section(content) + nodes_section(content) + gpu_names_section(content);
  html += with_short_names(content, attempts_section(content)) + evidence_section(content);
  html += non_claims_section(content) + verification_section(content);
  return html + "<p class=\"end\">— end of report —</p>\n</main>\n</body>\n</html>\n";
}

}  // namespace assay::page
