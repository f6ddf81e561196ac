// perftest: output of ib_write_bw, ib_read_lat and their like, as text and with --out_json.
#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "orchestrator/import/import.h"
#include "orchestrator/import/perftest_run.h"
#include "orchestrator/import/reading.h"
#include "probes/core/json_io.h"
#include "probes/core/text.h"

namespace assay::imports {
namespace {

using nlohmann::json;

// MB and MiB are kMebibyte: perftest divides by 0x100000, in spite of its head.
constexpr double kGigabit = 1e9 / 8;  // and by 125000000 with --report_gbits
constexpr const char* kOtherDirection = "the other direction at the same time";
constexpr const char* kCycles = "with -C perftest prints processor cycles under a heading of microseconds";

/// The figure behind a head of the text, or behind a field of the JSON form.
struct PerftestColumn {
  std::string_view head;
  std::string_view field;
  const char* metric;  ///< empty: a coordinate, or passed over with `statistic` as the reason
  const char* statistic;
  const char* unit;
  double factor;  ///< 0: the bandwidth's
};

constexpr PerftestColumn kPerftestColumns[] = {
    {"#bytes", "MsgSize", "", "", "", 1},
    {"#iterations", "n_iterations", "", "", "", 1},
    {"#sl", "sl", "", "", "", 1},
    {"BW peak", "BW_peak", "bandwidth", "peak", "B/s", 0},
    {"BW average", "BW_average", "bandwidth", "mean", "B/s", 0},
    {"MsgRate[Mpps]", "MsgRate", "message_rate", "mean", "1/s", 1e6},
    {"CPU_Util[%]", "CPU_util", "cpu_utilisation", "mean", "1", 1e-2},
    {"t_min[usec]", "t_min", "latency", "min", "s", 1e-6},
    {"t_max[usec]", "t_max", "latency", "trimmed_max", "s", 1e-6},
    {"t_typical[usec]", "t_typical", "latency", "p50", "s", 1e-6},
    {"t_avg[usec]", "t_avg", "latency", "mean", "s", 1e-6},
    {"t_stdev[usec]", "t_stdev", "", "perftest computes it in whole microseconds", "", 0},
    {"99% percentile[usec]", "percentile_99", "latency", "p99", "s", 1e-6},
    {"99.9% percentile[usec]", "percentile_99.9", "latency", "p99.9", "s", 1e-6},
    {"tps average", "tps_average", "transaction_rate", "mean", "1/s", 1},
};

constexpr PerftestColumn kUnknownPerftestColumn = {"", "", "", "", "", 1};

/// `sum`: of both directions.
FigureName name_of(const PerftestColumn& column, bool sum, double bandwidth_unit) {
  const bool bandwidth = column.factor == 0;
  const bool summed = sum && (bandwidth || column.head == "MsgRate[Mpps]");
  return {.metric = fmt::format("{}{}", column.metric, summed ? "_both_directions" : ""),
          .unit = column.unit,
          .statistic = column.statistic,
          .factor = bandwidth ? bandwidth_unit : column.factor};
}

/// Settings before the table, as "Name   : value", two on a line.
constexpr std::array<std::string_view, 33> kSettings = {"Dual-port",
                                                        "Device",
                                                        "Number of qps",
                                                        "Transport type",
                                                        "Connection type",
                                                        "Using SRQ",
                                                        "PCIe relax order",
                                                        "Lock-free",
                                                        "ibv_wr* API",
                                                        "Using Enhanced Reorder",
                                                        "TX depth",
                                                        "RX depth",
                                                        "Recv Post List",
                                                        "Post List",
                                                        "DCS num streams",
                                                        "DCS active num streams",
                                                        "Number of data encryption keys",
                                                        "Block Size",
                                                        "CQ Moderation",
                                                        "CQE Poll Batch",
                                                        "Mtu",
                                                        "Link type",
                                                        "Buffer size",
                                                        "GID index2",
                                                        "GID index",
                                                        "Max inline data",
                                                        "Outstand reads",
                                                        "rdma_cm QPs",
                                                        "Use ROCm memory",
                                                        "Use MUSA memory",
                                                        "Data ex. method",
                                                        "TOS",
                                                        "NUMA node"};

/// The position of the next setting's name in `text` from `begin` on, its name, and the position of its value.
struct Setting {
  std::size_t begin = std::string_view::npos;
  std::string_view name;
  std::size_t value = 0;
};

Setting next_setting(std::string_view text, std::size_t begin) {
  Setting next;
  for (const auto name : kSettings) {
    const auto found = text.find(name, begin);
    if (found >= next.begin || (found > 0 && text[found - 1] != ' ' && text[found - 1] != '\t')) continue;
    const auto colon = text.find_first_not_of(" \t", found + name.size());
    if (colon != std::string_view::npos && text[colon] == ':')
      next = {.begin = found, .name = name, .value = colon + 1};
  }
  return next;
}

class TextReader {
 public:
  TextReader(judge::ImportSource& source, Figures& figures) : source_(source), figures_(figures) {}

