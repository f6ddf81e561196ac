// transferbench: the tables that AMD's TransferBench prints, with OUTPUT_TO_CSV=1 or without. Its GB are 1e9 B. The
// figures of p2p are means although its heading says peak. Frames, bars and commas only separate words.
#include <algorithm>
#include <array>
#include <cctype>

#include <fmt/format.h>

#include "orchestrator/import/import.h"
#include "orchestrator/import/reading.h"
#include "probes/core/text.h"

namespace assay::imports {
namespace {

constexpr const char* kTransferBenchHint =
    "import the output of TransferBench p2p, a2a or a file of transfers, whole and unchanged";

class TransferBenchReader {
 public:
  TransferBenchReader(judge::ImportSource& source, Figures& figures) : source_(source), figures_(figures) {}

  void line(const TextLine& line) {
    std::string plain(line.text);
    for (char& c : plain) {
      if (c == ',' || c == '|' || static_cast<unsigned char>(c) > 127) c = ' ';
    }
    const auto words = words_of(plain);
    if (plain.find_first_not_of("-=+ ") == std::string::npos) return;  // a rule, or a frame's
    if (!head(line, words) && !row(line, words) && !transfer(line, words) && !setting(words)) other(line, words);
  }

  /// Refused: a table of devices without a row for each, and executors without the sum of their test.
  void end(const TextLine& line) const {
    const auto devices =
        std::ranges::count_if(columns_, [](const std::string& one) { return one.find(' ') != one.npos; });
    if (open_ || rows_ != devices)
      throw ImportRefusal{line.from(), "a table ends here that is not whole: the run was interrupted or failed",
                          kTransferBenchHint};
  }

 private:
  using Words = std::vector<std::string_view>;

  Values at(const std::string& test) const {
    Values values = conditions_;
    values["test"] = test;
    if (size_ > 0) values["size"] = size_;
    return values;
  }

  void take(const char* metric, const char* statistic, const Values& at, std::string_view word, const TextLine& line) {
    figures_.word({.metric = metric, .unit = "B/s", .statistic = statistic, .factor = 1e9}, at, word, line.from());
  }

  /// A line that begins a table, or has a setting of the next one.
  bool head(const TextLine& line, const Words& words) {
    const std::string_view text = line.text;
    if (words.front() == "TransferBench" && words.size() > 1 && words[1].starts_with('v')) {
      if (!source_.version.empty()) throw ImportRefusal{line.from(), "a second run begins", "import one run per file"};
      return source_.version = words[1].substr(1), true;
    }
    if (text.starts_with("Bytes Per Direction")) return take_size(line, words.back());
    if (text.starts_with("- Copying ")) return take_size(line, words[2]);
    if (text.find("directional copy peak bandwidth ") != std::string_view::npos) return p2p(line, words);
    if (text.starts_with("GPU-GFX All-To-All benchmark")) return test_ = "a2a", true;
    if (!words.front().starts_with("SRC") || words.front().find("DST") == std::string_view::npos) return false;
    if (test_.empty()) throw ImportRefusal{line.from(), "a table of a test that is not known", kTransferBenchHint};
    end(line);
    columns_.clear();
    rows_ = 0;
    for (std::size_t i = 1; i < words.size(); ++i) {
      const bool device = (words[i] == "GPU" || words[i] == "CPU") && i + 1 < words.size() && whole_from(words[i + 1]);
      if (!device && words[i] != "STotal" && words[i] != "Actual")
        throw ImportRefusal{line.from(), fmt::format("'{}' is not a known column", harmless(words[i])),
                            kTransferBenchHint};
      columns_.push_back(device ? fmt::format("{} {}", words[i], *whole_from(words[i + 1])) : std::string(words[i]));
      i += device ? 1 : 0;
    }
    return true;
  }

