// gpus: on the first page the boards, and each rate with the clock, power and temperature at which it was measured; the
// short names of GPUs.
#include <algorithm>
#include <cctype>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>
#include <unordered_set>

#include <fmt/ranges.h>

#include "probes/core/json_io.h"
#include "reports/figures/html.h"
#include "reports/figures/result_text.h"
#include "reports/page/sections.h"

namespace assay::page {
namespace {

/// The probe's record of the GPU of `result` in its last attempt; null without one.
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
  return result.value && result.subject.kind == "gpu" &&
         (result.unit == "FLOP/s" || result.unit == "B/s" || result.unit == "FLOP/J");
}

/// The results of one requirement.
struct Rates {
  const judge::Result* slowest = nullptr;
  std::size_t gpus = 0;
};

std::string row_of(const ReportContent& content, const plan::Requirement& requirement, const Rates& rates,
                   const Scale& scale) {
  const judge::Result& slowest = *rates.slowest;
  const auto seen = [&](const char* name) { return recorded(content, slowest, name); };
  constexpr double kMega = 1e6;
  const Value* clock = seen("sm_clock_counted_hz");  // NVML's is 10 % away under a power limit
  if (clock == nullptr) clock = seen("sm_clock_mean_hz");
  return figures::row(
      {fmt::format("<a href=\"#{}\">{}</a> {}", anchor_of(content.run.plan.profile, requirement.id),
                   figures::requirement_number(content.run.plan.profile, requirement.id),
                   figures::escape(requirement.title)) +
           (rates.gpus == 1 ? ""
                            : fmt::format("<br><small>{}, slowest of {}</small>",
                                          figures::escape(figures::subject_words(slowest)), rates.gpus)),
       "<strong>" + figures::escape(figures::text_in(scale, slowest, *slowest.value)) + "</strong>",
       figures::limit_text(scale, slowest, "<br>"), number_words(clock, kMega, " MHz"),
       number_words(seen("power_mean_w"), 1, " W") + " of " + number_words(seen("power_limit_w"), 1, " W"),
       number_words(seen("temperature_max_c"), 1, " °C"), number_words(seen("memory_temperature_max_c"), 1, " °C")});
}

/// The power of the checks of one probe, on the GPU of the least.
struct Detection {
  std::optional<double> stuck_share, flip_rate, wrong_rate;

