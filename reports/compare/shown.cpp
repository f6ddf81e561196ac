// shown: words and columns for people, and assay.comparison/1.
#include "reports/compare/shown.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "orchestrator/files/terminal.h"
#include "orchestrator/judge/overall/ranking.h"
#include "probes/core/json_io.h"
#include "probes/core/scale.h"
#include "probes/core/text.h"

namespace assay::compare {
namespace {

constexpr std::size_t kMostChanged = 20;  // cells in the table for terminals
constexpr std::size_t kMostTargets = 10;  // differences of targets

/// "+3.10" of a share of 0.031.
std::string percent_words(double share) {
  constexpr double kMostPlain = 1e4;  // beyond it hundredths are no help
  return std::abs(100 * share) < kMostPlain ? fmt::format("{:+.2f}", 100 * share) : fmt::format("{:+.3e}", 100 * share);
}

std::string signed_words(double value, const std::string& unit) {
  return (value > 0 ? "+" : "") + for_people(value, unit);
}

/// `text` with blanks up to `width` columns.
std::string padded(const std::string& text, std::size_t width) {
  const std::size_t columns = files::columns_of(text);
  return columns < width ? text + std::string(width - columns, ' ') : text;
}

template <std::size_t N>
std::string columns(const std::vector<std::array<std::string, N>>& rows) {
  std::array<std::size_t, N> width{};
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < N; ++i) width[i] = std::max(width[i], files::columns_of(row[i]));
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < N; ++i) line += i + 1 < N ? padded(row[i], width[i]) + "  " : row[i];
    text += line + "\n";
  }
  return text;
}

std::string heads(const Side& a, const Side& b) {
  std::vector<std::array<std::string, 3>> rows = {{"", "A", "B"}};
  const auto add = [&](const char* name, auto text) { rows.push_back({name, text(a), text(b)}); };
  add("", [](const Side& side) { return harmless(side.path); });
  add("standing", [](const Side& side) {
    std::string words = side.standing;
    for (const auto& signer : side.signers) words += ", " + harmless(signer.substr(0, 40));
    return words;
  });
  add("site", [](const Side& side) { return harmless(side.content.run.plan.site.name); });
  add("profile", [](const Side& side) {
    const auto& profile = side.content.run.plan.profile;
    return harmless(fmt::format("{} revision {}", profile.name, profile.revision));
  });
  add("run", [](const Side& side) { return harmless(side.content.run.journal.run_id); });
  add("began", [](const Side& side) { return harmless(side.content.run.journal.begin); });
  add("verdict", [](const Side& side) { return std::string(judge::to_string(side.content.verdict.overall)); });
  return columns(rows);
}

std::string requirement_rows(const Comparison& all) {
  std::vector<std::array<std::string, 8>> rows = {
      {"requirement", "subjects", "A", "B", "change", "of attempts (95 % interval)", "p", "finding"}};
  for (const auto& pair : all.requirements) {
    const bool tested = pair.test.shift.has_value();
    const auto [value_a, value_b] = value_words(pair, "-");
    rows.push_back(
        {harmless(pair.id), fmt::format("{}", pair.tested), value_a, value_b, change_words(pair),
         tested ? fmt::format("{} ({})", shift_words(pair.test, pair.unit), interval_words(pair.test, pair.unit)) : "-",
         tested ? fmt::format("{:.2g}", pair.test.p) : "-", finding_words(pair.finding)});
  }
  return columns(rows);
}

using nlohmann::ordered_json;

template <class T>
ordered_json or_null(const std::optional<T>& value) {
  return value ? ordered_json(*value) : ordered_json();
}

ordered_json document_of(const Side& side) {
  const auto& run = side.content.run;
  return {{"path", side.path},
          {"standing", side.standing},
          {"signers", side.signers},
          {"simulated", run.plan.simulation.has_value()},
          {"quick", run.plan.quick},
          {"run_id", run.journal.run_id},
          {"plan_sha256", run.plan_sha256},
          {"site", run.plan.site.name},
          {"profile", run.plan.profile.name},
          {"profile_revision", run.plan.profile.revision},
          {"began", run.journal.begin},
          {"ended", run.journal.last},
          {"overall", judge::to_string(side.content.verdict.overall)}};
}

ordered_json document_of(const RankTest& test) {
  if (!test.shift) return nullptr;
  ordered_json interval;
  if (test.interval)
    interval = {{"low", test.interval->low}, {"high", test.interval->high}, {"level", test.interval->level}};
  return {{"p", test.p},         {"smallest_p", test.smallest_p}, {"exact", test.exact}, {"shift", or_null(test.shift)},
          {"ratio", test.ratio}, {"interval", interval}};
}

ordered_json document_of(const judge::Result* result) {
  if (result == nullptr) return nullptr;
  return {{"outcome", judge::to_string(result->outcome)},
          {"value", or_null(result->value)},
          {"each", result->each},
          {"limit_low", or_null(result->limit_low)},
          {"limit_high", or_null(result->limit_high)}};
}

