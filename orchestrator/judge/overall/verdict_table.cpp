// verdict_table: lays the verdict out in columns for a terminal.
#include "orchestrator/judge/overall/verdict_table.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "orchestrator/files/terminal.h"
#include "orchestrator/judge/overall/next_step.h"
#include "orchestrator/judge/overall/node_verdicts.h"
#include "orchestrator/judge/overall/ranking.h"
#include "probes/core/scale.h"
#include "probes/core/text.h"

namespace assay::judge {
namespace {

using files::columns_of;
using files::wrapped;

constexpr std::size_t kReasons = 3;      // of one requirement; `--all` has the others
constexpr std::size_t kNodesNamed = 6;   // in one line
constexpr std::size_t kDeviations = 12;  // likewise
constexpr const char* kMoreHint = "`assay judge RUN --all` lists every cell";

std::string accepted_from(const Result& result) {
  if (result.is_of_demand()) return demanded_text(result);
  if (guard_exceeds_limit(result)) return "none (guard band)";
  if (result.acceptance_low && result.acceptance_high) {
    return fmt::format("{} .. {}", for_people(*result.acceptance_low, result.unit),
                       for_people(*result.acceptance_high, result.unit));
  }
  if (result.acceptance_low) return ">= " + for_people(*result.acceptance_low, result.unit);
  if (result.acceptance_high) return "<= " + for_people(*result.acceptance_high, result.unit);
  return "-";
}

std::string subject_of(const Result& result) { return harmless(place_of(result)); }

std::string value_of(const Result& result) {
  if (result.is_of_demand()) return seen_text(result);
  return result.value ? for_people(*result.value, result.unit) : "-";
}

std::string upper(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

/// The reason of `result` without the names of its nodes, so that many pairs have one line.
std::string cause_of(const Result& result) {
  std::string cause = result.reason;
  std::string_view rest = result.subject.id;
  while (!rest.empty()) {
    const std::string_view name = rest.substr(0, rest.find_first_of("+@>"));
    for (auto at = cause.find(name); !name.empty() && at != std::string::npos; at = cause.find(name, at + 1))
      cause.replace(at, name.size(), "*");
    rest.remove_prefix(std::min(rest.size(), name.size() + 1));
  }
  return cause;
}

/// Writes the parts of the table; every text goes through harmless() before a colour is added.
class Table {
 public:
  Table(const Verdict& verdict, const TableStyle& style, const Advices& advices)
      : verdict_(verdict), style_(style), advices_(advices) {}

  std::string text() {
    if (verdict_.simulated) line("\nSIMULATION: nothing was measured");
    style_.every_cell ? cells() : requirements();
    open_cells();
    left_out();
    faults();
    knees();
    deviations();
    nodes();
    text_ += '\n' + in_colour(upper(to_string(verdict_.overall)), overall_colour()) +
             wrapped(harmless(": " + verdict_.reason), room_after(columns_of(to_string(verdict_.overall))), "");
    if (const std::string next = next_step(verdict_, advices_); !next.empty()) paragraph("next     ", next);
    return std::move(text_);
  }

 private:
  using Columns = std::array<std::string, 5>;
  struct Row {
    Columns columns;  ///< the last is the outcome
    Outcome outcome = Outcome::pass;
    bool required = true;
  };

  void line(const std::string& text) { text_ += text + '\n'; }
  void paragraph(const std::string& first, const std::string& text) {
    text_ += wrapped(harmless(text), style_.width, first);
  }
  /// The width in which a text that begins after `used` columns is broken; its first line is shorter than the others.
  [[nodiscard]] std::size_t room_after(std::size_t used) const {
    return style_.width > used ? style_.width - used : style_.width;
  }

  [[nodiscard]] std::string in_colour(const std::string& text, const char* colour) const {
    return style_.colour ? fmt::format("\x1b[{}m{}\x1b[0m", colour, text) : text;
  }
  static const char* colour_of(Outcome outcome) {
    if (outcome == Outcome::pass) return "32";
    return outcome == Outcome::fail || outcome == Outcome::error ? "1;31" : "33";
  }
  [[nodiscard]] const char* overall_colour() const {
    if (verdict_.overall == Overall::accepted) return "1;32";
    return verdict_.overall == Overall::rejected ? "1;31" : "1;33";
  }

  void requirements() {
    std::vector<Row> rows;
    for (const auto& one : summaries(verdict_)) {
      rows.push_back({.columns = {one.requirement, fmt::format("{}/{}", one.passed, one.cells), value_of(*one.worst),
                                  accepted_from(*one.worst), to_string(one.worst->outcome)},
                      .outcome = one.worst->outcome,
                      .required = one.required});
    }
    write({"requirement", "passed", "worst", "accepted", "outcome"}, rows);
  }

  void cells() {
    std::vector<Row> rows;
    for (const auto& result : verdict_.results) {
      rows.push_back({.columns = {result.requirement, subject_of(result), value_of(result), accepted_from(result),
                                  to_string(result.outcome)},
                      .outcome = result.outcome,
                      .required = result.required});
    }
    write({"requirement", "subject", "value", "accepted", "outcome"}, rows);
  }

  /// Columns as wide as their widest text. If that is too much for the terminal, the first column is cut back and a
  /// longer name has a line of its own.
  void write(const Columns& titles, std::vector<Row> rows) {
    std::array<std::size_t, 5> width{};
    for (auto& row : rows) {
      if (!row.required) row.columns.back() += " (advisory)";
      for (auto& column : row.columns) column = harmless(column);
    }
    for (std::size_t i = 0; i < width.size(); ++i) {
      width[i] = titles[i].size();
      for (const auto& row : rows) width[i] = std::max(width[i], columns_of(row.columns[i]));
    }
    const std::size_t others = width[1] + width[2] + width[3] + width[4] + 8;  // two blanks between columns
    if (style_.width > 0 && width[0] + others > style_.width)
      width[0] = style_.width > others + titles[0].size() ? style_.width - others : titles[0].size();
    const auto padded = [](const std::string& text, std::size_t columns, bool right) {
      const std::string blanks(columns - std::min(columns, columns_of(text)), ' ');
      return right ? blanks + text : text + blanks;
    };
    const auto one_line = [&](const Columns& columns, const std::string& outcome) {
      const bool own_line = columns_of(columns[0]) > width[0];
      if (own_line) line(columns[0]);
      line(fmt::format("{}  {}  {}  {}  {}", padded(own_line ? "" : columns[0], width[0], false),
                       padded(columns[1], width[1], !style_.every_cell), padded(columns[2], width[2], true),
                       padded(columns[3], width[3], true), outcome));
    };
    line("");
    one_line(titles, titles.back());
    for (const auto& row : rows) one_line(row.columns, in_colour(row.columns.back(), colour_of(row.outcome)));
  }

  /// Why cells do not pass: of each requirement the worst, equal reasons together; warnings come apart.
  void open_cells() {
    bool more = false;
    std::string_view heading;
    for (const auto& one : summaries(verdict_)) {
      struct Reason {
        std::string cause, words;  // the words are those of the first cell
        std::string action;
        std::vector<std::string> subjects;
      };
      std::vector<Reason> reasons;
      for (const Result* result : one.open) {
        if (result->step.empty()) continue;  // nothing was planned for it: see left_out()
        if (result->unchecked && !style_.every_cell) {
          more = true;  // the rows and deviations have it
          continue;
        }
        std::string cause = cause_of(*result), action = action_of(*result);
        auto known = std::ranges::find_if(
            reasons, [&](const Reason& reason) { return reason.cause == cause && reason.action == action; });
        if (known == reasons.end())
          known = reasons.insert(reasons.end(),
                                 {.cause = std::move(cause), .words = result->reason, .action = std::move(action)});
        known->subjects.push_back(subject_of(*result));
      }
      if (reasons.empty()) continue;
      const std::string_view wanted = one.required ? "not passed" : "advisory, only warns";
      if (std::exchange(heading, wanted) != wanted) line(fmt::format("\n{}:", wanted));
      const std::size_t shown = style_.every_cell ? reasons.size() : std::min(reasons.size(), kReasons);
      for (std::size_t i = 0; i < shown; ++i)
        paragraph("  ", fmt::format("{} on {}: {}{}", one.requirement, named(reasons[i].subjects), reasons[i].words,
                                    reasons[i].action));
      std::size_t rest = 0;
      for (std::size_t i = shown; i < reasons.size(); ++i) rest += reasons[i].subjects.size();
      if (rest > 0) paragraph("  ", fmt::format("{}: {} more cells do not pass", one.requirement, rest));
      more = more || rest > 0;
    }
    if (more) paragraph("  ", kMoreHint);
    if (!advices_.known.empty())
      paragraph("  ", fmt::format("actions by the {}; `assay describe actions` has their sources",
                                  profiles::actions().age_words(advices_.today)));
  }

  /// " Action: reset (xid_numbers 48)."; empty for a cell that asks for none, and where no advice was looked for.
  [[nodiscard]] std::string action_of(const Result& result) const {
    if (advices_.today.empty()) return "";
    const auto advice = advices_.of(result);
    return advice ? fmt::format(" Action: {}.", short_words(*advice)) : "";
  }

  /// Requirements without any step, by reason.
  void left_out() {
    std::map<std::string, std::vector<std::string>> by_reason;
    for (const auto& result : verdict_.results) {
      if (!result.step.empty() || result.outcome == Outcome::pass) continue;
      auto& names = by_reason[result.reason];
      if (std::ranges::find(names, result.requirement) == names.end()) names.push_back(result.requirement);
    }
    if (!by_reason.empty()) line("\nnot planned:");
    for (const auto& [reason, names] : by_reason) paragraph("  ", fmt::format("{}: {}", reason, named(names)));
  }

  /// Nodes at fault where nodes that work together fell short, with the tests that show it.
  void faults() {
    std::vector<const Localised*> all;
    for (const auto& one : verdict_.localised) all.push_back(&one);
    const auto first_advisory =
        std::ranges::stable_partition(all, [&](const Localised* one) { return is_required(verdict_, *one); }).begin();
    std::set<std::string> told;
    for (auto next = all.begin(); next != all.end(); ++next) {
      const Localised& one = **next;
      if (next == first_advisory)
        line("\nlocated by advisory figures, which accuse no node:");
      else if (next == all.begin())
        line("\nlocated faults:");
      paragraph("  ", fmt::format("{}{}: {}", fmt::join(one.requirements, ", "),
                                  one.step.empty() ? "" : " in " + one.step, one.reason));
      for (const auto& culprit : one.culprits) {
        if (told.insert(culprit.words).second)
          paragraph("    ", fmt::format("{} (shown by {}). Action: {}.", culprit.words, named(culprit.tests),
                                        advice_of(culprit).action));
      }
      if (!one.undecided.empty()) paragraph("    ", "undecided: " + named(one.undecided));
    }
  }

  void knees() {
    if (!verdict_.knees.empty()) line("\nknees:");
    for (const auto& one : verdict_.knees)
      paragraph("  ", fmt::format("{}{}: {}", one.requirement, one.rail.empty() ? "" : " on " + one.rail, one.reason));
  }

  void deviations() {
    const auto all = common_deviations(verdict_);
    const std::size_t shown = style_.every_cell ? all.size() : std::min(all.size(), kDeviations);
    for (std::size_t i = 0; i < shown; ++i) {
      const std::string where = all[i].steps > 1 ? fmt::format("{} steps", all[i].steps) : all[i].step;
      paragraph("deviation: ", where.empty() ? all[i].what : where + ": " + all[i].what);
    }
    if (shown < all.size()) line(fmt::format("{} more deviations; {}", all.size() - shown, kMoreHint));
  }

  /// How many of several nodes are good, and which are not.
  void nodes() {
    if (verdict_.nodes.size() < 2) return;
    line("");
    paragraph("nodes: ", fleet_statement(verdict_.nodes));
    for (const auto outcome : {Overall::rejected, Overall::incomplete}) {
      std::vector<std::string> names;
      for (const auto& node : verdict_.nodes) {
        if (node.outcome == outcome) names.push_back(node.node);
      }
      if (!names.empty() && names.size() < verdict_.nodes.size())
        paragraph("  ", fmt::format("{}: {}", outcome, named(names)));
    }
  }

  /// "n01, n02 and 3 more".
  [[nodiscard]] std::string named(const std::vector<std::string>& names) const {
    const std::size_t shown =
        style_.every_cell || names.size() == kNodesNamed + 1 ? names.size() : std::min(names.size(), kNodesNamed);
    std::string text;
    for (std::size_t i = 0; i < shown; ++i) text += (i == 0 ? "" : ", ") + names[i];
    return shown == names.size() ? text : text + fmt::format(" and {} more", names.size() - shown);
  }

  const Verdict& verdict_;
  TableStyle style_;
  const Advices& advices_;
  std::string text_;
};

}  // namespace

std::string verdict_table(const Verdict& verdict, const TableStyle& style, const Advices& advices) {
  return Table(verdict, style, advices).text();
}

}  // namespace assay::judge
