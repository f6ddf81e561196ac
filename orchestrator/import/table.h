// table: a table of a text, by the heads of its columns.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "orchestrator/import/reading.h"

namespace assay::imports {

/// The cells of a table for people, which two blanks or more separate: a cell may contain single ones.
std::vector<std::string_view> cells_of(std::string_view text);

/// A column of a table by its head: a figure, or with an empty metric one that the reader takes itself or that says
/// nothing new.
struct Column {
  const char *head, *metric = "", *unit = "", *statistic = "";
  double factor = 1;  ///< from the tool's unit to `unit`
};

/// A table of a text whose columns are found by their heads, for they differ between versions. A head that is not known
/// is left out by name. Refused: a row with another number of cells than heads, and a head that is there twice.
class Table {
 public:
  /// `known` must outlive it.
  Table(std::span<const Column> known, const TextLine& line, std::vector<std::string_view> heads, Figures& figures);
  /// Takes a row, which stays the current one.
  void row(const TextLine& line, std::vector<std::string_view> cells);
  [[nodiscard]] bool has(std::string_view head) const;
  /// The current row's cell; empty if the table has no such column.
  [[nodiscard]] std::string_view cell(std::string_view head) const;
  /// The same as a whole number of at least 0; refused otherwise.
  [[nodiscard]] std::int64_t whole(std::string_view head) const;
  /// Takes the current row's figures.
  void take(const Values& at, Figures& figures) const;

 private:
  std::span<const Column> known_;
  std::vector<std::string_view> heads_, cells_;
  std::string from_;
};

}  // namespace assay::imports