  bool take_size(const TextLine& line, std::string_view word) {
    const auto size = whole_from(word);
    if (!size || *size < 1)
      throw ImportRefusal{line.from(), fmt::format("'{}' is not a size", harmless(word)), kTransferBenchHint};
    size_ = *size;
    return true;
  }

  /// "Unidirectional copy peak bandwidth GB/s [Local read / Remote write] (GPU-Executor: GFX)"
  bool p2p(const TextLine& line, const Words& words) {
    if (words.size() < 11 || words[4] != "GB/s" || !words.back().ends_with(')'))
      throw ImportRefusal{line.from(), "does not name GB/s and the executor", kTransferBenchHint};
    test_ = "p2p";
    both_ = words.front().starts_with("Bi");
    executor_ = std::string(words.back().substr(0, words.back().size() - 1));
    remote_ = words[5] == "[Remote" ? "read" : "write";
    return true;
  }

  Values of_pair(const std::string& source, const std::string& target) const {
    Values values = at(test_);
    values["source"] = source, values["target"] = target;
    if (test_ == "p2p") values["executor"] = executor_, values["remote"] = remote_;
    if (test_ == "p2p") values["directions"] = std::string(both_ ? "both at once" : "one");
    if (both_) values["row"] = source;  // a pair is measured from each of its ends
    return values;
  }

  /// A row of p2p or a2a: "GPU 00 -> 33.9 …", "GPU 00 N/A 42.1 …".
  bool row(const TextLine& line, const Words& words) {
    if (columns_.empty() || words.size() < 3 || (words[0] != "GPU" && words[0] != "CPU") || !whole_from(words[1]))
      return false;
    const std::string source = fmt::format("{} {}", words[0], *whole_from(words[1]));
    const std::string_view kind = test_ == "p2p" ? words[2] : "->";
    const std::size_t first = test_ == "p2p" ? 3 : 2;
    if (words.size() - first != columns_.size())
      throw ImportRefusal{line.from(),
                          fmt::format("{} cells, the heading has {}", words.size() - first, columns_.size()),
                          kTransferBenchHint};
    if (kind == "->") ++rows_;
    if (kind == "sd") return true;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (columns_[i] == "Actual") continue;  // the slowest of the row times their number
      Values pair = columns_[i] == "STotal" ? at(test_) : of_pair(source, columns_[i]);
      if (columns_[i] == "STotal") {
        pair["source"] = source;
        take("bandwidth_of_row", "mean", pair, words[first + i], line);
      } else if (kind == "<->") {
        take("bandwidth_both_directions", "mean", pair, words[first + i], line);
      } else {
        const bool extreme = kind == "min" || kind == "max";
        if (extreme && both_) continue;  // of one of two directions
        if (kind == "<-") std::swap(pair.at("source"), pair.at("target"));
        take("bandwidth", extreme ? (kind == "min" ? "min" : "max") : "mean", pair, words[first + i], line);
      }
    }
    return true;
  }

  /// "Executor: GPU 00 | 47.1 GB/s | 1.4 ms | 67108864 bytes | …", "Transfer 00 | … | G0 -> GPU00:008 -> G1"
  bool transfer(const TextLine& line, const Words& words) {
    if (words[0] == "Iter" || words[0] == "StandardDev" || words[0] == "Test" || words[0] == "RTotal") return true;
    const auto rate = std::ranges::find(words, "GB/s");
    const bool whole =
        rate - words.begin() >= 2 && words.end() - rate > 4 && *(rate + 2) == "ms" && *(rate + 4) == "bytes";
    const bool known = words[0] == "Executor:" || words[0] == "Transfer" || (words.size() > 1 && words[1] == "(CPU)");
    if (!known) return false;
    open_ = words[0] != "Aggregate";
    if (!whole) throw ImportRefusal{line.from(), "has no GB/s, ms and bytes", kTransferBenchHint};
    Values values = conditions_;
    values["test"] = test_.empty() ? "transfers" : test_;
    values["number"] = tests_;
    const auto size = whole_from(*(rate + 3));
    if (!size)
      throw ImportRefusal{line.from(), fmt::format("'{}' is not a size", harmless(*(rate + 3))), kTransferBenchHint};
    values["size"] = *size;
    if (words[0] == "Aggregate") {
      take("bandwidth_of_test", "mean", values, *(rate - 1), line);
      return ++tests_, true;
    }
    const std::string name = fmt::format("{}", fmt::join(words.begin() + 1, rate - 1, " "));
    if (words[0] == "Executor:") {
      values["executor"] = name;
      take("bandwidth_of_executor", "mean", values, *(rate - 1), line);
      return true;
    }
    values["transfer"] = name;
    values["path"] = fmt::format("{}", fmt::join(rate + 5, words.end(), " "));
    take("bandwidth", "mean", values, *(rate - 1), line);
    return true;
  }

