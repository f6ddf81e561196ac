// grafana: panels and their queries.
#include "reports/nightly/grafana.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace assay::nightly {
namespace {

using nlohmann::json;

const json kSource = {{"type", "prometheus"}, {"uid", "${datasource}"}};

json place(int x, int y, int width, int height) { return {{"x", x}, {"y", y}, {"w", width}, {"h", height}}; }

json panel(int id, const char* type, const char* title, const char* query, const char* legend, json where) {
  const bool table = std::string(type) == "table";
  json target = {{"refId", "A"}, {"datasource", kSource}, {"expr", query}, {"legendFormat", legend}};
  if (table) target.update({{"format", "table"}, {"instant", true}});
  return {{"id", id},
          {"type", type},
          {"title", title},
          {"datasource", kSource},
          {"gridPos", std::move(where)},
          {"targets", json::array({std::move(target)})},
          {"fieldConfig", {{"defaults", json::object()}, {"overrides", json::array()}}},
          {"options", json::object()}};
}

}  // namespace

std::string grafana_dashboard() {
  json age = panel(4, "stat", "Time since the newest sweep", "time() - max(assay_sweep_last_start_timestamp_seconds)",
                   "", place(12, 0, 6, 5));
  age["fieldConfig"]["defaults"]["unit"] = "s";
  json panels = json::array(
      {panel(1, "stat", "Confirmed flags", "sum(assay_flags{state=~\"confirmed|draining|lemon\"}) or vector(0)", "",
             place(0, 0, 6, 5)),
       panel(2, "stat", "Open flags", "sum(assay_flags{state!=\"watch\"}) or vector(0)", "", place(6, 0, 6, 5)),
       std::move(age), panel(5, "stat", "Overdue units", "max(assay_units_overdue)", "", place(18, 0, 6, 5)),
       panel(6, "table", "Flagged levels: figure over reference", "sort(assay_drift_ratio)", "{{unit}} {{metric}}",
             place(0, 5, 24, 9)),
       panel(7, "timeseries", "Units by outcome of the night", "assay_sweep_units", "{{state}}", place(0, 14, 12, 8)),
       panel(8, "timeseries", "Ratio of flagged levels", "assay_drift_ratio", "{{unit}} {{metric}}",
             place(12, 14, 12, 8))});
  const json dashboard = {
      {"uid", "assay-nightly"},
      {"title", "assay: nightly sweeps"},
      {"tags", {"assay"}},
      {"timezone", "browser"},
      {"schemaVersion", 36},
      {"version", 1},
      {"refresh", "5m"},
      {"time", {{"from", "now-30d"}, {"to", "now"}}},
      {"templating",
       {{"list",
         {{{"name", "datasource"}, {"type", "datasource"}, {"query", "prometheus"}, {"label", "Data source"}}}}}},
      {"annotations", {{"list", json::array()}}},
      {"panels", std::move(panels)}};
  return dashboard.dump(1) + "\n";
}

std::string grafana_provider(const std::string& folder) {
  return fmt::format(
      "apiVersion: 1\nproviders:\n  - name: assay\n    type: file\n    disableDeletion: false\n    allowUiUpdates: "
      "true\n    options:\n"
      "      path: {}\n",
      json(folder).dump());  // a JSON string is a YAML string
}

}  // namespace assay::nightly
