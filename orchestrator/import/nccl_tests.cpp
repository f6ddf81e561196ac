// nccl_tests: the table that nccl-tests and rccl-tests print. Columns are found by their heads, for they differ between
// versions and options.
#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "orchestrator/import/import.h"
#include "orchestrator/import/reading.h"
#include "probes/core/text.h"

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
    // Before 2.13: the largest error, and no count of wrong elements.
    {"error", "", "", "", "", 0},
    // rccl-tests with -A 1.
    {"algo", "", "", "", "", 0},
    {"proto", "", "", "", "", 0},
    {"nchannels", "", "", "", "", 0},
};
constexpr std::size_t kFewestColumns = 8;  // of any version
constexpr NcclTestsColumn kUnknownNcclColumn = {"", "", "", "", "", 0};

class NcclTestsReader {
 public:
  NcclTestsReader(judge::ImportSource& source, Figures& figures) : source_(source), figures_(figures) {
    operation_ = operation_of(source.command);
    take_nccl_options(source.command, conditions_);
  }

  void line(const TextLine& line) {
    if (line.text.empty()) return;
    if (line.text.starts_with('#')) return comment(line, trimmed(line.text.substr(1)));
    const auto words = words_of(line.text);
    const bool is_row = whole_from(words.front()) && (!columns_.empty() || words.size() >= kFewestColumns);
    if (is_row) return row(line);
    if (line.text.find(" NCCL WARN ") != std::string_view::npos)
      return figures_.leave_out(line.from(), "a warning of NCCL", std::string(line.text));
    if (line.text.find(" NCCL INFO ") != std::string_view::npos) return;
    constexpr std::array<std::string_view, 5> kBanner = {"NCCL version", "rccl-tests: Version", "RCCL version",
                                                         "HIP version", "ROCm version"};
    const auto* known = std::ranges::find_if(kBanner, [&](std::string_view one) { return line.text.starts_with(one); });
    if (known == kBanner.end()) return figures_.foreign(line, false);  // a run that fails does not reach its last lines
    if (known->starts_with("RCCL") || known->starts_with("rccl"))
      source_.tool = "rccl-tests";  // also if it was called nccl-tests
    auto version = trimmed(line.text.substr(known->size()));
    if (version.starts_with(':')) version = trimmed(version.substr(1));
    if (*known == "NCCL version" && version.find("+cuda") != std::string_view::npos) source_.tool = "nccl-tests";
    source_.facts[std::string(*known)] = std::string(version);
  }

  void end(std::size_t lines) {
    if (!ended_)
      throw ImportRefusal{fmt::format("line {}", lines + 1),
                          fmt::format("'{}' is missing: the run was interrupted or failed", kTail),
                          "import the output of a finished run"};
    if (ranks_ > 0) source_.facts["ranks"] = ranks_;
    if (!hosts_.empty()) source_.facts["nodes"] = static_cast<std::int64_t>(hosts_.size());
    if (empty_ > 0)
      figures_.leave_out("table", fmt::format("{} rows of size 0", empty_),
                         "the tool rounds small sizes down to nothing, which it then moves");
    if (operation_.empty())
      figures_.leave_out("table", "the operation",
                         "the output does not name it: state it with --command 'all_reduce_perf …'");
    if (wrong_unplaced_)
      throw ImportRefusal{"out_of_bounds", "elements were wrong, and this version's table does not say in which rows",
                          "the speed of wrong data is meaningless: find the cause and run it again"};
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
    if (words.front() == "Rank") return rank(words);
    if (body.find("out-of-place") != std::string_view::npos || body.starts_with("in-place")) return places(body);
    if (body.starts_with("Avg bus bandwidth")) {
      ended_ = true;
      return figures_.leave_out(line.from(), "average bus bandwidth",
                                "an average over all sizes is not the figure of any size");
    }
    if (body.starts_with("Out of bounds values")) {
      const bool counted = std::ranges::find(columns_, "#wrong", &NcclTestsColumn::head) != columns_.end();
      wrong_unplaced_ = !counted && body.ends_with("FAILED");
      return void(source_.facts["out_of_bounds"] = std::string(trimmed(body.substr(body.find(':') + 1))));
    }
    setting(line, body);
  }