  void take(const std::string& name, double value) {
    if (name == "detects_stuck_share") stuck_share = std::min(stuck_share.value_or(value), value);
    if (name == "detects_flip_rate") flip_rate = std::max(flip_rate.value_or(value), value);
    if (name == "detects_wrong_rate") wrong_rate = std::max(wrong_rate.value_or(value), value);
  }
};

/// One line with the wrong bits that the checks of each probe would have shown; empty unless a record states it.
std::string detection_line(const ReportContent& content) {
  std::map<std::string_view, Detection> probes;
  for (const auto& [step, records] : content.records) {
    for (const auto& record : records) {
      for (const auto& condition : record.conditions) {
        const auto value = number_in(condition.value);
        if (value && condition.name.starts_with("detects_")) probes[record.start.probe].take(condition.name, *value);
      }
    }
  }
  std::string words;
  for (const auto& [probe, seen] : probes) {
    std::vector<std::string> parts;
    if (seen.stuck_share) parts.push_back(fmt::format("a stuck bit in {:.4g} of the memory", *seen.stuck_share));
    if (seen.flip_rate) parts.push_back(fmt::format("{:.3g} flips a GiB and hour of memory", *seen.flip_rate));
    if (seen.wrong_rate) parts.push_back(fmt::format("{:.3g} wrong results an hour of products", *seen.wrong_rate));
    if (parts.empty()) continue;
    words += fmt::format("{}<code>{}</code>: {}", words.empty() ? "" : "; ", figures::escape(std::string(probe)),
                         fmt::join(parts, ", "));
  }
  if (words.empty()) return "";
  return "<p id=\"detection\">Power of detection, on the GPU of the least: the checks find with a probability of "
         "0.95 " +
         words + ".</p>\n";
}

/// One row for each class of faults that a probe put into its data, on the GPU where the fewest are found.
std::string faults_table(const ReportContent& content) {
  constexpr std::string_view kBegin = "detects_", kEnd = "_low";
  struct Found {
    double low = 2, high = 0, put = 0;
  };
  std::map<std::pair<std::string_view, std::string>, Found> least;  // by probe and class
  for (const auto& [step, records] : content.records) {
    for (const auto& record : records) {
      for (const auto& condition : record.conditions) {
        if (!condition.name.starts_with(kBegin) || !condition.name.ends_with(kEnd)) continue;
        const std::string name = condition.name.substr(0, condition.name.size() - kEnd.size());
        const auto number = [&](const char* suffix) {
          const auto seen = conditions_of(record, name + suffix, condition.subject);
          return seen.empty() ? std::nullopt : number_in(seen.back()->value);
        };
        const auto low = number_in(condition.value), high = number("_high"), put = number("_put");
        if (!low || !high || !put) continue;
        Found& one = least[{record.start.probe, name.substr(kBegin.size())}];
        if (*low < one.low) one = {.low = *low, .high = *high, .put = *put};
      }
    }
  }
  std::vector<std::string> rows;
  for (const auto& [of, one] : least)
    rows.push_back(
        figures::row({"<code>" + figures::escape(std::string(of.first)) + "</code>", figures::escape(of.second),
                      fmt::format("{:.4g} to {:.4g}", one.low, one.high), fmt::format("{:g}", one.put)}));
  if (rows.empty()) return "";
  return figures::table("gpus", "Faults put into the data of checks, on the GPU of the least",
                        {"Probe", "Class", "Share found in an hour, 95 % bounds", "Put in"}, rows);
}

/// One GPU by its records.
struct Board {
  std::string node, model, serial, address, driver;
};

/// The GPUs that were judged, by UUID.
std::map<std::string_view, Board> boards_of(const ReportContent& content) {
  std::map<std::string_view, Board> boards;
  for (const auto& result : content.verdict.results) {
    if (result.subject.kind == "gpu") boards[result.subject.id].node = result.node;
  }
  for (const auto& [step, records] : content.records) {
    for (const auto& record : records) {
      for (const auto& [name, subject, value] : record.conditions) {
        const auto* text = std::get_if<std::string>(&value);
        const auto found = boards.find(subject.id);
        if (text == nullptr || subject.kind != "gpu" || found == boards.end()) continue;
        if (name == "device_name" || name == "model") found->second.model = *text;
        if (name == "serial") found->second.serial = *text;
        if (name == "pci_bus_id" || name == "pci_address") found->second.address = *text;
        if (name == "driver_version") found->second.driver = *text;
      }
    }
  }
  return boards;
}

constexpr std::size_t kUuid = 40;  // characters of GPU-8f2c01d4-1111-2222-3333-444444444444, and of MIG-…

bool is_uuid(std::string_view text) {
  if (text.size() != kUuid || (!text.starts_with("GPU-") && !text.starts_with("MIG-"))) return false;
  for (std::size_t i = 4; i < kUuid; ++i) {
    const bool dash = i == 12 || i == 17 || i == 22 || i == 27;
    if (dash != (text[i] == '-') || (!dash && std::isxdigit(static_cast<unsigned char>(text[i])) == 0)) return false;
  }
  return true;
}

/// The UUIDs that have a short name, which is their first `length` characters.
struct ShortNames {
  std::unordered_set<std::string_view> uuids;
  std::size_t length = kUuid;
};

ShortNames short_names(const ReportContent& content) {
  ShortNames names;
  for (const auto& [id, board] : boards_of(content)) {
    if (is_uuid(id)) names.uuids.insert(id);
  }
  for (const std::size_t length : {12U, 17U, 22U, 27U}) {  // up to a hyphen, as nvidia-smi takes a prefix
    std::set<std::string_view> shorter;
    for (const auto uuid : names.uuids) shorter.insert(uuid.substr(0, length));
    if (shorter.size() != names.uuids.size()) continue;
    names.length = length;
    break;
  }
  return names;
}

std::string board_row(const std::string& name, const Board& board, const std::string& last) {
  const auto known = [](const std::string& text) { return text.empty() ? "—" : figures::escape(text); };
  return figures::row(
      {name, figures::escape(board.node), known(board.model), known(board.serial), known(board.address), last});
}

}  // namespace