  void line(const TextLine& line) {
    if (line.text.empty() || line.text.find_first_not_of("-*") == std::string_view::npos) return;
    if (!columns_.empty() && whole_from(words_of(line.text).front())) return row(line);
    if (line.text == "Local results:" || line.text == "Remote results:") return part(line);
    if (line.text.starts_with("#bytes")) return heads(line);
    if (const auto test = perftest_run_of(std::string(line.text))) {
      if (test_) throw ImportRefusal{line.from(), "a second run begins", "import one run per file"};
      test_ = test;
      source_.facts["test"] = std::string(line.text);
      return;
    }
    if (is_setting(line) || is_remark(line)) return;
    const auto colon = line.text.find(':');
    if (test_ && columns_.empty() && colon != std::string_view::npos && colon + 1 < line.text.size())
      return figures_.leave_out(line.from(), "a setting that is not known", harmless(line.text));
    figures_.foreign(line, test_.has_value());
  }

  void end() const {
    if (columns_.empty())
      throw ImportRefusal{
          "", "has no table of results",
          "import the output of the client, run without --output; the server of some tests has no table"};
  }

 private:
  /// --report-both: below the table of both directions one each of the two.
  void part(const TextLine& line) {
    if (!test_ || !test_->both_directions || columns_.empty())
      throw ImportRefusal{line.from(), "is not below a table of both directions", "save the output from its beginning"};
    part_ = line.text.substr(0, line.text.find(' '));
    columns_.clear();
  }

  bool is_setting(const TextLine& line) {
    auto setting = next_setting(line.text, 0);
    if (setting.begin != 0) return false;
    while (setting.begin != std::string_view::npos) {
      const auto next = next_setting(line.text, setting.value);
      const auto value = trimmed(line.text.substr(
          setting.value, next.begin == std::string_view::npos ? next.begin : next.begin - setting.value));
      if (value.find(": ") != std::string_view::npos)
        figures_.leave_out(line.from(), "a setting that is not known", harmless(value));
      source_.facts[std::string(setting.name)] = std::string(value);
      setting = next;
    }
    return true;
  }

  bool is_remark(const TextLine& line) {
    constexpr std::array<std::string_view, 3> kDoubts = {"WARNING", "Conflicting CPU frequency values",
                                                         "CPU Frequency is not max"};
    if (std::ranges::any_of(kDoubts, [&](std::string_view doubt) { return line.text.starts_with(doubt); })) {
      figures_.leave_out(line.from(), "a warning of the tool", std::string(line.text));
      return true;
    }
    constexpr std::array<std::string_view, 16> kKnown = {"local address:",
                                                         "remote address:",
                                                         "GID:",
                                                         "* Waiting for client to connect",
                                                         "initializing CUDA",
                                                         "Listing all CUDA devices",
                                                         "CUDA device",
                                                         "Picking device No.",
                                                         "[pid =",
                                                         "creating CUDA Ctx",
                                                         "making it the current CUDA Ctx",
                                                         "cuMemAlloc()",
                                                         "allocated GPU buffer",
                                                         "using DMA-BUF for GPU buffer",
                                                         "deallocating",
                                                         "destroying current CUDA Ctx"};
    if (line.text.starts_with("cuMemAlloc()") || line.text.starts_with("allocated GPU buffer"))
      source_.facts["memory"] = std::string("gpu");
    return std::ranges::any_of(kKnown, [&](std::string_view known) { return line.text.starts_with(known); });
  }

