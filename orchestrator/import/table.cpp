// table: cells of a row, found by the heads of their columns.
#include "orchestrator/import/table.h"

#include <algorithm>

#include <fmt/format.h>

#include "probes/core/text.h"

namespace assay::imports {

std::vector<std::string_view> cells_of(std::string_view text) {
  std::vector<std::string_view> cells;
  for (text = trimmed(text); !text.empty(); text = trimmed(text)) {
    const auto length = std::min({text.find("  "), text.find('\t'), text.size()});
    cells.push_back(text.substr(0, length));
    text.remove_prefix(length);
  }
  return cells;
}

Table::Table(std::span<const Column> known, const TextLine& line, std::vector<std::string_view> heads, Figures& figures)
    : known_(known), heads_(std::move(heads)) {
  for (auto head = heads_.begin(); head != heads_.end(); ++head) {
    if (std::find(heads_.begin(), head, *head) != head)
      throw ImportRefusal{line.from(), fmt::format("the column '{}' is there twice", harmless(*head)), ""};
    if (std::ranges::find(known_, *head, &Column::head) == known_.end())
      figures.leave_out(line.from(), fmt::format("the column '{}'", harmless(*head)),
                        "not known: of another version of the tool");
  }
}

void Table::row(const TextLine& line, std::vector<std::string_view> cells) {
  cells_ = std::move(cells);
  from_ = line.from();
  if (cells_.size() != heads_.size())
    throw ImportRefusal{from_, fmt::format("{} columns, the heading has {}", cells_.size(), heads_.size()),
                        "merged columns, or a truncated line: save only the output of the tool"};
}

bool Table::has(std::string_view head) const { return std::ranges::find(heads_, head) != heads_.end(); }

std::string_view Table::cell(std::string_view head) const {
  const auto found = std::ranges::find(heads_, head);
  return found == heads_.end() ? std::string_view() : cells_[static_cast<std::size_t>(found - heads_.begin())];
}

std::int64_t Table::whole(std::string_view head) const {
  const auto value = whole_from(cell(head));
  if (!value || *value < 0)
    throw ImportRefusal{from_, fmt::format("'{}' is no number of the column {}", harmless(cell(head)), head), ""};
  return *value;
}

void Table::take(const Values& at, Figures& figures) const {
  for (const auto& column : known_) {
    if (*column.metric == '\0' || !has(column.head)) continue;
    figures.word({.metric = column.metric, .unit = column.unit, .statistic = column.statistic, .factor = column.factor},
                 at, cell(column.head), from_);
  }
}

}  // namespace assay::imports
