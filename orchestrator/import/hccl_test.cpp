// hccl_test: the table of Huawei's hccl_test. It names neither the operation nor the type, which the command has. Its
// GB/s are 2^30 B/s in the published example; each row shows which, because the bandwidth is the size over the time.
#include <optional>
#include <string>

#include <fmt/format.h>

#include "orchestrator/import/import.h"
#include "orchestrator/import/table.h"
#include "probes/core/text.h"

namespace assay::imports {
namespace {

constexpr Column kHcclColumns[] = {{.head = "data_size(Bytes)"},
                                   {"aveg_time(us)", "time", "s", "mean", 1e-6},
                                   {"avg_time(us)", "time", "s", "mean", 1e-6},
                                   {.head = "alg_bandwidth(GB/s)"},
                                   {.head = "check_result"}};

/// Heads and cells of a line; a head ends with a colon.
std::vector<std::string_view> hccl_cells(std::string_view text) {
  auto cells = parts_of(text, '|');
  for (auto& cell : cells) {
    if (cell.ends_with(':')) cell = trimmed(cell.substr(0, cell.size() - 1));
  }
  return cells;
}

/// Operation, type and reduction of a command: "all_reduce_test -d fp32 -o sum".
void take_hccl_command(std::string_view command, Values& at) {
  const auto words = words_of(command);
  for (std::size_t i = 0; i < words.size(); ++i) {
    auto word = words[i];
    word.remove_prefix(std::min(word.find_last_of('/') + 1, word.size()));
    if (word.ends_with("_test") && !at.contains("operation")) {
      word.remove_suffix(5);
      at["operation"] = std::string(word == "alltoall" ? "all_to_all" : word);
    }
    if (i + 1 == words.size()) break;
    if (word == "-d" || word == "--datatype") at["type"] = std::string(words[i + 1]);
    if (word == "-o" || word == "--op") at["redop"] = std::string(words[i + 1]);
    if (word == "-p" || word == "--npus")
      if (const auto npus = whole_from(words[i + 1])) at["npus_per_node"] = *npus;
  }
}

void take_hccl_row(const Table& table, const TextLine& line, Values at, Figures& figures) {
  const std::int64_t size = table.whole("data_size(Bytes)");
  at["size"] = size;
  const auto result = table.cell("check_result");
  const FigureName failures{.metric = "failures", .unit = "1", .statistic = "count"};
  if (result == "success" || result == "failed")
    figures.count(failures, at, result == "failed" ? 1 : 0, line.from());
  else
    figures.leave_out(line.from(), "count failures", fmt::format("the tool says '{}': not checked", harmless(result)));
  if (result == "failed")
    return figures.leave_out(line.from(), "time, algbw",
                             "the result was wrong: the speed of wrong data is meaningless");
  table.take(at, figures);
  const auto word = table.cell("alg_bandwidth(GB/s)");
  auto time = number_from(table.cell("avg_time(us)"));
  if (!time) time = number_from(table.cell("aveg_time(us)"));
  const auto bandwidth = number_from(word);
  const auto unit = time ? gigabyte_of(static_cast<double>(size), *time * 1e-6, word) : std::nullopt;
  if (bandwidth && *bandwidth > 0 && !unit)
    return figures.leave_out(line.from(), "mean algbw", "it is not size over time in GB or GiB: its unit is not known");
  figures.word({.metric = "algbw", .unit = "B/s", .statistic = "mean", .factor = unit.value_or(1e9)}, at, word,
               line.from());
}

}  // namespace

void read_hccl_test(std::string_view text, judge::ImportSource& source, Figures& figures) {
  Values at;
  std::optional<Table> table;
  take_hccl_command(source.command, at);
  const auto lines = lines_of(text, &figures);
  for (const auto& line : lines) {
    if (line.text.empty()) continue;
    if (line.text.starts_with("data_size(Bytes)")) {
      if (table) throw ImportRefusal{line.from(), "a second table begins", "import one run per file"};
      table.emplace(kHcclColumns, line, hccl_cells(line.text), figures);
      if (!table->has("alg_bandwidth(GB/s)") || !table->has("check_result"))
        throw ImportRefusal{line.from(), "the heading is not that of hccl_test",
                            "data_size(Bytes): | avg_time(us): | alg_bandwidth(GB/s): | check_result:"};
    } else if (line.text.starts_with("the minbytes is ")) {
      source.facts["settings"] = std::string(line.text);
    } else if (table && line.text.find('|') != std::string_view::npos) {
      table->row(line, hccl_cells(line.text));
      take_hccl_row(*table, line, at, figures);
    } else if (!table && line.text.find("_test ") != std::string_view::npos && source.command.empty()) {
      source.command = trimmed(line.text.substr(line.text.starts_with('#') ? 1 : 0));  // a shell's prompt before it
      take_hccl_command(source.command, at);
    } else {
      figures.foreign(line, true);
    }
  }
  if (!table) throw ImportRefusal{"", "has no table of hccl_test", "import the text that it prints"};
  if (!at.contains("operation"))
    figures.leave_out("table", "the operation",
                      "the output does not name it: state it with --command 'all_reduce_test …'");
}

}  // namespace assay::imports
