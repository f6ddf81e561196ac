// ascend: the table of Huawei's hccl_test. It names neither the operation nor the type, which the command has. Its GB/s
// are 2^30 B/s in the published example; each row shows which, because the bandwidth is the size over the time.
// And the table of `ascend-dmi -f`, which multiplies matrices of a size of its own. The type is in the heading, so that
// each output has figures of one; the bandwidth test's table is not published and is not read.
#include <cmath>
#include <optional>
#include <string>
#include <utility>

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
constexpr double kUnitTolerance = 0.03;  // 1e9 and 2^30 differ by 7 %

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

/// B/s of one GB/s of a row; nothing if its bandwidth is not its size over its time.
std::optional<double> gigabyte_of(double size, double time_us, double bandwidth) {
  for (const double unit : {1e9, kGibibyte}) {
    if (std::abs(size / (time_us * 1e-6) / (bandwidth * unit) - 1) < kUnitTolerance) return unit;
  }
  return std::nullopt;
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
  const bool positive = time && bandwidth && *time > 0 && *bandwidth > 0;
  const auto unit = positive ? gigabyte_of(static_cast<double>(size), *time, *bandwidth) : std::nullopt;
  if (positive && !unit)
    return figures.leave_out(line.from(), "mean algbw", "it is not size over time in GB or GiB: its unit is not known");
  figures.word({.metric = "algbw", .unit = "B/s", .statistic = "mean", .factor = unit.value_or(1e9)}, at, word,
               line.from());
}

constexpr Column kDmiColumns[] = {{.head = "Device"},
                                  {.head = "Execute Times"},
                                  {.head = "Duration(ms)"},
                                  {"Power(W)", "power", "W", "now"},
                                  {"TFLOPS@FP16", "throughput", "FLOP/s", "mean", 1e12},
                                  {"TOPS@INT8", "throughput", "FLOP/s", "mean", 1e12}};

/// A row of one device, or of "all" with the sum of their rates.
void take_dmi_row(const Table& table, Values at, Figures& figures) {
  if (table.cell("Device") == "all")
    at["devices"] = std::string("all");
  else
    at["device"] = table.whole("Device");
  std::string products(table.cell("Execute Times"));
  std::erase(products, ',');
  if (const auto count = whole_from(products)) at["products"] = *count;
  table.take(at, figures);
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

void read_ascend_dmi(std::string_view text, judge::ImportSource& /*source*/, Figures& figures) {
  std::optional<Table> table;
  Values at;
  for (const auto& line : lines_of(text, &figures)) {
    if (line.text.find_first_not_of('-') == std::string_view::npos) continue;  // empty, or a rule of the table
    if (line.text.starts_with("Device ")) {
      if (table) throw ImportRefusal{line.from(), "a second table begins", "import one run per file"};
      table.emplace(kDmiColumns, line, cells_of(line.text), figures);
      for (const auto& [head, type] : {std::pair{"TFLOPS@FP16", "fp16"}, std::pair{"TOPS@INT8", "int8"}})
        if (table->has(head)) at["type"] = std::string(type);
      if (!at.contains("type"))
        throw ImportRefusal{line.from(), "the heading is not that of ascend-dmi -f with a type that is known",
                            "Device  Execute Times  Duration(ms)  TFLOPS@FP16 or TOPS@INT8  Power(W)"};
    } else if (table && (whole_from(cells_of(line.text).front()) || line.text.starts_with("all "))) {
      table->row(line, cells_of(line.text));
      take_dmi_row(*table, at, figures);
    } else {
      figures.foreign(line, table.has_value());
    }
  }
  if (!table) throw ImportRefusal{"", "has no table of ascend-dmi -f", "import the text that it prints"};
}

}  // namespace assay::imports
