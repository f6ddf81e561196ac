// actions: reads the table and finds rows by exact keys.
#include "profiles/actions.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <stdexcept>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "probes/core/json_io.h"
#include "probes/core/suggest.h"
#include "probes/core/utc_time.h"
#include "profiles/embedded.h"
#include "profiles/schema.h"

namespace assay::profiles {
namespace {

using nlohmann::json;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool is_number(std::string_view text) { return !text.empty() && std::ranges::all_of(text, is_digit); }

/// The parts of `text` between `separator`.
std::vector<std::string_view> parts_of(std::string_view text, std::string_view separator) {
  std::vector<std::string_view> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const auto end = std::min(text.find(separator, begin), text.size());
    if (end > begin) parts.push_back(text.substr(begin, end - begin));
    begin = end + separator.size();
  }
  return parts;
}

/// The values that `text` lists: "13, 48 (2 times)" and "13 48" are 13 and 48, "rx power 1 low" is "rx power low".
std::vector<std::string> values_in(std::string_view text) {
  std::vector<std::string> values;
  for (std::string_view part : parts_of(text, ", ")) {
    if (const auto times = part.find(" ("); times != std::string_view::npos && part.ends_with(" times)"))
      part = part.substr(0, times);
    const auto words = parts_of(part, " ");
    if (std::ranges::all_of(words, is_number)) {
      values.insert(values.end(), words.begin(), words.end());
      continue;
    }
    std::string value;
    for (const auto& word : words) {
      if (!is_number(word)) value.append(value.empty() ? "" : " ").append(word);
    }
    values.push_back(std::move(value));
  }
  std::ranges::sort(values);
  values.erase(std::ranges::unique(values).begin(), values.end());
  return values;
}

std::string text_in(const json& object, const char* name) { return object.value(name, std::string()); }

/// The row `given` in the document, once for each of its metrics.
std::vector<ActionRow> rows_of(const json& given, std::size_t place) {
  const auto metrics = given.value("metrics", std::vector<std::string>());
  ActionRow row{.probe = text_in(given, "probe"), .by = text_in(given, "by"), .place = place};
  for (const auto& kind : words_of(Found{})) {
    if (kind.value == Found::probe && !(row.name.empty() && metrics.empty())) continue;  // whose finding it is
    if (!given.contains(kind.text)) continue;
    row.found = kind.value;
    row.name = given.at(std::string(kind.text)).get<std::string>();
  }
  if (row.found == Found::probe) row.probe.clear();
  row.values = given.value("values", std::vector<std::string>());
  row.advice = {.action = from_word<Action>(text_in(given, "action")).value_or(Action::not_known),
                .finding = row.name,
                .says = text_in(given, "says"),
                .source = text_in(given, "source")};
  if (metrics.empty()) return {row};
  std::vector<ActionRow> all(metrics.size(), row);
  for (std::size_t i = 0; i < all.size(); ++i) all[i].name = all[i].advice.finding = metrics[i];
  return all;
}

/// The conflict between members of a row; nothing if they fit.
std::optional<InputError> row_problem(const json& given, const std::string& where) {
  const auto has = [&](const char* name) { return given.contains(name); };
  const int keys = int{has("metric")} + int{has("metrics")} + int{has("condition")} + int{has("culprit")};
  if (keys > 1 || (keys == 0 && !has("probe")))
    return InputError{where, "has no finding, or several", "name one metric, condition or culprit, or only a probe"};
  if (has("values") && !has("condition"))
    return InputError{where + ".values", "belongs to a condition", "leave it out, or name a condition"};
  if (has("by") && (has("action") || has("says") || has("source")))
    return InputError{where + ".by", "is given with an action", "the condition that it names has the action"};
  if (has("by")) return std::nullopt;
  for (const char* name : {"action", "says", "source"}) {
    if (!has(name))
      return InputError{where, fmt::format("the field '{}' is missing", name), "leave the row out if it is not known"};
  }
  return std::nullopt;
}

std::optional<InputError> day_problem(const std::string& day, const std::string& where) {
  if (given_time(day)) return std::nullopt;
  return InputError{where, fmt::format("'{}' is no day", day), "a date such as 2026-11-27"};
}

}  // namespace

const Advice& more_urgent(const Advice& a, const Advice& b) { return b.action < a.action ? b : a; }

std::string short_words(const Advice& advice) {
  return advice.finding.empty() ? std::string(word_of(advice.action))
                                : fmt::format("{} ({})", advice.action, advice.finding);
}

