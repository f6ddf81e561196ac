// reading: strict reading of lines, numbers and fields of other tools' outputs.
#include "orchestrator/import/reading.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "probes/core/json_io.h"

namespace assay::imports {
namespace {

using nlohmann::json;

constexpr std::string_view kSpace = " \t\r\v\f";
constexpr int kDeepest = 12;  // fio's bins, the deepest, have 6 levels

bool equal_but_for_case(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

/// "[1,0]<stdout>:" is the prefix of mpirun --tag-output on each line.
std::string_view without_tag(std::string_view text) {
  if (!text.starts_with('[')) return text;
  const auto end = text.find("<stdout>:");
  if (end == std::string_view::npos || text.substr(0, end).find_first_not_of("[]0123456789,") != std::string_view::npos)
    return text;
  return trimmed(text.substr(end + 9));
}

bool is_word_letter(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

/// Length of a bare word for "no number" at the beginning of `text`; 0 when there is none.
std::size_t bare_absence(std::string_view text) {
  for (const std::string_view word : {"-infinity", "infinity", "-nan", "-inf", "nan", "inf"}) {
    if (text.size() < word.size() || !equal_but_for_case(text.substr(0, word.size()), word)) continue;
    if (text.size() == word.size() || !is_word_letter(text[word.size()])) return word.size();
  }
  return 0;
}

/// `text` with bare absences outside strings replaced by null, and how many there were.
std::pair<std::string, std::size_t> without_bare_absences(std::string_view text) {
  std::string clean;
  clean.reserve(text.size());
  std::size_t replaced = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (quoted && text[i] == '\\' && i + 1 < text.size()) {
      clean += text[i++];
    } else if (text[i] == '"') {
      quoted = !quoted;
    } else if (const std::size_t length =
                   quoted || (i > 0 && is_word_letter(text[i - 1])) ? 0 : bare_absence(text.substr(i));
               length > 0) {
      clean += "null";
      i += length - 1;
      ++replaced;
      continue;
    }
    clean += text[i];
  }
  return {std::move(clean), replaced};
}

}  // namespace

std::string TextLine::from() const { return fmt::format("line {}", number); }

std::string_view trimmed(std::string_view text) {
  const auto begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

std::vector<TextLine> lines_of(std::string_view text) {
  std::vector<TextLine> lines;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const auto length = text.find('\n');
    if (length == std::string_view::npos) {
      throw ImportRefusal{fmt::format("line {}", number), "the last line is truncated: it has no end of line",
                          "the last figure may have lost digits: save the whole output"};
    }
    lines.push_back({.number = number, .text = without_tag(trimmed(text.substr(0, length)))});
    text.remove_prefix(length + 1);
  }
  return lines;
}

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  for (text = trimmed(text); !text.empty(); text = trimmed(text)) {
    const auto length = std::min(text.find_first_of(kSpace), text.size());
    words.push_back(text.substr(0, length));
    text.remove_prefix(length);
  }
  return words;
}

std::optional<std::int64_t> whole_from(std::string_view word) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size()) return std::nullopt;
  return value;
}

