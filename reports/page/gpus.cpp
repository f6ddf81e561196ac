// gpus: on the first page, each rate of GPUs with the clock, power and temperature at which it was measured.
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "probes/core/json_io.h"
#include "reports/figures/html.h"
#include "reports/figures/result_text.h"
#include "reports/page/sections.h"

namespace assay::page {
namespace {

/// What the probe recorded of the GPU of `result` in its last attempt; null where nothing is.
const Value* recorded(const ReportContent& content, const judge::Result& result, std::string_view name) {
  const auto records = content.records.find(result.step);
  if (records == content.records.end()) return nullptr;
  const Value* last = nullptr;
  for (const auto& record : records->second) {
    for (const auto& condition : record.conditions) {
      if (condition.name == name && condition.subject == result.subject) last = &condition.value;
    }
  }
  return last;
}

std::string number_words(const Value* value, double unit, const char* suffix) {
  const auto number = value == nullptr ? std::nullopt : number_in(*value);
  return number ? fmt::format("{:.0f}{}", *number / unit, suffix) : "—";
}

bool is_rate_of_gpu(const judge::Result& result) {
  return result.value && result.subject.kind == "gpu" && (result.unit == "FLOP/s" || result.unit == "B/s");
}

std::string text_of(const Value* value) {
  const auto* text = value == nullptr ? nullptr : std::get_if<std::string>(value);
  return text == nullptr ? "—" : *text;
}

/// The results of one requirement.
struct Rates {
  const judge::Result* slowest = nullptr;
  std::size_t gpus = 0;
};

std::string row_of(const ReportContent& content, const plan::Requirement& requirement, const Rates& rates) {
  const judge::Result& slowest = *rates.slowest;
  const auto seen = [&](const char* name) { return recorded(content, slowest, name); };
  constexpr double kMega = 1e6;
  const Value* clock = seen("sm_clock_counted_hz");  // NVML's is 10 % away under a power limit
  if (clock == nullptr) clock = seen("sm_clock_mean_hz");
  return figures::row(
      {fmt::format("<a href=\"#{}\">{}</a> {}", anchor_of(content.run.plan.profile, requirement.id),
                   figures::requirement_number(content.run.plan.profile, requirement.id),
                   figures::escape(requirement.title)),
       figures::escape(figures::subject_words(slowest)) +
           (rates.gpus == 1 ? "" : fmt::format(", slowest of {}", rates.gpus)),
       figures::escape(figures::result_scale(slowest).text(*slowest.value)), number_words(clock, kMega, " MHz"),
       number_words(seen("power_mean_w"), 1, " W") + " of " + number_words(seen("power_limit_w"), 1, " W"),
       number_words(seen("temperature_max_c"), 1, " °C"), number_words(seen("memory_temperature_max_c"), 1, " °C")});
}

}  // namespace

std::string gpu_section(const ReportContent& content) {
  std::map<std::string, Rates> rates;                                       // by requirement
  std::map<std::pair<std::string, std::string>, std::set<Subject>> boards;  // by name and driver
  for (const auto& result : content.verdict.results) {
    if (!is_rate_of_gpu(result)) continue;
    const Value* name = recorded(content, result, "device_name");
    if (name == nullptr) continue;
    boards[{text_of(name), text_of(recorded(content, result, "driver_version"))}].insert(result.subject);
    Rates& own = rates[result.requirement];
    ++own.gpus;
    if (own.slowest == nullptr || *result.value < *own.slowest->value) own.slowest = &result;
  }
  if (rates.empty()) return "";
  std::string html = "<h2 id=\"gpus\">GPUs</h2>\n";
  for (const auto& [board, gpus] : boards)
    html += fmt::format("<p>{} × <strong>{}</strong>, driver {}</p>\n", gpus.size(), figures::escape(board.first),
                        figures::escape(board.second));
  std::set<std::tuple<std::string, std::string, std::string>> shown;  // step, metric and place of a figure
  std::vector<std::string> rows;
  for (const auto& requirement : content.run.plan.profile.requirements) {
    const auto own = rates.find(requirement.id);
    if (own == rates.end()) continue;
    // A rate that is held against several limits is one figure.
    if (shown.insert({own->second.slowest->step, requirement.metric, to_json(requirement.at).dump()}).second)
      rows.push_back(row_of(content, requirement, own->second));
  }
  return html + figures::table("gpus", "Rates of GPUs, the slowest of each figure",
                               {"Figure", "GPU", "Rate", "SM clock", "Power, mean", "Temperature", "Memory"}, rows);
}

}  // namespace assay::page