  /// "Rank  0 Group  0 Pid 1444 on n01 device  0 …"
  void rank(const std::vector<std::string_view>& words) {
    ++ranks_;
    const auto group = std::ranges::find(words, "Group");
    if (group != words.end() && group + 1 != words.end()) split_.emplace(*(group + 1));
    const auto on = std::ranges::find(words, "on");
    if (on != words.end() && on + 1 != words.end()) hosts_.emplace(*(on + 1));
  }

  void setting(const TextLine& line, std::string_view body) {
    const auto after = [&](std::string_view beginning) { return std::string(trimmed(body.substr(beginning.size()))); };
    if (body.starts_with("nccl-tests version ")) return void(source_.version = after("nccl-tests version "));
    if (body.starts_with("Collective test starting:"))
      return void(operation_ = operation_of(after("Collective test starting:")));
    if (body.starts_with("nThread ")) {
      if (source_.facts.contains("settings"))
        throw ImportRefusal{line.from(), "a second run begins", "import one run per file"};
      source_.facts["settings"] = std::string(body);
      for (const auto& [name, plain] : {std::pair{"agg iters", "1"}, {"graph", "0"}, {"unalign", "0"}}) {
        const auto at = body.find(fmt::format(" {}: ", name));
        const auto value = at == std::string_view::npos ? std::vector<std::string_view>()
                                                        : words_of(body.substr(body.find(':', at) + 1));
        if (!value.empty() && value.front() != plain)
          add_condition(conditions_, fmt::format("{} {}", name, value.front()));
      }
      return;
    }
    if (body.starts_with("error:") || body.starts_with("Reducing maxBytes to"))
      return figures_.leave_out(line.from(), "a remark of the tool", std::string(body));
    if (body.starts_with("Blocking Enabled")) {
      source_.facts["blocking"] = std::string(body);
      return add_condition(conditions_, "blocking");
    }
    constexpr std::array<std::string_view, 9> kKnown = {
        "Using device",         "Collective test concluded:", "GPU memory usage", "Writing JSON output to",
        "Per-Iteration Report", "Parallel Init Enabled",      "Testing ",         "Errors with asterisks",
        "skipping json output;"};
    if (std::ranges::any_of(kKnown, [&](std::string_view known) { return body.starts_with(known); })) return;
    figures_.leave_out(line.from(), "a remark that is not known", harmless(line.text));
  }

  void places(std::string_view body) {
    const auto out_of_place = body.find("out-of-place");
    const auto in_place = body.find("in-place");
    if (out_of_place == std::string_view::npos || in_place == std::string_view::npos)
      places_ = {in_place == std::string_view::npos ? "out_of_place"
                                                    : "in_place"};  // rccl-tests has one with an option
    else if (out_of_place < in_place)
      places_ = {"out_of_place", "in_place"};
    else
      places_ = {"in_place", "out_of_place"};
  }

