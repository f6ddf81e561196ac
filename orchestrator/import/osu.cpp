// osu: the tables of the OSU micro-benchmarks. Their MB is 1e6 bytes.
#include <algorithm>
#include <array>
#include <optional>

#include <fmt/format.h>

#include "orchestrator/import/import.h"
#include "orchestrator/import/table.h"
#include "probes/core/text.h"

namespace assay::imports {
namespace {

constexpr Column kOsuColumns[] = {
    {.head = "Size"},
    {.head = "Iterations"},
    {.head = "Validation"},
    {"Latency (us)", "latency", "s", "mean", 1e-6},
    {"Avg Latency(us)", "latency", "s", "mean", 1e-6},
    {"Min Latency(us)", "latency", "s", "fastest_rank", 1e-6},
    {"Max Latency(us)", "latency", "s", "slowest_rank", 1e-6},
    {"P50 Tail Lat(us)", "latency", "s", "p50", 1e-6},
    {"P90 Tail Lat(us)", "latency", "s", "p90", 1e-6},
    {"P95 Tail Lat(us)", "latency", "s", "p95", 1e-6},
    {"P99 Tail Lat(us)", "latency", "s", "p99", 1e-6},
    {"Bandwidth (MB/s)", "bandwidth", "B/s", "mean", 1e6},
    {"MB/s", "bandwidth", "B/s", "mean", 1e6},
    {"Messages/s", "message_rate", "1/s", "mean", 1},
};

class OsuReader {
 public:
  OsuReader(judge::ImportSource& source, Figures& figures) : source_(source), figures_(figures) {}

  void line(const TextLine& line) {
    if (line.text.empty()) return;
    if (!line.text.starts_with('#')) {
      if (table_ && number_from(words_of(line.text).front())) return row(line);
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
        std::ranges::any_of(kOsuColumns, [&](const Column& one) { return body.starts_with(one.head); });
    if (is_head || body.find("Latency") != std::string_view::npos || body.find("Bandwidth") != std::string_view::npos)
      return heads(line, body);
    figures_.leave_out(line.from(), "a setting that is not known", harmless(body));
  }

  void end() const {
    if (!table_)
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
    if (table_) throw ImportRefusal{line.from(), "a second table begins", "import one run per file"};
    std::vector<std::string_view> heads;
    while (!body.empty()) {
      const auto* column = std::ranges::find_if(kOsuColumns, [&](const Column& one) {
        const std::string_view head = one.head;
        return body.starts_with(head) &&
               (body.size() == head.size() || body.find_first_of(" \t", head.size()) == head.size());
      });
      const bool known = column != std::end(kOsuColumns);
      const auto head =
          known ? std::string_view(column->head) : body.substr(0, std::min(body.find("  "), body.find('\t')));
      // A bandwidth or a latency in another unit is the figure itself, not a further column.
      if (!known && (head.starts_with("Bandwidth") || head.find("Latency") != std::string_view::npos || heads.empty()))
        throw ImportRefusal{line.from(), fmt::format("'{}' is not a known column", head),
                            "known are Latency (us) and Bandwidth (MB/s)"};
      heads.push_back(body.substr(0, head.size()));
      body = trimmed(body.substr(head.size()));
    }
    if (heads.front() == "Iterations" || heads.front() == "Validation")
      throw ImportRefusal{line.from(), "has no size", ""};
    table_.emplace(kOsuColumns, line, std::move(heads), figures_);
  }

  void row(const TextLine& line) {
    table_->row(line, words_of(line.text));
    if (const auto validation = table_->cell("Validation"); table_->has("Validation") && validation != "Pass")
      return figures_.leave_out(
          line.from(), "the row",
          fmt::format("validation says '{}': the speed of wrong data is meaningless", validation));
    Values at{{"test", test_}};
    if (test_.find("Bi-Directional") != std::string::npos) add_condition(at, "both directions at once");
    if (table_->has("Size")) at["size"] = table_->whole("Size");
    table_->take(at, figures_);
  }

  judge::ImportSource& source_;
  Figures& figures_;
  std::string test_;
  std::optional<Table> table_;
  int settings_ = 0;
};

}  // namespace

void read_osu(std::string_view text, judge::ImportSource& source, Figures& figures) {
  OsuReader reader(source, figures);
  for (const auto& line : lines_of(text, &figures)) reader.line(line);
  reader.end();
}

}  // namespace assay::imports
