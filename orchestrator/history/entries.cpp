// entries: a sweep, an event and a baseline as JSON Lines.
#include "orchestrator/history/entries.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "orchestrator/files/exit_codes.h"
#include "orchestrator/history/history_internal.h"
#include "probes/core/json_io.h"

namespace assay::history {
namespace {

using nlohmann::json;

constexpr const char* kEntrySchema = "assay.history-entry/1";
constexpr const char* kEnding = ".zst";

[[noreturn]] void refuse_entry(const std::string& path, const std::string& what) {
  throw Broken(
      {{path, what, "take the file from a backup, or move it away to do without its contents"}, files::kExitRefused});
}

json line_from(std::string_view text, const std::string& path) {
  auto line = parse_json(text, path);
  if (!line) refuse_entry(path, line.error().what);
  return std::move(*line);
}

template <class Enum>
Enum word_in(const json& from, const char* key, const std::string& path) {
  const auto found = from_word<Enum>(from.at(key).get<std::string>());
  if (!found) refuse_entry(path, fmt::format("{} is not a known word", key));
  return *found;
}

json metric_json(const drift::Metric& metric) {
  json one = {{"name", metric.name},   {"probe", metric.probe},           {"revision", metric.revision},
              {"unit", metric.unit},   {"class", word_of(metric.type)},   {"lower_is_better", metric.lower_is_better},
              {"fatal", metric.fatal}, {"course", word_of(metric.course)}};
  if (metric.expected) one["expected"] = *metric.expected;
  return one;
}

drift::Metric metric_from(const json& one, const std::string& path) {
  drift::Metric metric{.name = one.at("name"),
                       .probe = one.at("probe"),
                       .revision = one.at("revision"),
                       .unit = one.at("unit"),
                       .type = word_in<drift::MetricClass>(one, "class", path),
                       .lower_is_better = one.at("lower_is_better"),
                       .fatal = one.at("fatal"),
                       .course = word_in<Course>(one, "course", path)};
  if (one.contains("expected")) metric.expected = one.at("expected").get<double>();
  return metric;
}

std::string sweep_text(const Sweep& sweep, json head) {
  std::map<std::string, std::size_t> numbers;
  json metrics = json::array();
  std::string lines;
  for (const UnitVisit& visit : sweep.visits) {
    json figures = json::array();
    for (const Figure& figure : visit.figures) {
      // The revision is part of a metric's identity: a new one within a sweep is an event.
      const auto [at, fresh] =
          numbers.emplace(fmt::format("{} {}", figure.metric.name, figure.metric.revision), metrics.size());
      if (fresh) metrics.push_back(metric_json(figure.metric));
      figures.push_back({at->second, figure.value, figure.uncertainty, figure.samples});
    }
    const drift::Unit& unit = visit.unit;
    lines += json{{"unit", {unit.id, unit.kind, unit.serial, unit.node, unit.slot, unit.leaf, unit.rack}},
                  {"cohort", visit.cohort},
                  {"state", word_of(visit.state)},
                  {"retest", visit.retest},
                  {"boot", visit.boot},
                  {"partner", visit.partner},
                  {"reason", visit.reason},
                  {"figures", std::move(figures)}}
                 .dump() +
             "\n";
  }
  head.update({{"run_sha256", sweep.run_sha256},
               {"started", sweep.started},
               {"utc_offset_s", sweep.utc_offset_s},
               {"night", drift::date_text(sweep.night)},
               {"origin", word_of(sweep.origin)},
               {"verdict", sweep.verdict},
               {"label", sweep.label},
               {"visits", sweep.visits.size()},
               {"metrics", std::move(metrics)}});
  return head.dump() + "\n" + lines;
}

drift::Date night_in(const json& head, const std::string& path) {
  const auto night = drift::date_from(head.at("night").get<std::string>());
  if (!night) refuse_entry(path, "night is no date");
  return *night;
}

Sweep sweep_from(const json& head, std::string_view lines, const std::string& path) {
  Sweep sweep{.run_sha256 = head.at("run_sha256"),
              .started = head.at("started"),
              .utc_offset_s = head.at("utc_offset_s"),
              .night = night_in(head, path),
              .origin = word_in<Origin>(head, "origin", path),
              .verdict = head.at("verdict"),
              .label = head.at("label")};
  std::vector<drift::Metric> metrics;
  for (const json& one : head.at("metrics")) metrics.push_back(metric_from(one, path));
  while (!lines.empty()) {
    const auto end = lines.find('\n');
    const json line = line_from(lines.substr(0, end), path);
    lines = end == std::string_view::npos ? std::string_view{} : lines.substr(end + 1);
    const json& unit = line.at("unit");
    UnitVisit visit{.unit = {.id = unit.at(0),
                             .kind = unit.at(1),
                             .serial = unit.at(2),
                             .node = unit.at(3),
                             .slot = unit.at(4),
                             .leaf = unit.at(5),
                             .rack = unit.at(6)},
                    .cohort = line.at("cohort"),
                    .state = word_in<drift::VisitState>(line, "state", path),
                    .retest = line.at("retest"),
                    .boot = line.at("boot"),
                    .partner = line.at("partner"),
                    .reason = line.at("reason")};
    for (const json& figure : line.at("figures"))
      visit.figures.push_back({.metric = metrics.at(figure.at(0)),
                               .value = figure.at(1),
                               .uncertainty = figure.at(2),
                               .samples = figure.at(3)});
    sweep.visits.push_back(std::move(visit));
  }
  if (sweep.visits.size() != std::size_t{Whole(head.at("visits"))}) refuse_entry(path, "has lost visits");
  return sweep;
}

Entry read(std::string_view text, const std::string& path) {
  const auto end = text.find('\n');
  const json head = line_from(text.substr(0, end), path);
  if (head.at("schema") != kEntrySchema) refuse_entry(path, "is not " + std::string(kEntrySchema));
  const std::string kind = head.at("kind");
  const std::string_view rest = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
  if (kind == kEvent)
    return drift::Event{.night = night_in(head, path),
                        .time = head.at("time"),
                        .scope = head.at("scope"),
                        .kind = word_in<drift::EventKind>(head, "event", path),
                        .text = head.at("text"),
                        .who = head.at("who")};
  Sweep sweep = sweep_from(head, rest, path);
  if (kind == kBaseline) return Baseline{.acceptance = std::move(sweep), .who = head.at("who")};
  if (kind != kSweep) refuse_entry(path, "is of an unknown kind");
  return sweep;
}

}  // namespace

std::string entry_name(std::int64_t number, std::string_view kind) {
  return fmt::format("{:012}-{}{}", number, kind, kEnding);
}

std::string entry_text(const Sweep& sweep) { return sweep_text(sweep, {{"schema", kEntrySchema}, {"kind", kSweep}}); }

std::string entry_text(const Sweep& acceptance, const std::string& who) {
  return sweep_text(acceptance, {{"schema", kEntrySchema}, {"kind", kBaseline}, {"who", who}});
}

std::string entry_text(const drift::Event& event) {
  const json head = {{"schema", kEntrySchema}, {"kind", kEvent},       {"night", drift::date_text(event.night)},
                     {"time", event.time},     {"scope", event.scope}, {"event", word_of(event.kind)},
                     {"text", event.text},     {"who", event.who}};
  return head.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
}

Entry entry_from(std::string_view text, const std::string& path) {
  try {
    return read(text, path);
  } catch (const json::exception& error) {
    refuse_entry(path, error.what());
  } catch (const std::out_of_range&) {
    refuse_entry(path, "names a metric that there is not");
  }
}

std::vector<std::string> entry_files(const std::string& database) {
  std::vector<std::string> files;
  std::error_code none;
  for (std::filesystem::directory_iterator at(database + ".raw", none), end; !none && at != end; at.increment(none)) {
    const std::string name = at->path().filename().string();
    constexpr std::size_t kDigits = 12;
    const bool numbered =
        name.size() > kDigits && name[kDigits] == '-' &&
        std::all_of(name.begin(), name.begin() + kDigits, [](char c) { return c >= '0' && c <= '9'; });
    if (numbered && name.ends_with(kEnding)) files.push_back(at->path().string());
  }
  std::ranges::sort(files);
  return files;
}

}  // namespace assay::history