  void heads(const TextLine& line, const std::vector<std::string_view>& words) {
    if (!columns_.empty()) throw ImportRefusal{line.from(), "a second table begins", "import one run per file"};
    for (const auto word : words) {
      const auto* column = std::ranges::find(kNcclTestsColumns, word, &NcclTestsColumn::head);
      const bool known = column != std::end(kNcclTestsColumns);
      if (!known || column->head == "error")
        figures_.leave_out(line.from(), fmt::format("the column '{}'", harmless(word)),
                           known ? "the largest error is no count of wrong elements"
                                 : "not known: of another version of the tool, or of a tool like it");
      columns_.push_back(known ? column : &kUnknownNcclColumn);
    }
    take_nccl_groups(split_.size(), conditions_);
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
      return column->metric[0] != '\0' || column->head == "#wrong" || column->head == "error";
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
      throw ImportRefusal{line.from(), "the units are not those of the columns",
                          "times are in us, bandwidths in GB/s; a column that is not known must have no unit"};
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
        number_from(words[static_cast<std::size_t>(redop)])) {
      words.insert(words.begin() + redop, "none");
    }
    if (words.size() != columns_.size()) {
      throw ImportRefusal{line.from(), fmt::format("{} columns, the heading has {}", words.size(), columns_.size()),
                          "merged columns, a truncated line, or a place that was not measured"};
    }
    Values at = coordinates(line, words);
    if (at.at("size") == Value(std::int64_t{0})) return void(++empty_);
    if (const int cycle = ++cycles_[at]; cycle > 1) at["cycle"] = std::int64_t{cycle};  // of -N
    for (std::size_t i = 0; i < places_.size(); ++i) {
      at["place"] = places_[i];
      one_place(line, words, at, groups_[i].first, groups_[i].second);
    }
  }

  [[nodiscard]] Values coordinates(const TextLine& line, const std::vector<std::string_view>& words) const {
    Values at = conditions_;
    if (!operation_.empty()) at["operation"] = operation_;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const auto head = columns_[i]->head;
      if (head == "size" || head == "root") {
        const auto whole = whole_from(words[i]);
        if (!whole)
          throw ImportRefusal{line.from(), fmt::format("'{}' is not a whole number, expected the {}", words[i], head),
                              ""};
        if (head == "size" || *whole >= 0) at[std::string(head)] = *whole;
      } else if (head == "type" || head == "algo" || head == "proto" || (head == "redop" && words[i] != "none")) {
        at[std::string(head)] = std::string(words[i]);
      }
    }
    return at;
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
      if (column.metric[0] == '\0') continue;
      figures_.word(
          {.metric = column.metric, .unit = column.base_unit, .statistic = column.statistic, .factor = column.factor},
          at, words[i], line.from());
    }
  }

  judge::ImportSource& source_;
  Figures& figures_;
  std::string operation_;
  Values conditions_;
  std::set<std::string, std::less<>> hosts_, split_;  ///< and groups
  std::map<Values, int> cycles_;                      ///< how often a row of these coordinates came
  std::int64_t empty_ = 0;                            ///< rows of size 0
  bool wrong_unplaced_ = false;
  std::vector<const NcclTestsColumn*> columns_;
  std::vector<std::string> places_;  ///< in the order of their columns
  std::vector<std::pair<std::size_t, std::size_t>>
      groups_;  ///< the columns of each place: first, and one behind the last
  std::int64_t ranks_ = 0;
  bool units_known_ = false;
  bool ended_ = false;
};

}  // namespace

void take_nccl_groups(std::size_t groups, Values& at) {
  if (groups > 1) add_condition(at, fmt::format("{} groups of ranks at once", groups));
}

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

void take_nccl_options(std::string_view command, Values& at) {
  constexpr std::pair<std::string_view, const char*> kRanks[] = {
      {"0", "the time of rank 0"}, {"2", "the shortest time of a rank"}, {"3", "the longest time of a rank"}};
  struct Option {
    std::string_view letter, name, plain;
    const char* words;
  };
  constexpr Option kOptions[] = {{"-D", "--device_implementation", "0", "device implementation"},
                                 {"-Y", "--memory_type", "coarse", "memory type"},  // this one and those below: RCCL's
                                 {"-u", "--cumask", "0", "CU mask"},
                                 {"-E", "--rotating_tensor", "0", "rotating tensor"},
                                 {"-F", "--cache_flush", "0", "cache flush"}};
  const auto words = words_of(command);
  const auto program = std::ranges::find_if(words, [](std::string_view word) { return !operation_of(word).empty(); });
  for (auto word = program; word != words.end(); ++word) {
    const auto value_of = [&](std::string_view letter, std::string_view name) -> std::string_view {
      const bool alone = *word == letter || *word == name;
      if (alone) return word + 1 != words.end() ? *(word + 1) : std::string_view();
      if (word->starts_with(name) && word->substr(name.size()).starts_with('=')) return word->substr(name.size() + 1);
      return word->starts_with(letter) ? word->substr(letter.size()) : std::string_view();
    };
    const auto* rank =
        std::ranges::find(kRanks, value_of("-a", "--average"), [](const auto& one) { return one.first; });
    if (rank != std::end(kRanks)) add_condition(at, rank->second);
    for (const auto& option : kOptions) {
      const auto value = value_of(option.letter, option.name);
      if (!value.empty() && value != option.plain)
        add_condition(at, fmt::format("{} {}", option.words, harmless(value)));
    }
  }
}

void read_nccl_tests_text(std::string_view text, judge::ImportSource& source, Figures& figures) {
  const auto lines = lines_of(text, &figures);
  NcclTestsReader reader(source, figures);
  for (const auto& line : lines) reader.line(line);
  reader.end(lines.size());
}

}  // namespace assay::imports
