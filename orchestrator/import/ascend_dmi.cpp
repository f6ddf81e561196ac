// ascend_dmi: the table of `ascend-dmi -f`, which multiplies matrices of a size of its own. The type is in the heading,
// so that each output has figures of one; the bandwidth test's table is not published and is not read.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "orchestrator/import/import.h"
#include "orchestrator/import/table.h"

namespace assay::imports {
namespace {

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