ordered_json document_of(const RequirementPair& pair) {
  ordered_json cells = ordered_json::array();
  for (const auto& cell : pair.cells) {
    const auto& either = cell.a != nullptr ? *cell.a : *cell.b;
    cells.push_back({{"node", either.node},
                     {"subject", ordered_json(assay::to_json(either.subject))},
                     {"a", document_of(cell.a)},
                     {"b", document_of(cell.b)},
                     {"change", or_null(cell.change)},
                     {"test", document_of(cell.test)},
                     {"finding", word_of(cell.finding)}});
  }
  return {{"id", pair.id},
          {"metric", pair.metric},
          {"unit", pair.unit},
          {"statistic", pair.statistic},
          {"limit_a", pair.limit_a},
          {"limit_b", pair.limit_b},
          {"method_differences", pair.method},
          {"outcomes_a", pair.outcomes_a},
          {"outcomes_b", pair.outcomes_b},
          {"value_a", or_null(pair.value_a)},
          {"value_b", or_null(pair.value_b)},
          {"design", word_of(pair.design)},
          {"tested", pair.tested},
          {"left_out", pair.left_out},
          {"test", document_of(pair.test)},
          {"finding", word_of(pair.finding)},
          {"reason", pair.reason},
          {"cells", std::move(cells)}};
}

}  // namespace

std::pair<std::string, std::string> value_words(const RequirementPair& pair, const char* none) {
  std::vector<double> both;
  for (const auto& one : {pair.value_a, pair.value_b}) {
    if (one) both.push_back(*one);
  }
  const Scale scale = scale_for(both, pair.unit);
  return {pair.value_a ? scale.text(*pair.value_a) : none, pair.value_b ? scale.text(*pair.value_b) : none};
}

std::string change_words(const RequirementPair& pair) {
  if (!pair.value_a || !pair.value_b) return "-";
  if (const auto change = pair.change()) return percent_words(*change) + " %";
  return signed_words(*pair.value_b - *pair.value_a, pair.unit);
}

std::string shift_words(const RankTest& test, const std::string& unit) {
  if (!test.shift) return "-";
  return test.ratio ? percent_words(*test.shift - 1) + " %" : signed_words(*test.shift, unit);
}

std::string interval_words(const RankTest& test, const std::string& unit) {
  if (!test.interval) return "-";
  const auto [low, high] = std::pair(test.interval->low, test.interval->high);
  if (test.ratio) return fmt::format("{} to {} %", percent_words(low - 1), percent_words(high - 1));
  return fmt::format("{} to {}", for_people(low, unit), for_people(high, unit));
}

std::string finding_words(Finding finding) {
  if (finding == Finding::too_few) return "too few runs to decide";
  std::string words(word_of(finding));
  std::ranges::replace(words, '_', ' ');
  return words;
}

std::vector<std::pair<const RequirementPair*, const CellPair*>> changed_outcomes(const Comparison& all) {
  std::vector<std::pair<const RequirementPair*, const CellPair*>> changed;
  for (const auto& pair : all.requirements) {
    for (const auto& cell : pair.cells) {
      if (cell.a != nullptr && cell.b != nullptr && cell.a->outcome != cell.b->outcome)
        changed.emplace_back(&pair, &cell);
    }
  }
  std::ranges::stable_sort(changed, {},
                           [](const auto& one) { return judge::is_worse(*one.second->b, *one.second->a) ? 0 : 1; });
  return changed;
}

std::string comparison_table(const Comparison& all, const Side& a, const Side& b, std::size_t width) {
  std::string text = heads(a, b) + "\n";
  for (const auto& note : all.notes) text += files::wrapped(harmless(note), width, "note: ");
  for (std::size_t i = 0; i < std::min(all.targets.size(), kMostTargets); ++i)
    text += files::wrapped(harmless(all.targets[i]) + " (is: B, expected: A)", width, "  ");
  if (all.targets.size() > kMostTargets)
    text += fmt::format("  and {} more: --json\n", all.targets.size() - kMostTargets);
  text += "\n" + requirement_rows(all);
  for (const auto& pair : all.requirements) {
    if (pair.finding == Finding::not_compared || pair.finding == Finding::too_few)
      text += files::wrapped(harmless(pair.id + ": " + pair.reason), width, "  ");
    if (pair.left_out > 0 && pair.tested > 0) {
      text += files::wrapped(
          harmless(fmt::format("{}: {} cells are not judged in both runs and were left out", pair.id, pair.left_out)),
          width, "  ");
    }
  }
  const auto changed = changed_outcomes(all);
  if (!changed.empty()) text += "\noutcomes that changed:\n";
  for (std::size_t i = 0; i < std::min(changed.size(), kMostChanged); ++i) {
    const auto& [pair, cell] = changed[i];
    text += fmt::format("  {} on {}: {} -> {}\n", harmless(pair->id), harmless(name_of(*cell)),
                        judge::to_string(cell->a->outcome), judge::to_string(cell->b->outcome));
  }
  if (changed.size() > kMostChanged) text += fmt::format("  and {} more: --json\n", changed.size() - kMostChanged);
  std::string counts;
  for (const auto& word : words_of(Finding{})) {
    const auto count = all.counts.at(std::string(word.text));
    if (count > 0) counts += fmt::format("{}{} {}", counts.empty() ? "" : ", ", count, finding_words(word.value));
  }
  return text + "\n" + counts + "\n";
}

std::string comparison_json(const Comparison& all, const Side& a, const Side& b) {
  ordered_json requirements = ordered_json::array();
  for (const auto& pair : all.requirements) requirements.push_back(document_of(pair));
  const ordered_json document = {{"schema", "assay.comparison/1"},
                                 {"a", document_of(a)},
                                 {"b", document_of(b)},
                                 {"alpha", all.demands.alpha},
                                 {"smallest_change", all.demands.smallest_change},
                                 {"threshold", all.threshold},
                                 {"cell_threshold", all.threshold},
                                 {"counts", all.counts},
                                 {"notes", all.notes},
                                 {"target_differences", all.targets},
                                 {"requirements", std::move(requirements)}};
  return document.dump(1, ' ', true, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace assay::compare
