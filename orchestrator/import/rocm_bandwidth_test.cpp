// rocm_bandwidth_test: matrices and tables of AMD's rocm-bandwidth-test. Its GB are 1e9 B, its KB and MB 2^10 and 2^20.
// Its peak is from the shortest time, its mean without the longest. Both directions together are one figure, and a copy
// on one device counts its bytes twice.
#include <algorithm>

#include <fmt/format.h>

#include "orchestrator/import/import.h"
#include "orchestrator/import/table.h"
#include "probes/core/text.h"

namespace assay::imports {
namespace {

constexpr const char* kRocmBandwidthHint = "import the output of rocm-bandwidth-test, whole and unchanged";
constexpr Column kRocmBandwidthColumns[] = {{.head = "Data Size"},
                                            {"Avg Time(us)", "time", "s", "trimmed_mean", 1e-6},
                                            {"Avg BW(GB/s)", "", "B/s", "trimmed_mean", 1e9},
                                            {"Min Time(us)", "time", "s", "min", 1e-6},
                                            {"Peak BW(GB/s)", "", "B/s", "max", 1e9}};

class RocmBandwidthReader {
 public:
  RocmBandwidthReader(judge::ImportSource& source, Figures& figures) : source_(source), figures_(figures) {}

  void line(const TextLine& line) {
    const std::string_view text = line.text;
    const auto words = words_of(text);
    if (words.empty()) return;
    const auto has = [&](std::string_view part) { return text.find(part) != std::string_view::npos; };
    const bool both = has("Bidirectional") || has("Bdirectional");  // so written by 2.0
    const bool directed = both || has("Unidirectional");
    if (directed && has("directional copy ") && text.ends_with("bandwidth GB/s")) {
      statistic_ = words[2] == "peak" ? "max" : "trimmed_mean";
      begin(line, both ? "bandwidth_both_directions" : "bandwidth", Part::matrix);
    } else if (text.starts_with("Data Path Validation")) {
      begin(line, "failures", Part::matrix);
    } else if (text.starts_with("Inter-Device ")) {
      begin(line, "", Part::matrix);
    } else if (words[0] == "D/D" && part_ == Part::matrix) {
      heads_.assign(words.begin() + 1, words.end());
    } else if (part_ == Part::matrix && !heads_.empty() && whole_from(words[0])) {
      matrix_row(line, words);
    } else if (directed && has("directional Benchmark Result")) {
      begin(line, both ? "bandwidth_both_directions" : "bandwidth", Part::copies);
    } else if (part_ == Part::copies && text.find(" Device Id: ") != std::string_view::npos && words.size() > 8) {
      ends_[words[1] == "Src" ? "source" : "target"] = fmt::format("{} {}", words[8], words[4]);
    } else if (part_ == Part::copies && text.starts_with("Data Size")) {
      table_.emplace(kRocmBandwidthColumns, line, cells_of(text), figures_);
    } else if (part_ == Part::copies && table_ && whole_from(words[0])) {
      copy_row(line, words);
    } else {
      setting(line, words);
    }
  }

  /// Refused: a matrix with fewer rows than columns.
  void end(const TextLine& line) const {
    if (part_ == Part::matrix && rows_ != heads_.size())
      throw ImportRefusal{line.from(), fmt::format("a matrix of {} devices has {} rows", heads_.size(), rows_),
                          kRocmBandwidthHint};
  }

 private:
  enum class Part { none, matrix, copies };

  void begin(const TextLine& line, const char* metric, Part part) {
    end(line);
    metric_ = metric, part_ = part, rows_ = 0;
    heads_.clear();
    ends_.clear();
    table_.reset();
  }

  void matrix_row(const TextLine& line, const std::vector<std::string_view>& words) {
    ++rows_;
    if (words.size() != heads_.size() + 1)
      throw ImportRefusal{line.from(), fmt::format("{} cells, the heading has {}", words.size() - 1, heads_.size()),
                          kRocmBandwidthHint};
    for (std::size_t i = 0; i < heads_.size() && !metric_.empty(); ++i) {
      Values at{{"source", "device " + std::string(words[0])}, {"target", "device " + heads_[i]}};
      if (words[0] == heads_[i]) add_condition(at, "source and target are one device: its bytes count twice");
      if (timer_) add_condition(at, "timed by the processor");
      const auto word = words[i + 1];
      if (metric_ != "failures")
        figures_.word({.metric = metric_, .unit = "B/s", .statistic = statistic_, .factor = 1e9}, at, word,
                      line.from());
      else if (word == "PASS" || word == "FAIL")
        figures_.count({.metric = metric_, .unit = "1", .statistic = "count"}, at, word == "FAIL" ? 1 : 0, line.from());
      else
        figures_.leave_out(line.from(), "count failures", fmt::format("the tool says '{}'", harmless(word)));
    }
  }

  /// "64 MB    1234.5    54.4    1230.1    54.6"
  void copy_row(const TextLine& line, const std::vector<std::string_view>& words) {
    auto cells = cells_of(line.text);
    table_->row(line, cells);
    const std::string_view unit = words[1];
    const std::int64_t scale = unit == "Bytes" ? 1 : unit == "KB" ? 1 << 10 : unit == "MB" ? 1 << 20 : 0;
    constexpr std::int64_t kLargest = std::int64_t{1} << 40;
    const auto number = whole_from(words[0]);
    if (scale == 0 || *number < 0 || *number > kLargest || !ends_.contains("source") || !ends_.contains("target"))
      throw ImportRefusal{
          line.from(), fmt::format("'{}' is not a size of a copy between two named devices", harmless(cells.front())),
          kRocmBandwidthHint};
    Values at = ends_;
    at["size"] = *number * scale;
    if (ends_.at("source") == ends_.at("target"))
      add_condition(at, "source and target are one device: its bytes count twice");
    if (timer_) add_condition(at, "timed by the processor");
    table_->take(at, figures_);
    for (const auto& column : kRocmBandwidthColumns) {
      if (std::string_view(column.unit) != "B/s" || !table_->has(column.head)) continue;
      figures_.word({.metric = metric_, .unit = "B/s", .statistic = column.statistic, .factor = column.factor}, at,
                    table_->cell(column.head), line.from());
    }
  }

  void setting(const TextLine& line, const std::vector<std::string_view>& words) {
    const auto after = [&](std::string_view beginning) {
      return std::string(trimmed(line.text.substr(beginning.size())));
    };
    if (words[0] == "RocmBandwidthTest") {
      source_.version = words.back();
    } else if (line.text.starts_with("Launch Command is:")) {
      const auto command = words_of(source_.command = after("Launch Command is:"));
      timer_ = std::ranges::find(command, "-c") != command.end();
    } else if (words[0] == "Device:" && words.size() > 1) {
      source_.facts[fmt::format("device.{}", words[1].substr(0, words[1].find(',')))] =
          std::string(trimmed(line.text.substr(line.text.find(',') + 1)));
    } else {
      figures_.foreign(line, true);
    }
  }

  judge::ImportSource& source_;
  Figures& figures_;
  Part part_ = Part::none;
  std::string metric_, statistic_;
  std::vector<std::string> heads_;
  std::size_t rows_ = 0;
  Values ends_;
  std::optional<Table> table_;
  bool timer_ = false;  ///< -c
};

}  // namespace

void read_rocm_bandwidth_test(std::string_view text, judge::ImportSource& source, Figures& figures) {
  RocmBandwidthReader reader(source, figures);
  const auto lines = lines_of(text);
  for (const auto& line : lines) reader.line(line);
  if (!lines.empty()) reader.end(lines.back());
}

}  // namespace assay::imports