std::expected<ActionTable, InputError> ActionTable::read(std::string_view text, const std::string& where) {
  const auto document = parse_json(text, where);
  if (!document) return std::unexpected(document.error());
  if (auto problem = check_schema(*document, "actions.schema", where)) return std::unexpected(*problem);
  ActionTable table;
  table.date_ = document->at("date").get<std::string>();
  if (auto problem = day_problem(table.date_, where + ": date")) return std::unexpected(*problem);
  for (const auto& [name, given] : document->at("sources").items()) {
    const ActionSource& source = table.sources_[name] = {.document = text_in(given, "document"),
                                                         .address = text_in(given, "address"),
                                                         .date = text_in(given, "date"),
                                                         .status = text_in(given, "status")};
    if (auto problem = day_problem(source.date, fmt::format("{}: sources.{}.date", where, name)))
      return std::unexpected(*problem);
  }
  std::size_t place = 0;
  for (const auto& given : document->at("rows")) {
    if (auto problem = row_problem(given, fmt::format("{}: rows[{}]", where, place))) return std::unexpected(*problem);
    std::ranges::move(rows_of(given, place++), std::back_inserter(table.rows_));
  }
  if (auto problem = table.index(where)) return std::unexpected(*problem);
  return table;
}

std::optional<InputError> ActionTable::index(const std::string& where) {
  std::vector<std::string> names;
  for (const auto& [name, unused] : sources_) names.push_back(name);
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    const ActionRow& row = rows_[i];
    const std::string at = fmt::format("{}: rows[{}]", where, row.place);
    if (row.by.empty() && !sources_.contains(row.advice.source))
      return InputError{at + ".source", fmt::format("there is no source '{}'", row.advice.source),
                        suggestion(row.advice.source, names)};
    if (!row.by.empty() && std::ranges::none_of(rows_, [&](const ActionRow& other) {
          return other.found == Found::condition && other.name == row.by && !other.values.empty();
        }))
      return InputError{at + ".by", fmt::format("no row has values of the condition '{}'", row.by),
                        "add one, or give this row an action"};
    const std::vector<std::string> any = {""};
    for (const auto& value : row.values.empty() ? any : row.values) {
      const auto [known, is_new] = places_.emplace(Key{row.found, row.name, row.probe, value}, i);
      if (!is_new)
        return InputError{at,
                          fmt::format("{} {}{}{} has row {} already", row.found, row.name, value.empty() ? "" : " ",
                                      value, rows_[known->second].place),
                          "a finding has one action"};
    }
  }
  return std::nullopt;
}

const ActionRow* ActionTable::find(Found found, const std::string& name, const std::string& probe,
                                   const std::string& value) const {
  auto place = places_.find({found, name, probe, value});
  if (place == places_.end()) place = places_.find({found, name, "", value});
  return place == places_.end() ? nullptr : &rows_[place->second];
}

Advice ActionTable::of_probe(const std::string& probe) const {
  const ActionRow* row = find(Found::probe, probe);
  return row == nullptr ? Advice{} : row->advice;
}

Advice ActionTable::of_metric(const std::string& probe, const std::string& metric, std::string_view value) const {
  const ActionRow* row = find(Found::metric, metric, probe);
  if (row == nullptr) return of_probe(probe);
  return row->by.empty() ? row->advice : of_condition(probe, row->by, value);
}

Advice ActionTable::of_condition(const std::string& probe, const std::string& name, std::string_view value) const {
  if (const ActionRow* row = find(Found::condition, name, probe); row != nullptr && row->by.empty()) return row->advice;
  Advice worst{.action = Action::none};
  bool listed = false;
  for (const auto& one : values_in(value)) {
    const ActionRow* row = find(Found::condition, name, probe, one);
    Advice advice = row == nullptr ? Advice{} : row->advice;
    if (row != nullptr) advice.finding = name + " " + one;
    worst = listed ? more_urgent(worst, advice) : advice;
    listed = true;
  }
  return listed && worst.action != Action::not_known ? worst : of_probe(probe);
}

Advice ActionTable::of_culprit(const std::string& kind) const {
  const ActionRow* row = find(Found::culprit, kind);
  return row == nullptr ? Advice{} : row->advice;
}

std::string ActionTable::source_words(const Advice& advice) const {
  const auto source = sources_.find(advice.source);
  if (source == sources_.end()) return "";
  return fmt::format("{}, {}{}", source->second.document, source->second.date,
                     source->second.status == "sourced" ? "" : "; " + source->second.status);
}

std::string ActionTable::age_words(std::string_view today) const {
  const auto made = given_time(date_);
  const auto now = given_time(today.substr(0, date_.size()));
  const bool is_old = made && now && *now - *made > std::chrono::days(kOldAfter_days);
  return fmt::format("table of {}{}", date_,
                     is_old ? fmt::format(", more than {} days old: look for a newer one", kOldAfter_days) : "");
}

const ActionTable& actions() {
  static const ActionTable kTable = [] {
    auto table = ActionTable::read(embedded_documents().at(kActionsDocument), "profiles/actions.json");
    if (!table) throw std::runtime_error(table.error().text());
    return std::move(*table);
  }();
  return kTable;
}

}  // namespace assay::profiles
