// osu: the tables of the OSU micro-benchmarks. Their MB is 1e6 bytes.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "orchestrator/import/import.h"
#include "orchestrator/import/reading.h"
#include "probes/core/text.h"

namespace assay::imports {
namespace {

struct OsuColumn {
  std::string_view head;
  const char* metric;  ///< empty: a coordinate or a count that is passed over
  const char* statistic;
  const char* unit;
  double factor;
};

constexpr OsuColumn kOsuColumns[] = {
    {"Size", "", "", "", 0},
    {"Iterations", "", "", "", 0},
    {"Validation", "", "", "", 0},
    {"Latency (us)", "latency", "mean", "s", 1e-6},
    {"Avg Latency(us)", "latency", "mean", "s", 1e-6},
    {"Min Latency(us)", "latency", "fastest_rank", "s", 1e-6},
    {"Max Latency(us)", "latency", "slowest_rank", "s", 1e-6},
    {"P50 Tail Lat(us)", "latency", "p50", "s", 1e-6},
    {"P90 Tail Lat(us)", "latency", "p90", "s", 1e-6},
    {"P95 Tail Lat(us)", "latency", "p95", "s", 1e-6},
    {"P99 Tail Lat(us)", "latency", "p99", "s", 1e-6},
    {"Bandwidth (MB/s)", "bandwidth", "mean", "B/s", 1e6},
    {"MB/s", "bandwidth", "mean", "B/s", 1e6},
    {"Messages/s", "message_rate", "mean", "1/s", 1},
};
constexpr OsuColumn kUnknownOsuColumn = {"", "", "", "", 0};

class OsuReader {
 public:
  OsuReader(judge::ImportSource& source, Figures& figures) : source_(source), figures_(figures) {}

  void line(const TextLine& line) {
    if (line.text.empty()) return;
    if (!line.text.starts_with('#')) {
      if (!columns_.empty() && number_from(words_of(line.text).front())) return row(line);
      return figures_.foreign(line, !test_.empty());
    }
    const auto body = trimmed(line.text.substr(1));
    if (body.empty()) return;
    if (body.starts_with("OSU ")) return title(line, body);
    if (test_.empty()) return figures_.foreign(line, false);
    constexpr std::array<std::string_view, 7> kSettingLines = {"Datatype:",        "[ pairs:",       "Window creation:",
                                                               "Synchronization:", "Send Buffer on", "Rank 0 Memory on",
                                                               "Number of"};
    if (std::ranges::any_of(kSettingLines, [&](std::string_view setting) { return body.starts_with(setting); })) {
      return void(source_.facts[fmt::format("setting.{}", ++settings_)] = std::string(body));
    }
    const bool is_head =
        std::ranges::any_of(kOsuColumns, [&](const OsuColumn& one) { return body.starts_with(one.head); });
    if (is_head || body.find("Latency") != std::string_view::npos || body.find("Bandwidth") != std::string_view::npos)
      return heads(line, body);
    figures_.leave_out(line.from(), "a setting that is not known", harmless(body));
  }

  void end() const {
    if (columns_.empty())
      throw ImportRefusal{"", "has no table below a title '# OSU …'", "import the whole output of an OSU benchmark"};
  }

 private:
  void title(const TextLine& line, std::string_view body) {
    if (!test_.empty()) throw ImportRefusal{line.from(), "a second run begins", "import one run per file"};
    const auto version = body.rfind(" v");
    if (version == std::string_view::npos || body.find(" Test") == std::string_view::npos)
      throw ImportRefusal{line.from(), "is not a title of an OSU benchmark", "'# OSU MPI Bandwidth Test v7.5'"};
    test_ = std::string(body.substr(0, version));
    source_.version = std::string(body.substr(version + 2));
    source_.facts["test"] = test_;
  }

  void heads(const TextLine& line, std::string_view body) {
    if (!columns_.empty()) throw ImportRefusal{line.from(), "a second table begins", "import one run per file"};
    while (!body.empty()) {
      const auto* column =
          std::ranges::find_if(kOsuColumns, [&](const OsuColumn& one) { return body.starts_with(one.head); });
      const bool whole =
          column != std::end(kOsuColumns) &&
          (body.size() == column->head.size() || body[column->head.size()] == ' ' || body[column->head.size()] == '\t');
      if (!whole) {
        const auto head = body.substr(0, std::min(body.find("  "), body.find('\t')));
        // A bandwidth or a latency in another unit is the figure itself, not a further column.
        if (head.starts_with("Bandwidth") || head.find("Latency") != std::string_view::npos || columns_.empty())
          throw ImportRefusal{line.from(), fmt::format("'{}' is not a known column", head),
                              "known are Latency (us) and Bandwidth (MB/s)"};
        figures_.leave_out(line.from(), fmt::format("the column '{}'", harmless(head)), "is not known");
        columns_.push_back(&kUnknownOsuColumn);
        body = trimmed(body.substr(head.size()));
        continue;
      }
      columns_.push_back(column);
      body = trimmed(body.substr(column->head.size()));
    }
    if (columns_.front()->head == "Iterations" || columns_.front()->head == "Validation")
      throw ImportRefusal{line.from(), "has no size", ""};
  }

  void row(const TextLine& line) {
    const auto words = words_of(line.text);
    if (words.size() != columns_.size())
      throw ImportRefusal{line.from(), fmt::format("{} columns, the heading has {}", words.size(), columns_.size()),
                          "merged columns, or a truncated line"};
    Values at{{"test", test_}};
    for (std::size_t i = 0; i < words.size(); ++i) {
      if (columns_[i]->head == "Validation" && words[i] != "Pass")
        return figures_.leave_out(
            line.from(), "the row",
            fmt::format("validation says '{}': the speed of wrong data is meaningless", words[i]));
      if (columns_[i]->head != "Size") continue;
      const auto size = whole_from(words[i]);
      if (!size || *size < 0) throw ImportRefusal{line.from(), fmt::format("'{}' is not a size", words[i]), ""};
      at["size"] = *size;
    }
    for (std::size_t i = 0; i < words.size(); ++i) {
      const OsuColumn& column = *columns_[i];
      if (column.metric[0] == '\0') continue;
      figures_.word(
          {.metric = column.metric, .unit = column.unit, .statistic = column.statistic, .factor = column.factor}, at,
          words[i], line.from());
    }
  }

  judge::ImportSource& source_;
  Figures& figures_;
  std::string test_;
  std::vector<const OsuColumn*> columns_;
  int settings_ = 0;
};

}  // namespace

void read_osu(std::string_view text, judge::ImportSource& source, Figures& figures) {
  OsuReader reader(source, figures);
  for (const auto& line : lines_of(text, &figures)) reader.line(line);
  reader.end();
}

}  // namespace assay::imports