  void heads(const TextLine& line) {
    if (!test_)
      throw ImportRefusal{line.from(), "no title above says which test this is", "save the output from its beginning"};
    if (!columns_.empty()) throw ImportRefusal{line.from(), "a second table begins", "import one run per file"};
    std::string_view rest = line.text;
    while (!rest.empty()) {
      const auto* column =
          std::ranges::find_if(kPerftestColumns, [&](const PerftestColumn& one) { return rest.starts_with(one.head); });
      if (column == std::end(kPerftestColumns)) {
        const auto head = rest.substr(0, std::min(rest.find("  "), rest.find('\t')));
        figures_.leave_out(line.from(), fmt::format("the column '{}'", harmless(head)), "is not known");
        columns_.push_back(&kUnknownPerftestColumn);
        rest = trimmed(rest.substr(head.size()));
        continue;
      }
      rest.remove_prefix(column->head.size());
      if (column->factor == 0 && column->metric[0] != '\0') rest = without_unit(line, rest);
      if (column->metric[0] == '\0' && column->statistic[0] != '\0')
        figures_.leave_out(line.from(), std::string(column->head), column->statistic);
      columns_.push_back(column);
      rest = trimmed(rest);
    }
    if (!test_->bandwidth && has_perftest_option(source_.command, 'C', "--report-cycles"))
      throw ImportRefusal{line.from(), "the times are in cycles", kCycles};
  }

  /// Takes the unit behind a bandwidth's head.
  std::string_view without_unit(const TextLine& line, std::string_view rest) {
    constexpr std::pair<std::string_view, double> kUnits[] = {
        {"[Gb/sec]", kGigabit}, {"[MiB/sec]", kMebibyte}, {"[MB/sec]", kMebibyte}};
    for (const auto& [unit, factor] : kUnits) {
      if (!rest.starts_with(unit)) continue;
      if (unit == "[MB/sec]" && bandwidth_unit_ == 0)
        figures_.leave_out(line.from(), "the unit MB/sec",
                           "older versions write MB where they divide by 2^20: read as MiB/s");
      bandwidth_unit_ = factor;
      return rest.substr(unit.size());
    }
    throw ImportRefusal{line.from(), "the bandwidth has no known unit", "Gb/sec, MiB/sec or MB/sec"};
  }

  void row(const TextLine& line) {
    const auto words = words_of(line.text);
    if (words.size() != columns_.size())
      throw ImportRefusal{line.from(), fmt::format("{} columns, the heading has {}", words.size(), columns_.size()),
                          "merged columns, or a truncated line"};
    const auto size = whole_from(words.front());
    if (!size || *size < 0) throw ImportRefusal{line.from(), fmt::format("'{}' is not a size", words.front()), ""};
    Values at = perftest_coordinates(source_, *test_, *size);
    if (!part_.empty()) {
      at["end"] = part_;
      add_condition(at, kOtherDirection);
    }
    for (std::size_t i = 0; i < words.size(); ++i) {
      if (columns_[i]->head == "#sl") at["service_level"] = std::string(words[i]);
    }
    if (const int again = ++rows_[at]; again > 1) at["row"] = std::int64_t{again};  // of --run_infinitely
    for (std::size_t i = 0; i < words.size(); ++i) {
      if (columns_[i] == &kUnknownPerftestColumn) continue;
      if (columns_[i]->metric[0] == '\0') {
        if (!number_from(words[i]))
          throw ImportRefusal{line.from(), fmt::format("'{}' is not a number", words[i]), "merged columns"};
        continue;
      }
      figures_.word(name_of(*columns_[i], test_->both_directions && part_.empty(), bandwidth_unit_), at, words[i],
                    line.from());
    }
  }

