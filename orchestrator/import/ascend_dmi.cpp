// ascend_dmi: Huawei's ascend-dmi. The table of -f multiplies matrices of a size of its own; its type is in the
// heading, so that each output has figures of one. The tables of --bw, and their JSON, name the direction in a title. A
// rate is the size over the time, which is that of one copy or, in some versions, of all: each row shows which, and
// whether its GB are 1e9 or 2^30 B. The matrix of p2p as text states no unit and is not read.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "orchestrator/import/import.h"
#include "orchestrator/import/table.h"
#include "probes/core/text.h"

namespace assay::imports {
namespace {

using nlohmann::json;

constexpr const char* kDmiHint = "import the output of `ascend-dmi -f` or `ascend-dmi --bw`, of p2p with --fmt json";

constexpr Column kDmiColumns[] = {{.head = "Device"},
                                  {.head = "Execute Times"},
                                  {.head = "Duration(ms)"},
                                  {"Power(W)", "power", "W", "now"},
                                  {"TFLOPS@FP16", "throughput", "FLOP/s", "mean", 1e12},
                                  {"TFLOPS@BF16", "throughput", "FLOP/s", "mean", 1e12},
                                  {"TFLOPS@FP32", "throughput", "FLOP/s", "mean", 1e12},
                                  {"TOPS@INT8", "throughput", "FLOP/s", "mean", 1e12}};
constexpr Column kCopyColumns[] = {{.head = "ID"},
                                   {.head = "Size(Bytes)"},
                                   {.head = "Execute Times"},
                                   {.head = "Bandwidth(GB/s)"},
                                   {.head = "Elapsed Time(us)"}};

/// A test of --bw by its title. The rate of `ways` directions at once is that of the bytes of all.
struct CopyTest {
  std::string_view title;
  const char *direction, *metric;
  double ways = 1;
};
constexpr CopyTest kCopyTests[] = {{"Host to Device Test", "h2d", "bandwidth"},
                                   {"Device to Host Test", "d2h", "bandwidth"},
                                   {"Device to Device Test", "d2d", "bandwidth"},
                                   {"Unidirectional Peer to Peer Test", "p2p", "bandwidth"},
                                   {"Bidirectional Peer to Peer Test", "p2p", "bandwidth_both_directions", 2}};

const CopyTest* copy_test(std::string_view title) {
  const auto* found = std::ranges::find(kCopyTests, title, &CopyTest::title);
  return found == std::end(kCopyTests) ? nullptr : found;
}

/// Copies of `size` B: how many, the time as the tool states it, and its rate as it is written.
struct CopyRow {
  std::int64_t size = 0, copies = 1;
  double elapsed_s = 0;
  std::string_view rate;
};

void take_copies(const CopyTest& test, Values at, const CopyRow& row, const std::string& from, Figures& figures) {
  at["direction"] = std::string(test.direction);
  at["size"] = row.size;
  at["copies"] = row.copies;
  if (test.ways > 1) at["directions"] = std::string("both at once");
  const double bytes = static_cast<double>(row.size) * test.ways;
  for (const auto times : {1.0, static_cast<double>(row.copies)}) {
    const auto unit = gigabyte_of(bytes * times, row.elapsed_s, row.rate);
    if (!unit) continue;
    figures.word({.metric = test.metric, .unit = "B/s", .statistic = "mean", .factor = *unit}, at, row.rate, from);
    return figures.positive({.metric = "time", .unit = "s", .statistic = "mean"}, at, row.elapsed_s / times, from);
  }
  figures.leave_out(from, fmt::format("mean {}", test.metric),
                    "it is not the bytes of one copy, or of all, over the time: its meaning is not known");
}

/// A row of -f: of one device, of the two of a card ("0/1"), or of "all" with the sum of their rates.
void take_rate_row(const Table& table, Values at, Figures& figures) {
  const auto device = table.cell("Device");
  if (device == "all" || device.find('/') != std::string_view::npos)
    at["devices"] = std::string(device);
  else
    at["device"] = table.whole("Device");
  std::string products(table.cell("Execute Times"));
  std::erase(products, ',');
  if (const auto count = whole_from(products)) at["products"] = *count;
  table.take(at, figures);
}

/// Heads of a table of --bw, in which "Execute Times" and "Elapsed Time(us)" are two words each.
std::vector<std::string_view> copy_heads(std::string_view text) {
  std::vector<std::string_view> heads;
  for (const auto word : words_of(text)) {
    const bool second = !heads.empty() && (heads.back() == "Execute" || heads.back() == "Elapsed");
    if (!second)
      heads.push_back(word);
    else
      heads.back() = {heads.back().begin(), word.end()};
  }
  return heads;
}

class DmiReader {
 public:
  DmiReader(judge::ImportSource& source, Figures& figures) : source_(source), figures_(figures) {}

