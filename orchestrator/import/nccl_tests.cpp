// nccl_tests: the table that nccl-tests prints. Columns are found by their heads, for they differ between versions
// and options.
#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "orchestrator/import/import.h"
#include "orchestrator/import/reading.h"

namespace assay::imports {
namespace {

constexpr const char* kUnchecked = "N/A: the tool did not check the data";
constexpr const char* kTail = "# Avg bus bandwidth";

/// Content of one column, and the unit that its second head must say.
struct NcclTestsColumn {
  std::string_view head;
  std::string_view unit;
  const char* metric;  ///< empty if it is a coordinate
  const char* statistic;
  const char* base_unit;
  double factor;
};

constexpr NcclTestsColumn kNcclTestsColumns[] = {
    {"size", "(B)", "", "", "", 0},
    {"count", "(elements)", "", "", "", 0},
    {"type", "", "", "", "", 0},
    {"redop", "", "", "", "", 0},
    {"root", "", "", "", "", 0},
    {"#wrong", "", "", "", "", 0},
    {"timestamp", "", "", "", "", 0},
    {"time", "(us)", "time", "mean", "s", 1e-6},
    {"cputime", "(us)", "cpu_time", "mean", "s", 1e-6},
    {"algbw", "(GB/s)", "algbw", "mean", "B/s", 1e9},
    {"busbw", "(GB/s)", "busbw", "mean", "B/s", 1e9},
    {"i_min", "(us)", "time", "min", "s", 1e-6},
    {"i_max", "(us)", "time", "max", "s", 1e-6},
    {"i_p99", "(us)", "time", "p99", "s", 1e-6},
    {"i_cv%", "(%)", "time_variation", "coefficient", "1", 1e-2},
};

class NcclTestsReader {
 public:
  NcclTestsReader(judge::ImportSource& source, Figures& figures) : source_(source), figures_(figures) {
    operation_ = operation_of(source.command);
  }

  void line(const TextLine& line) {
    if (line.text.empty()) return;
    if (line.text.starts_with('#')) return comment(line, trimmed(line.text.substr(1)));
    if (whole_from(words_of(line.text).front())) return row(line);
    if (line.text.find(" NCCL WARN ") != std::string_view::npos)
      return figures_.leave_out(line.from(), "a warning of NCCL", std::string(line.text));
    if (line.text.find(" NCCL INFO ") != std::string_view::npos || line.text.starts_with("NCCL version ")) return;
    throw ImportRefusal{line.from(), "is not a known line of nccl-tests", "save only the output of the tool"};
  }

  void end(std::size_t lines) {
    if (!ended_)
      throw ImportRefusal{fmt::format("line {}", lines + 1),
                          fmt::format("'{}' is missing: the run was interrupted or failed", kTail),
                          "import the output of a finished run"};
    if (ranks_ > 0) source_.facts["ranks"] = ranks_;
    if (ranks_ == 1)
      figures_.leave_out("devices", "collectives of more than one rank",
                         "one rank: several processes of a build without MPI run independently");
  }

 private:
  void comment(const TextLine& line, std::string_view body) {
    if (body.empty()) return;
    const auto words = words_of(body);
    if (words.front() == "size") return heads(line, words);
    if (words.front() == "(B)") return units(line, words);
    if (words.front() == "Rank") return void(++ranks_);
    if (body.find("out-of-place") != std::string_view::npos || body.starts_with("in-place")) return places(line, body);
    if (body.starts_with("Avg bus bandwidth")) {
      ended_ = true;
      return figures_.leave_out(line.from(), "average bus bandwidth",
                                "an average over all sizes is not the figure of any size");
    }
    if (body.starts_with("Out of bounds values"))
      return void(source_.facts["out_of_bounds"] = std::string(trimmed(body.substr(body.find(':') + 1))));
    setting(line, body, words);
  }