  judge::ImportSource& source_;
  Figures& figures_;
  std::optional<PerftestRun> test_;
  std::vector<const PerftestColumn*> columns_;
  std::string part_;            ///< "Local" or "Remote"; empty: the table of the run
  std::map<Values, int> rows_;  ///< how often a row of these coordinates came
  double bandwidth_unit_ = 0;
};

/// The unit of the JSON form's bandwidth, which only the command states.
double unit_from_command(const judge::ImportSource& source) {
  const auto words = words_of(source.command);
  const bool is_perftest = std::ranges::any_of(words, [](std::string_view word) { return word.ends_with("_bw"); });
  if (!is_perftest) {
    throw ImportRefusal{"results.BW_average",
                        "has no unit: perftest's JSON does not state whether --report_gbits was given",
                        "state how it was run: --command 'ib_write_bw --report_gbits …'"};
  }
  return has_perftest_option(source.command, '\0', "--report_gbits") ? kGigabit : kMebibyte;
}

}  // namespace

void read_perftest_text(std::string_view text, judge::ImportSource& source, Figures& figures) {
  TextReader reader(source, figures);
  for (const auto& line : lines_of(text, &figures)) reader.line(line);
  reader.end();
}

void read_perftest_json(std::string_view text, judge::ImportSource& source, Figures& figures) {
  const json document =
      document_of(text, figures, "perftest writes invalid JSON with --output and with --raw_qos: run without them");
  StrictObject top = closed(document, "");
  const json& info = top.need("test_info");
  if (!info.is_object()) throw ImportRefusal{"test_info", "must be an object", ""};
  for (const auto& [name, value] : info.items()) {
    const auto scalar = value_from(value);
    if (!scalar) throw ImportRefusal{"test_info." + name, "is not a scalar", ""};
    source.facts[name] = *scalar;
  }
  StrictObject title = closed(info, "test_info");
  const auto test = perftest_run_of(title.text("test"));
  if (!test)
    throw ImportRefusal{"test_info.test", "is not a known test",
                        "Send, RDMA_Write, RDMA_Read or Atomic, BW or Latency"};
  StrictObject results = closed(top.need("results"), "results");
  if (results.optional("MsgSize") == nullptr)
    throw ImportRefusal{"results", "has no 'MsgSize'", "run perftest without --output"};
  if (!source.command.empty()) check_perftest_command(source.command, *test, "test_info.test");
  if (!test->bandwidth && has_perftest_option(source.command, 'C', "--report-cycles"))
    throw ImportRefusal{"results", "the times are in cycles", kCycles};
  const bool all_sizes = has_perftest_option(source.command, 'a', "--all");
  if (all_sizes) {
    figures.leave_out("results", "every size but the last",
                      "perftest writes its JSON anew for each size: run one size per file, or import the text");
  }
  Values at = perftest_coordinates(source, *test, results.whole("MsgSize"));
  // The file is written anew for the sum and for each end: the other end's direction is left in it.
  const bool half = test->both_directions && !all_sizes && has_perftest_option(source.command, '\0', "--report-both");
  if (half) {
    at["end"] = std::string("Remote");
    add_condition(at, kOtherDirection);
  }
  for (const auto& column : kPerftestColumns) {
    const std::string field(column.field);
    const json* value = results.optional(field);
    if (value == nullptr) continue;
    if (column.metric[0] != '\0') {
      const double unit = column.factor == 0 ? unit_from_command(source) : 1;
      figures.field(name_of(column, test->both_directions && !half, unit), at, value, results.path(field));
    } else if (column.statistic[0] != '\0') {
      figures.leave_out(results.path(field), field, column.statistic);
    }
  }
  figures.unknown(results);
  figures.unknown(top);
}

}  // namespace assay::imports