  void line(const TextLine& line) {
    const std::string_view text = line.text;
    const bool row = table_ && (whole_from(words_of(text).front()) || text.starts_with("all ") || is_card(text));
    if (const CopyTest* test = copy_test(text)) {
      if (std::string_view(test->direction) == "p2p")
        throw ImportRefusal{line.from(), "the table of p2p states no unit", kDmiHint};
      test_ = test;
      table_.reset();
      at_.clear();
    } else if (text.starts_with("Device ") && text.find(": ") != std::string_view::npos) {
      device(line);
    } else if (text.starts_with("Device ")) {
      rates(line);
    } else if (text.find("Bandwidth(") != std::string_view::npos) {
      copies(line);
    } else if (row && rates_) {
      table_->row(line, cells_of(text));
      take_rate_row(*table_, at_, figures_);
    } else if (row) {
      copy_row(line);
    } else {
      figures_.foreign(line, table_.has_value());
    }
  }

  [[nodiscard]] bool begun() const { return table_.has_value(); }

 private:
  static bool is_card(std::string_view text) {
    const auto first = words_of(text).front();
    return first.find('/') != std::string_view::npos && whole_from(first.substr(0, first.find('/')));
  }

  /// "Device 0: Ascend 910B3."
  void device(const TextLine& line) {
    const auto name = trimmed(line.text.substr(7, line.text.find(':') - 7));
    const auto number = whole_from(name);
    if (!number) return figures_.foreign(line, table_.has_value());
    if (table_) at_.erase("device");
    if (at_.contains("device"))
      throw ImportRefusal{line.from(), "a second device before the table of the first", "run it with one -d"};
    table_.reset();
    at_["device"] = *number;
    source_.facts["device." + std::string(name)] = std::string(trimmed(line.text.substr(line.text.find(':') + 1)));
  }

  void rates(const TextLine& line) {
    if (table_) throw ImportRefusal{line.from(), "a second table begins", "import one run per file"};
    table_.emplace(kDmiColumns, line, cells_of(line.text), figures_);
    rates_ = true;
    for (const auto& [head, type] : {std::pair{"TFLOPS@FP16", "fp16"}, std::pair{"TFLOPS@BF16", "bf16"},
                                     std::pair{"TFLOPS@FP32", "fp32"}, std::pair{"TOPS@INT8", "int8"}})
      if (table_->has(head)) at_["type"] = std::string(type);
    if (!at_.contains("type"))
      throw ImportRefusal{line.from(), "the heading is not that of ascend-dmi -f with a type that is known",
                          "Device  Execute Times  Duration(ms)  TFLOPS@FP16, BF16, FP32 or TOPS@INT8  Power(W)"};
  }

  void copies(const TextLine& line) {
    table_.emplace(kCopyColumns, line, copy_heads(line.text), figures_);
    rates_ = false;
    for (const char* head : {"Size(Bytes)", "Execute Times", "Bandwidth(GB/s)", "Elapsed Time(us)"})
      if (!table_->has(head)) throw ImportRefusal{line.from(), fmt::format("has no column '{}'", head), kDmiHint};
    if (test_ == nullptr) throw ImportRefusal{line.from(), "no title above names the direction", kDmiHint};
    if (!table_->has("ID") && !at_.contains("device"))
      throw ImportRefusal{line.from(), "no line above names the device", kDmiHint};
  }

