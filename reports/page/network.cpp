// network: figures of one requirement, and of measurements on several nodes.
#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "orchestrator/plan/metered.h"
#include "probes/core/scale.h"
#include "reports/figures/course_chart.h"
#include "reports/figures/html.h"
#include "reports/figures/network_curves.h"
#include "reports/figures/pair_chart.h"
#include "reports/figures/rail_chart.h"
#include "reports/figures/record_charts.h"
#include "reports/page/sections.h"

namespace assay::page {
namespace {

std::string figure(const std::string& svg, const std::string& caption) {
  if (svg.empty()) return "";
  return fmt::format("<figure>\n{}<figcaption>{}</figcaption>\n</figure>\n", svg, caption);
}

std::string figures(const std::vector<figures::NetworkCurve>& curves) {
  std::string html;
  for (const auto& one : curves) html += figure(figures::curve_svg(one.curve), one.caption);
  return html;
}

constexpr std::size_t kMostLinks = 512;  // rows of the table; the record has all

/// The figures of each port of a switch while loads ran: the largest of all attempts, of rate and light the smallest.
std::map<Subject, std::map<std::string, double>> counts_of_ports(const ReportContent& content) {
  std::map<Subject, std::map<std::string, double>> all;
  for (const auto& [step, records] : content.metered) {
    for (const auto& record : records) {
      for (const auto& one : record.measurements) {
        if (one.subject.kind != "switch_port" || one.samples.empty()) continue;
        const bool least = one.metric == "link_rate" || one.metric == "optical_power" || one.metric == "link_up";
        const double value = least ? *std::ranges::min_element(one.samples) : *std::ranges::max_element(one.samples);
        const auto [known, fresh] = all[one.subject].emplace(one.metric, value);
        if (!fresh) known->second = least ? std::min(known->second, value) : std::max(known->second, value);
      }
    }
  }
  return all;
}

/// The figures of the verdict of each adapter, "link_rate 50 GB/s", by node and name.
std::map<std::pair<std::string, std::string>, std::string> figures_of_nics(const ReportContent& content) {
  std::map<std::pair<std::string, std::string>, std::string> all;
  for (const auto& result : content.verdict.results) {
    if (result.subject.kind != "nic" || !result.value) continue;
    std::string& words = all[{result.node, result.subject.id}];
    words += fmt::format("{}{} {}", words.empty() ? "" : ", ", content.requirement(result.requirement).figure(),
                         for_people(*result.value, result.unit));
  }
  return all;
}

/// Both ends of every link between a switch and a node, side by side; those on which the switch counted most first.
std::string links_table(const ReportContent& content) {
  const auto counts = counts_of_ports(content);
  if (counts.empty()) return "";
  const auto nics = figures_of_nics(content);
  const auto nic = [&](const plan::CabledPort& port) {
    if (port.end == nullptr) return std::string("not in the site");
    for (const auto& name : {port.end->interface, port.end->device})
      if (const auto found = nics.find({port.node, name}); found != nics.end()) return found->second;
    return std::string("no figure");
  };
  std::vector<std::pair<double, std::string>> rows;
  for (const auto& port : plan::cabled_ports(content.run.plan.site)) {
    const auto found = counts.find(port.subject());
    if (found == counts.end()) continue;
    const auto words = [&](const char* metric, std::string_view unit) {
      const auto value = found->second.find(metric);
      return value == found->second.end() ? std::string("not told") : for_people(value->second, unit);
    };
    double faults = 0;
    for (const char* metric : {"in_errors", "out_errors", "in_discards", "out_discards", "fcs_errors", "symbol_errors",
                               "link_changes", "cabling_wrong"})
      if (const auto value = found->second.find(metric); value != found->second.end()) faults += value->second;
    rows.emplace_back(
        -faults,
        figures::row({figures::escape(port.subject().id), words("link_rate", "B/s"), words("in_errors", "1"),
                      words("symbol_errors", "1"), words("out_discards", "1"), words("in_pause_frames", "1"),
                      words("out_pause_frames", "1"), words("optical_power", "W"),
                      figures::escape(port.end == nullptr ? "-" : port.end_words()), figures::escape(nic(port))}));
  }
  std::ranges::stable_sort(rows, {}, &std::pair<double, std::string>::first);
  std::vector<std::string> shown;
  for (std::size_t i = 0; i < std::min(rows.size(), kMostLinks); ++i) shown.push_back(std::move(rows[i].second));
  return figures::table("links",
                        fmt::format("Links between switches and nodes, {} of {}: what the switch counted while loads "
                                    "ran, and the figures of the node's end",
                                    shown.size(), rows.size()),
                        {"Switch port", "Rate", "Errors in", "Invalid symbols", "Discards out", "Pause in", "Pause out",
                         "Least light", "Leads to", "The node's end"},
                        shown);
}

}  // namespace

/// Both directions of the same pairs share one matrix, shown with the first of the two requirements.
std::string pair_figure(const ReportContent& content, const figures::StepIndex& steps,
                        const plan::Requirement& requirement, const figures::ResultsOf& results) {
  const plan::Plan& plan = content.run.plan;
  const plan::Requirement* other = figures::other_direction(plan.profile, requirement);
  if (other != nullptr && other < &requirement)
    return fmt::format("<p class=\"small\">For the matrix of its pairs see {}.</p>\n",
                       figures::requirement_number(content.run.plan.profile, other->id));
  const auto own = results.find(requirement.id);
  if (own == results.end()) return "";
  const auto reverse = other == nullptr ? results.end() : results.find(other->id);
  const figures::Chart chart =
      figures::pair_chart(plan, steps, requirement, own->second,
                          reverse == results.end() ? std::vector<const judge::Result*>() : reverse->second);
  return figure(chart.svg, chart.caption);
}

std::string requirement_charts(const ReportContent& content, const figures::StepIndex& steps,
                               const plan::Requirement& requirement, const figures::ResultsOf& results, bool counter) {
  std::string html;
  if (requirement.scope == plan::JudgedScope::pair && !counter)
    html += pair_figure(content, steps, requirement, results);
  const auto own = results.find(requirement.id);
  if (own == results.end()) return html;
  const figures::Chart rails =
      counter ? figures::Chart{} : figures::rail_chart(content.run.plan, steps, requirement, own->second);
  const figures::Chart faults = figures::fault_chart(content.run.plan, requirement, own->second, content.records);
  html += figure(rails.svg, rails.caption) + figure(faults.svg, faults.caption);
  for (const auto& chart : figures::training_charts(content.run.plan, requirement, own->second, content.records))
    html += figure(chart.svg, chart.caption);
  for (const auto& chart : figures::soak_charts(content.run.plan, requirement, own->second, content.records))
    html += figure(chart.svg, chart.caption);
  const auto offload =
      figures::offload_chart(content.run.plan, content.run.journal, requirement, own->second, content.records);
  html += figure(offload.svg, offload.caption);
  html += figures::distance_tables(content.run.plan, requirement, own->second, content.records);
  for (const auto& chart : figures::memory_curves(content.run.plan, requirement, own->second, content.records))
    html += figure(chart.svg, chart.caption);
  for (const auto& chart : figures::heat_curves(content.run.plan, requirement, own->second, content.records))
    html += figure(chart.svg, chart.caption);
  for (const auto& chart :
       figures::step_curves(content.run.plan, requirement, own->second, content.records, content.watches))
    html += figure(chart.svg, chart.caption);
  return html;
}

std::string network_section(const ReportContent& content, const figures::StepIndex& steps,
                            const figures::ResultsOf& results) {
  const figures::CurveSources sources{
      .plan = content.run.plan, .steps = steps, .results = results, .wire_limits = content.wire_limits};
  const std::string sizes = figures(figures::size_curves(sources));
  const std::string groups = figures(figures::scaling_curves(sources));
  const std::string knees = figures(figures::knee_curves(content.run.plan, content.verdict));
  std::string html;
  if (!sizes.empty())
    html +=
        "<h3>By message size</h3>\n<p>Requirements that differ only in the message size share a figure.</p>\n" + sizes;
  if (!groups.empty())
    html += "<h3>By number of nodes</h3>\n<p>The same measurement on groups of increasing size shares a figure.</p>\n" +
            groups;
  if (!knees.empty())
    html +=
        "<h3 id=\"knees\">Knees</h3>\n<p>Up to how many nodes a figure keeps its plateau; at a fall extra tests "
        "narrow the number and exchange the last nodes, so that a bad node is not taken for a knee.</p>\n" +
        knees;
  if (const std::string links = links_table(content); !links.empty())
    html += "<h3>Both ends of each link</h3>\n" + links;
  return html;
}

}  // namespace assay::page