std::string with_short_names(const ReportContent& content, std::string html) {
  const ShortNames names = short_names(content);
  if (names.uuids.empty() || names.length == kUuid) return html;
  std::string out;
  std::size_t from = 0;
  for (std::size_t at = html.find_first_of("GM"); at != std::string::npos; at = html.find_first_of("GM", at + 1)) {
    if (at < from || !names.uuids.contains(std::string_view(html).substr(at, kUuid))) continue;
    out += html.substr(from, at + names.length - from);
    from = at + kUuid;
  }
  return out + html.substr(from);
}

std::string gpu_names_section(const ReportContent& content) {
  const ShortNames names = short_names(content);
  const auto boards = boards_of(content);
  if (boards.empty()) return "";
  std::vector<std::string> rows;
  for (const auto& [id, board] : boards) {
    if (rows.size() == kMostListed) break;
    const auto shown = names.uuids.contains(id) ? id.substr(0, names.length) : id;
    rows.push_back(board_row(figures::escape(shown), board, "<code>" + figures::escape(id) + "</code>"));
  }
  std::string html =
      "<h3 id=\"gpu-names\">GPUs</h3>\n" +
      figures::table("boards", "GPUs and their short names",
                     {"Name in this report", "Node", "Model", "Serial number", "PCI address", "UUID"}, rows);
  if (rows.size() < boards.size())
    html += fmt::format("<p>The first {} of {}; evidence/records has all.</p>\n", rows.size(), boards.size());
  return html;
}

std::string gpu_section(const ReportContent& content) {
  constexpr std::size_t kMostBoards = 16;  // named on the first page
  std::map<std::string, Rates> rates;      // by requirement
  for (const auto& result : content.verdict.results) {
    if (!is_rate_of_gpu(result) || recorded(content, result, "device_name") == nullptr) continue;
    Rates& own = rates[result.requirement];
    ++own.gpus;
    if (own.slowest == nullptr || *result.value < *own.slowest->value) own.slowest = &result;
  }
  const std::string detection = detection_line(content) + faults_table(content);
  if (rates.empty() && detection.empty()) return "";
  std::string html = "<h2 id=\"gpus\">GPUs</h2>\n";
  const auto boards = boards_of(content);
  std::map<std::pair<std::string, std::string>, std::size_t> kinds;  // by model and driver
  std::vector<std::string> named;
  for (const auto& [id, board] : boards) {
    ++kinds[{board.model, board.driver}];
    if (boards.size() <= kMostBoards)
      named.push_back(
          board_row("<a href=\"#gpu-names\">" + figures::escape(id) + "</a>", board, figures::escape(board.driver)));
  }
  for (const auto& [kind, number] : kinds)
    html += fmt::format("<p>{} × <strong>{}</strong>, driver {}</p>\n", number, figures::escape(kind.first),
                        figures::escape(kind.second));
  if (!named.empty())
    html += figures::table("boards", "GPUs", {"GPU", "Node", "Model", "Serial number", "PCI address", "Driver"}, named);
  std::map<std::string_view, std::vector<const judge::Result*>> by_unit;
  for (const auto& [id, own] : rates) by_unit[own.slowest->unit].push_back(own.slowest);
  std::set<std::tuple<std::string, std::string, std::string>> shown;  // step, metric and place of a figure
  std::vector<std::string> rows;
  for (const auto& requirement : content.run.plan.profile.requirements) {
    const auto own = rates.find(requirement.id);
    if (own == rates.end()) continue;
    // A rate with several limits is one figure.
    if (shown.insert({own->second.slowest->step, requirement.metric, to_json(requirement.at).dump()}).second)
      rows.push_back(
          row_of(content, requirement, own->second, figures::column_scale(by_unit[own->second.slowest->unit])));
  }
  if (!rows.empty())
    html += figures::table("gpus", "Rates of GPUs, the slowest of each figure",
                           {"Figure", "Rate", "Limit", "SM clock", "Power, mean", "Temperature", "Memory"}, rows);
  return html + detection;
}

}  // namespace assay::page