  void setting(const TextLine& line, std::string_view body, const std::vector<std::string_view>& words) {
    const auto after = [&](std::string_view beginning) { return std::string(trimmed(body.substr(beginning.size()))); };
    if (body.starts_with("nccl-tests version ")) return void(source_.version = after("nccl-tests version "));
    if (body.starts_with("Collective test starting:"))
      return void(operation_ = operation_of(after("Collective test starting:")));
    if (body.starts_with("nThread ")) {
      if (source_.facts.contains("settings"))
        throw ImportRefusal{line.from(), "a second run begins", "import one run per file"};
      return void(source_.facts["settings"] = std::string(body));
    }
    if (body.starts_with("error:") || body.starts_with("Reducing maxBytes to"))
      return figures_.leave_out(line.from(), "a remark of the tool", std::string(body));
    if (body.starts_with("Blocking Enabled")) return void(source_.facts["blocking"] = std::string(body));
    constexpr std::array<std::string_view, 8> kKnown = {
        "Using devices",        "Collective test concluded:", "GPU memory usage",      "Writing JSON output to",
        "Per-Iteration Report", "Parallel Init Enabled",      "Errors with asterisks", "Using device"};
    if (std::ranges::any_of(kKnown, [&](std::string_view known) { return body.starts_with(known); })) return;
    throw ImportRefusal{line.from(), fmt::format("'# {}…' is not a known remark of nccl-tests", words.front()),
                        "probably another version of the tool; nothing of it is imported"};
  }

  void places(const TextLine& line, std::string_view body) {
    const auto out_of_place = body.find("out-of-place");
    const auto in_place = body.find("in-place");
    if (out_of_place == std::string_view::npos || in_place == std::string_view::npos)
      throw ImportRefusal{line.from(), "does not name out-of-place and in-place", ""};
    if (out_of_place < in_place)
      places_ = {"out_of_place", "in_place"};
    else
      places_ = {"in_place", "out_of_place"};
  }

  void heads(const TextLine& line, const std::vector<std::string_view>& words) {
    if (!columns_.empty()) throw ImportRefusal{line.from(), "a second table begins", "import one run per file"};
    for (const auto word : words) {
      const auto* column = std::ranges::find(kNcclTestsColumns, word, &NcclTestsColumn::head);
      if (column == std::end(kNcclTestsColumns))
        throw ImportRefusal{line.from(), fmt::format("'{}' is not a known column", word),
                            "another version of the tool, or of a tool like it"};
      columns_.push_back(column);
    }
    group();
    if (places_.empty() || groups_.size() != places_.size()) {
      throw ImportRefusal{
          line.from(),
          fmt::format("{} groups of figures, but the line above names {} places", groups_.size(), places_.size()),
          "out-of-place and in-place must be distinguishable"};
    }
  }

  /// Adjacent columns of figures belong to one place, until a heading repeats.
  void group() {
    const auto is_figure = [](const NcclTestsColumn* column) {
      return column->metric[0] != '\0' || column->head == "#wrong";
    };
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (!is_figure(columns_[i])) continue;
      const bool beside = !groups_.empty() && groups_.back().second == i;
      const auto repeats = [&] {
        return std::any_of(columns_.begin() + static_cast<std::ptrdiff_t>(groups_.back().first),
                           columns_.begin() + static_cast<std::ptrdiff_t>(i),
                           [&](const NcclTestsColumn* before) { return before == columns_[i]; });
      };
      if (beside && !repeats())
        groups_.back().second = i + 1;
      else
        groups_.emplace_back(i, i + 1);
    }
  }

  /// The second head says the units; only those that are known are converted.
  void units(const TextLine& line, const std::vector<std::string_view>& words) {
    std::vector<std::string_view> due;
    for (const NcclTestsColumn* column : columns_) {
      if (!column->unit.empty()) due.push_back(column->unit);
    }
    std::vector<std::string_view> said(words);
    while (!said.empty() && said.back().starts_with('%')) said.pop_back();  // the form of the time stamp
    if (due.empty() || said != due)
      throw ImportRefusal{line.from(), "the units are not those of the columns", "times are in us, bandwidths in GB/s"};
    units_known_ = true;
  }