  /// "USE_REMOTE_READ = 0 : Using SRC as executor"; those that change the meaning of a figure become conditions.
  bool setting(const Words& words) {
    const auto is_name = [](char c) {
      return std::isupper(static_cast<unsigned char>(c)) || c == '_' || std::isdigit(c);
    };
    const bool named = words.size() > 2 && (words[1] == "=" || words[0].find('_') != std::string_view::npos);
    if (!named || !std::ranges::all_of(words[0], is_name)) return false;
    const auto value = words[1] == "=" ? words[2] : words[1];
    const std::string name(words[0]);
    source_.facts[name] = std::string(value);
    constexpr std::array<std::string_view, 5> kPlainIs0 = {"A2A_MODE", "USE_REMOTE_READ", "USE_DMA_EXEC", "USE_GPU_DMA",
                                                           "BYTE_OFFSET"};
    if (std::ranges::find(kPlainIs0, name) != kPlainIs0.end() && value != "0")
      add_condition(conditions_, fmt::format("{} {}", name, harmless(value)));
    return true;
  }

  void other(const TextLine& line, const Words& words) {
    if (words[0].find("PU->") != std::string_view::npos) {
      kinds_.assign(words.begin(), words.end());
    } else if (words[0] == "Averages") {
      const std::size_t count = kinds_.size();
      if (count == 0 || words.size() < count)
        throw ImportRefusal{line.from(), "averages of pairs that are not named", kTransferBenchHint};
      for (std::size_t i = 0; i < count; ++i) {
        Values pairs = of_pair("each", "each");
        pairs["pairs"] = kinds_[i];
        take("bandwidth", "mean", pairs, words[words.size() - count + i], line);
      }
    } else if (line.text.find("(GPU Timed):") != std::string_view::npos && words.back() == "GB/s") {
      Values all = at(test_);
      if (words[0] == "Average") all["pairs"] = std::string("all");
      take(words[0] == "Average" ? "bandwidth" : "bandwidth_of_all", "mean", all, words[words.size() - 2], line);
    } else if (words[0].starts_with('[') ? words[0] == "[ERROR]" || words[0] == "[WARN]"
                                         : line.text.find("(CPU Timed):") == std::string_view::npos &&
                                               words[0] != "Summary:" && words[0] != "NUMA" && words[0] != "GPU") {
      figures_.foreign(line, true);
    }
  }

  judge::ImportSource& source_;
  Figures& figures_;
  Values conditions_;
  std::string test_, executor_, remote_;
  bool both_ = false;
  bool open_ = false;        ///< executors came whose test has not ended
  std::ptrdiff_t rows_ = 0;  ///< of the table that is read
  std::int64_t size_ = 0, tests_ = 1;
  std::vector<std::string> columns_, kinds_;
};

}  // namespace

void read_transferbench(std::string_view text, judge::ImportSource& source, Figures& figures) {
  TransferBenchReader reader(source, figures);
  const auto lines = lines_of(text);
  for (const auto& line : lines) reader.line(line);
  if (!lines.empty()) reader.end(lines.back());
}

}  // namespace assay::imports