  void copy_row(const TextLine& line) {
    table_->row(line, words_of(line.text));
    Values at = at_;
    if (table_->has("ID")) at["device"] = table_->whole("ID");
    const auto time = number_from(table_->cell("Elapsed Time(us)"));
    take_copies(*test_, at,
                {.size = table_->whole("Size(Bytes)"),
                 .copies = table_->whole("Execute Times"),
                 .elapsed_s = time.value_or(0) * kMicrosecond,
                 .rate = table_->cell("Bandwidth(GB/s)")},
                line.from(), figures_);
  }

  judge::ImportSource& source_;
  Figures& figures_;
  const CopyTest* test_ = nullptr;
  std::optional<Table> table_;
  bool rates_ = false;  ///< the table is that of -f
  Values at_;
};

/// The number of "2 Bytes" in `unit`; nothing if the field is missing. Refused: another unit.
std::optional<std::string> amount(StrictObject& one, const char* name, std::string_view unit) {
  const json* value = one.optional(name);
  if (value == nullptr) return std::nullopt;
  const auto words = value->is_string() ? words_of(value->get_ref<const std::string&>()) : words_of("");
  if (words.size() != 2 || words[1] != unit || !number_from(words[0]))
    one.refuse(name, fmt::format("is not a number of {}", unit));
  return std::string(words[0]);
}

void read_copies(StrictObject& group, Figures& figures) {
  const std::string title = group.text("type");
  const CopyTest* test = copy_test(title);
  if (test == nullptr) group.refuse("type", fmt::format("'{}' is not a test that is known", printable(title)));
  Values at;
  for (const auto& [field, name] : {std::pair("device_id", "device"), std::pair("source_device_id", "source"),
                                    std::pair("target_device_id", "target")})
    if (const json* id = group.optional(field); id != nullptr && id->is_number_integer())
      at[name] = id->get<std::int64_t>();
  if (!at.contains("device") && !(at.contains("source") && at.contains("target")))
    group.refuse("device_id", "neither the device nor both ends are named");
  const json& results = group.list("results");
  for (std::size_t i = 0; i < results.size(); ++i) {
    StrictObject one = closed(results[i], fmt::format("{}[{}]", group.path("results"), i));
    const auto size = amount(one, "size", "Bytes"), rate = amount(one, "bandwidth", "GB/s");
    const auto time = amount(one, "elapsed_time", "us");
    const auto bytes = size ? whole_from(*size) : std::nullopt;
    if (!bytes || *bytes < 1 || !rate) one.refuse("size", "size and bandwidth must be there");
    const CopyRow row{.size = *bytes,
                      .copies = one.optional("execute_times") == nullptr ? 1 : one.whole("execute_times", 1),
                      .elapsed_s = time ? *number_from(*time) * kMicrosecond : 0,
                      .rate = *rate};
    take_copies(*test, at, row, one.path("bandwidth"), figures);
    figures.unknown(one);
  }
  figures.unknown(group);
}

}  // namespace

void read_ascend_dmi(std::string_view text, judge::ImportSource& source, Figures& figures) {
  DmiReader reader(source, figures);
  for (const auto& line : lines_of(text, &figures))
    if (line.text.find_first_not_of('-') != std::string_view::npos) reader.line(line);  // else a rule of the table
  if (!reader.begun()) throw ImportRefusal{"", "has no table of ascend-dmi", kDmiHint};
}

void read_ascend_dmi_json(std::string_view text, judge::ImportSource& /*source*/, Figures& figures) {
  const json whole = document_of(text, figures, kDmiHint);
  StrictObject top(whole, "", kDmiHint);
  if (const json* error = top.optional("error"))
    top.refuse("error", fmt::format("the tool failed: {}", printable(error->dump())));
  const json& groups = top.list("bandwidths");
  for (std::size_t i = 0; i < groups.size(); ++i) {
    StrictObject group = closed(groups[i], fmt::format("bandwidths[{}]", i));
    read_copies(group, figures);
  }
  figures.unknown(top);
}

}  // namespace assay::imports