  void row(const TextLine& line) {
    if (!units_known_)
      throw ImportRefusal{line.from(), "a row before the column headings", "save the output from its beginning"};
    if (ended_) throw ImportRefusal{line.from(), fmt::format("a row after '{}'", kTail), "import one run per file"};
    auto words = words_of(line.text);
    const auto stamp = std::ranges::find(columns_, "timestamp", &NcclTestsColumn::head) != columns_.end();
    if (stamp && words.size() == columns_.size() + 1) words.pop_back();  // a date and a time
    // Versions before 2.13 leave the reduction blank if there is none.
    const auto redop = std::ranges::find(columns_, "redop", &NcclTestsColumn::head) - columns_.begin();
    if (words.size() + 1 == columns_.size() && static_cast<std::size_t>(redop) < words.size() &&
        whole_from(words[static_cast<std::size_t>(redop)])) {
      words.insert(words.begin() + redop, "none");
    }
    if (words.size() != columns_.size()) {
      throw ImportRefusal{line.from(), fmt::format("{} columns, the heading has {}", words.size(), columns_.size()),
                          "merged columns, a truncated line, or a place that was not measured"};
    }
    cells(line, words);
  }

  [[nodiscard]] Values coordinates(const TextLine& line, const std::vector<std::string_view>& words) const {
    Values at;
    if (!operation_.empty()) at["operation"] = operation_;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const auto head = columns_[i]->head;
      if (head == "size" || head == "root") {
        const auto whole = whole_from(words[i]);
        if (!whole)
          throw ImportRefusal{line.from(), fmt::format("'{}' is not a whole number, expected the {}", words[i], head),
                              ""};
        if (head == "size" || *whole >= 0) at[std::string(head)] = *whole;
      } else if (head == "type" || (head == "redop" && words[i] != "none")) {
        at[std::string(head)] = std::string(words[i]);
      }
    }
    return at;
  }

  void cells(const TextLine& line, const std::vector<std::string_view>& words) {
    Values at = coordinates(line, words);
    for (std::size_t i = 0; i < places_.size(); ++i) {
      at["place"] = places_[i];
      one_place(line, words, at, groups_[i].first, groups_[i].second);
    }
  }

  void one_place(const TextLine& line, const std::vector<std::string_view>& words, const Values& at, std::size_t begin,
                 std::size_t end) {
    const FigureName mismatches{.metric = "mismatches", .unit = "1", .statistic = "count"};
    for (std::size_t i = begin; i < end; ++i) {
      if (columns_[i]->head != "#wrong") continue;
      if (is_absent(words[i])) {
        figures_.leave_out(line.from(), "count mismatches", kUnchecked);
        continue;
      }
      const auto wrong = number_from(words[i]);
      if (!wrong) throw ImportRefusal{line.from(), fmt::format("'{}' is not a number, expected #wrong", words[i]), ""};
      figures_.count(mismatches, at, *wrong, line.from());
      if (*wrong > 0)
        return figures_.leave_out(
            line.from(), "time, algbw, busbw",
            fmt::format("{} elements were wrong: the speed of wrong data is meaningless", words[i]));
    }
    for (std::size_t i = begin; i < end; ++i) {
      const NcclTestsColumn& column = *columns_[i];
      if (column.head == "#wrong") continue;
      figures_.word(
          {.metric = column.metric, .unit = column.base_unit, .statistic = column.statistic, .factor = column.factor},
          at, words[i], line.from());
    }
  }

  judge::ImportSource& source_;
  Figures& figures_;
  std::string operation_;
  std::vector<const NcclTestsColumn*> columns_;
  std::vector<std::string> places_;  ///< in the order of their columns
  std::vector<std::pair<std::size_t, std::size_t>>
      groups_;  ///< the columns of each place: first, and one behind the last
  std::int64_t ranks_ = 0;
  bool units_known_ = false;
  bool ended_ = false;
};

}  // namespace

std::string operation_of(std::string_view program) {
  const auto words = words_of(program);
  for (std::string_view word : words) {
    word.remove_prefix(std::min(word.find_last_of('/') + 1, word.size()));
    if (word.ends_with("_mpi")) word.remove_suffix(4);
    if (!word.ends_with("_perf")) continue;
    word.remove_suffix(5);
    if (word == "alltoall") return "all_to_all";
    if (word == "sendrecv") return "send_recv";
    return std::string(word);
  }
  return "";
}

void read_nccl_tests_text(std::string_view text, judge::ImportSource& source, Figures& figures) {
  const auto lines = lines_of(text);
  NcclTestsReader reader(source, figures);
  for (const auto& line : lines) reader.line(line);
  reader.end(lines.size());
}

}  // namespace assay::imports