std::optional<double> number_from(std::string_view word) {
  double value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

bool is_absent(std::string_view word) {
  constexpr std::array<std::string_view, 8> kWords = {"n/a", "na", "nan", "-nan", "inf", "-inf", "null", "-"};
  return std::ranges::any_of(kWords, [&](std::string_view absent) { return equal_but_for_case(word, absent); });
}

void Figures::take(const FigureName& name, const Values& at, double value, const std::string& from) {
  const double scaled = value * name.factor;
  if (!std::isfinite(scaled))
    throw ImportRefusal{from, fmt::format("the {} is not finite in {}", name.metric, name.unit), ""};
  if (!seen_.emplace(name.metric, name.statistic, at).second) {
    throw ImportRefusal{from,
                        fmt::format("the {} {} of the same coordinates appears twice", name.statistic, name.metric),
                        "import one run, one cycle, per file"};
  }
  figures_.push_back(
      {.metric = name.metric, .unit = name.unit, .statistic = name.statistic, .at = at, .value = scaled, .from = from});
}

void Figures::positive(const FigureName& name, const Values& at, double value, const std::string& from) {
  if (value < 0) throw ImportRefusal{from, fmt::format("the {} is negative", name.metric), "check the output"};
  if (value == 0)
    return leave_out(from, fmt::format("{} {}", name.statistic, name.metric),
                     "0: below the resolution of the tool, or not measured");
  take(name, at, value, from);
}

void Figures::count(const FigureName& name, const Values& at, double value, const std::string& from) {
  if (value < 0) throw ImportRefusal{from, fmt::format("the {} are negative", name.metric), "check the output"};
  take(name, at, value, from);
}

void Figures::word(const FigureName& name, const Values& at, std::string_view word, const std::string& from) {
  if (is_absent(word))
    return leave_out(from, fmt::format("{} {}", name.statistic, name.metric), fmt::format("the tool says '{}'", word));
  const auto value = number_from(word);
  if (!value)
    throw ImportRefusal{from, fmt::format("'{}' is not a number, expected the {}", word, name.metric),
                        "merged columns or another format: save only the output of the tool"};
  positive(name, at, *value, from);
}

void Figures::field(const FigureName& name, const Values& at, const json* value, const std::string& from) {
  const std::string what = fmt::format("{} {}", name.statistic, name.metric);
  if (value == nullptr) return leave_out(from, what, "the field is missing");
  if (value->is_null()) return leave_out(from, what, "null: the tool has no value");
  if (value->is_string()) return word(name, at, value->get_ref<const std::string&>(), from);
  if (!value->is_number()) throw ImportRefusal{from, fmt::format("is not a number, expected the {}", name.metric), ""};
  positive(name, at, value->get<double>(), from);
}

void Figures::leave_out(const std::string& from, const std::string& what, const std::string& why) {
  left_out_.push_back({from, what, why});
}

void Figures::give(judge::Import& import) {
  if (figures_.empty()) {
    const std::string why = left_out_.empty() ? ""
                                              : fmt::format("{}: {}: {}", left_out_.front().from,
                                                            left_out_.front().what, left_out_.front().why);
    throw ImportRefusal{"", fmt::format("has no figure that can be imported{}", why.empty() ? "" : "; " + why),
                        "check that this is the tool's whole output"};
  }
  import.figures = std::move(figures_);
  import.left_out = std::move(left_out_);
}

StrictObject closed(const json& object, std::string path) {
  return {object, std::move(path), "the output is truncated, or of an unknown version of the tool"};
}

std::optional<std::size_t> document_begin(std::string_view text) {
  if (text.starts_with("\xEF\xBB\xBF")) return 0;  // a byte order mark, which the reader of JSON refuses by name
  const auto first = text.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && text[first] == '{') return first;
  for (std::size_t begin = 0; begin < text.size();) {
    const auto length = std::min(text.find('\n', begin), text.size()) - begin;
    if (trimmed(text.substr(begin, length)) == "{") return begin;
    begin += length + 1;
  }
  return std::nullopt;
}

json document_of(std::string_view text, Figures& figures, const std::string& hint) {
  const auto begin = document_begin(text);
  if (!begin) throw ImportRefusal{"", "has no JSON document", hint};
  const auto lines = static_cast<std::size_t>(std::ranges::count(text.substr(0, *begin), '\n'));
  if (text.find_first_not_of(" \t\r\n") < *begin)
    figures.leave_out("line 1", fmt::format("{} lines before the document", lines),
                      "the tool printed them before its JSON");
  auto [clean, replaced] = without_bare_absences(text.substr(*begin));
  if (replaced > 0)
    figures.leave_out("document", fmt::format("{} bare nan or inf", replaced), "JSON has no such number; read as null");
  // Blank lines replace removed ones, so that the coordinates of an error are those of the file.
  auto document = parse_json(std::string(lines, '\n') + clean, "document", {.max_depth = kDeepest});
  if (!document) throw ImportRefusal{document.error().where, document.error().what, hint};
  return std::move(*document);
}

}  // namespace assay::imports
