// reading: strict reading of lines, numbers and fields of other tools' outputs.
#include "orchestrator/import/reading.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "probes/core/json_io.h"
#include "probes/core/text.h"
#include "probes/core/whole_number.h"

namespace assay::imports {
namespace {

using nlohmann::json;

constexpr std::string_view kSpace = " \t\r\v\f";
constexpr int kDeepest = 12;                            // fio's bins, the deepest, have 6 levels
constexpr std::size_t kMostNamed = 50;                  // lines of other programs, of which a log may have thousands
constexpr std::size_t kLongestNamed = 200;              // of such a line
constexpr std::size_t kFewestLabelled = 3;              // lines, or a word with a colon is no label
constexpr std::string_view kUtf8Mark = "\xEF\xBB\xBF";  // byte order mark of UTF-8
constexpr std::string_view kDigits = "0123456789";

bool equal_but_for_case(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

/// Without "[1,0]<stdout>:" of mpirun --tag-output, in which some launchers name the host too, "3: " of srun --label,
/// or
/// "[3] " of MPICH.
std::string_view without_label(std::string_view text) {
  for (const std::string_view stream : {"]<stdout>:", "]<stderr>:"}) {
    const auto end = text.find(stream);
    if (text.starts_with('[') && end != std::string_view::npos && text.find_first_of(" <") > end)
      return trimmed(text.substr(end + stream.size()));
  }
  const std::size_t first = text.starts_with('[') ? 1 : 0;
  const auto end = text.find_first_not_of(kDigits, first);
  if (end == first || end == std::string_view::npos || text[end] != (first == 1 ? ']' : ':')) return text;
  const bool ends = end + 1 == text.size() || text[end + 1] == ' ' || text[end + 1] == '\t';
  return ends ? trimmed(text.substr(end + 1)) : text;
}

/// Takes "n01: " from all lines if all that are not blank begin with it.
void without_common_label(std::vector<TextLine>& lines) {
  const auto said = [](const TextLine& line) { return !line.text.empty(); };
  const auto first = std::ranges::find_if(lines, said);
  if (std::ranges::count_if(lines, said) < static_cast<std::ptrdiff_t>(kFewestLabelled)) return;
  const auto colon = first->text.find(':');
  if (colon == std::string_view::npos || first->text.find_first_of(kSpace) != colon + 1) return;
  const std::string_view label = first->text.substr(0, colon + 1);
  const auto labelled = [&](const TextLine& line) {
    return line.text.starts_with(label) && (line.text == label || line.text[label.size()] == ' ');
  };
  if (!std::ranges::all_of(lines, [&](const TextLine& line) { return !said(line) || labelled(line); })) return;
  for (auto& line : lines) line.text = trimmed(line.text.substr(std::min(label.size(), line.text.size())));
}

/// Whether a line says that something failed.
bool reports_failure(std::string_view text) {
  std::string low(text);
  std::ranges::transform(low, low.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const auto has = [&](std::string_view word) { return low.find(word) != std::string::npos; };
  constexpr std::array<std::string_view, 9> kWords = {"error",  "fail",     "abort",        "couldn't", "unable",
                                                      "killed", "mismatch", "segmentation", "timed out"};
  return !has("help-mpi-") && std::ranges::any_of(kWords, has);  // Open MPI's count of its own messages
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

/// The document at the beginning of a text, with bare absences outside strings replaced by null, and how many there
/// were.
struct BareDocument {
  std::string clean;
  std::size_t replaced = 0;
  std::size_t end = 0;  ///< position behind it
};

BareDocument bare_document(std::string_view text) {
  BareDocument document;
  auto& [clean, replaced, end] = document;
  clean.reserve(text.size());
  bool quoted = false;
  std::size_t open = 0;
  for (std::size_t i = 0; i < text.size(); end = ++i) {
    if (quoted && text[i] == '\\' && i + 1 < text.size()) {
      clean += text[i++];
    } else if (text[i] == '"') {
      quoted = !quoted;
    } else if (!quoted && (text[i] == '{' || text[i] == '[')) {
      ++open;
    } else if (!quoted && (text[i] == '}' || text[i] == ']') && --open == 0) {
      clean += text[i];
      end = i + 1;
      break;
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
  return document;
}

}  // namespace

std::string TextLine::from() const { return fmt::format("line {}", number); }

std::string_view trimmed(std::string_view text) {
  const auto begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

std::string_view plain_text(std::string_view bytes, Figures& figures) {
  const char* const hint = "save it as UTF-8 text; in PowerShell: Get-Content FILE | Set-Content -Encoding utf8 NEW";
  if (bytes.starts_with("\xFF\xFE") || bytes.starts_with("\xFE\xFF"))
    throw ImportRefusal{"line 1", "begins with the byte order mark of UTF-16", hint};
  const auto nul = bytes.find('\0');
  if (nul != std::string_view::npos) {
    const auto line = std::ranges::count(bytes.substr(0, nul), '\n') + 1;
    throw ImportRefusal{fmt::format("line {}", line), "has a NUL byte: UTF-16, or a file that a crash cut off", hint};
  }
  if (!bytes.starts_with(kUtf8Mark)) return bytes;
  figures.leave_out("line 1", "a byte order mark", "of UTF-8; it is no part of the output");
  return bytes.substr(kUtf8Mark.size());
}

std::vector<TextLine> lines_of(std::string_view text, Figures* figures) {
  std::vector<TextLine> lines;
  bool ended = true;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const auto length = std::min(text.find('\n'), text.size());
    ended = length < text.size();
    lines.push_back({.number = number, .text = without_label(trimmed(text.substr(0, length)))});
    text.remove_prefix(std::min(length + 1, text.size()));
  }
  without_common_label(lines);
  if (ended) return lines;
  if (figures == nullptr)
    throw ImportRefusal{lines.back().from(), "the last line has no end of line, so that it may have lost digits",
                        "compare it with the tool's output; if it is whole, end it with a line break"};
  if (lines.back().text.find_first_of(kDigits) != 0) return lines;
  figures->leave_out(lines.back().from(), "the last row", "it has no end of line, so that it may have lost digits");
  lines.pop_back();
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

std::vector<std::string_view> parts_of(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  bool quoted = false;
  std::size_t begin = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '"') quoted = !quoted;
    if (quoted || text[at] != separator) continue;
    parts.push_back(trimmed(text.substr(begin, at - begin)));
    begin = at + 1;
  }
  parts.push_back(trimmed(text.substr(begin)));
  return parts;
}

std::optional<double> infiniband_lane(std::string_view speed) {
  constexpr std::pair<std::string_view, double> kLanes[] = {{"SDR", 2.5},  {"DDR", 5},   {"QDR", 10},
                                                            {"FDR10", 10}, {"FDR", 14},  {"EDR", 25},
                                                            {"HDR", 50},   {"NDR", 100}, {"XDR", 200}};
  const auto* known = std::ranges::find(kLanes, speed, &std::pair<std::string_view, double>::first);
  return known == std::end(kLanes) ? std::nullopt : std::optional(known->second);
}

std::optional<std::int64_t> whole_from(std::string_view word) { return whole_number(word); }

std::optional<double> number_from(std::string_view word) {
  double value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

std::optional<double> gigabyte_of(double bytes, double seconds, std::string_view word) {
  constexpr double kTolerance = 0.03;  // 1e9 and 2^30 differ by 7 %
  const auto rate = number_from(word);
  if (!rate || *rate <= 0 || seconds <= 0) return std::nullopt;
  double last_digit = 1;
  for (auto at = word.find('.'); at < word.size() - 1; ++at) last_digit /= 10;
  if (last_digit > *rate * kTolerance) return std::nullopt;  // it is rounded by half of that
  for (const double unit : {1e9, kGibibyte})
    if (std::abs(bytes / seconds / (*rate * unit) - 1) < kTolerance) return unit;
  return std::nullopt;
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

void Figures::foreign(const TextLine& line, bool begun) {
  if (begun && reports_failure(line.text)) {
    throw ImportRefusal{line.from(), fmt::format("reports a failure: '{}'", harmless(line.text, kLongestNamed)),
                        "correct the cause and run it again; remove the line if it is another program's"};
  }
  if (++foreign_ <= kMostNamed) leave_out(line.from(), "a line that is not read", harmless(line.text, kLongestNamed));
}

void Figures::unknown(const StrictObject& object) {
  for (const auto& name : object.rest()) {
    const std::string place = object.path(printable(name));
    const auto count = name.rfind(" (");
    if (count != std::string::npos && name.find_first_not_of(kDigits, count + 2) == name.size() - 1) {
      throw ImportRefusal{object.path(printable(name.substr(0, count))), "is in one object twice",
                          "import the output as the tool wrote it"};
    }
    leave_out(place, "an unknown field", "probably of a newer version of the tool; it is not read");
  }
}

void add_condition(Values& at, const std::string& what) {
  const auto [known, added] = at.emplace("conditions", what);
  if (!added) known->second = std::get<std::string>(known->second) + "; " + what;
}

void Figures::give(judge::Import& import) {
  if (foreign_ > kMostNamed)
    leave_out("document", fmt::format("{} lines that are not read", foreign_), "the first ones are listed");
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
  return {object, std::move(path), "probably the output of another version, or not of this tool"};
}

std::optional<std::size_t> document_begin(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && text[first] == '{') return first;
  if (first != std::string_view::npos && text[first] == '[') {  // and no label as "[0] "
    const auto member = text.find_first_not_of(" \t\r\n", first + 1);
    if (member != std::string_view::npos && text[member] == '{') return first;
  }
  for (std::size_t begin = 0; begin < text.size();) {
    const auto length = std::min(text.find('\n', begin), text.size()) - begin;
    const auto line = trimmed(text.substr(begin, length));
    if (line.starts_with('{') && (line.size() == 1 || trimmed(line.substr(1)).starts_with('"'))) return begin;
    begin += length + 1;
  }
  return std::nullopt;
}

json document_of(std::string_view text, Figures& figures, const std::string& hint,
                 bool (*may_repeat)(std::string_view object, std::string_view key)) {
  const auto begin = document_begin(text);
  if (!begin) throw ImportRefusal{"", "has no JSON document", hint};
  const auto foreign = [&](std::string_view part, std::size_t number, bool behind) {
    for (; !part.empty(); ++number) {
      const auto length = std::min(part.find('\n'), part.size());
      const TextLine line{.number = number, .text = trimmed(part.substr(0, length))};
      part.remove_prefix(std::min(length + 1, part.size()));
      if (line.text.empty()) continue;
      if (behind && line.text.starts_with('{'))
        throw ImportRefusal{line.from(), "a second document begins", "import one document per file"};
      if (behind && std::ranges::none_of(line.text, is_word_letter))
        throw ImportRefusal{line.from(), fmt::format("'{}' behind the document", harmless(line.text)), hint};
      figures.foreign(line, false);
    }
  };
  const auto lines = static_cast<std::size_t>(std::ranges::count(text.substr(0, *begin), '\n'));
  foreign(text.substr(0, *begin), 1, false);
  const auto [clean, replaced, end] = bare_document(text.substr(*begin));
  const std::size_t behind = *begin + end;
  foreign(text.substr(behind), static_cast<std::size_t>(std::ranges::count(text.substr(0, behind), '\n')) + 1, true);
  if (replaced > 0)
    figures.leave_out("document", fmt::format("{} bare nan or inf", replaced), "JSON has no such number; read as null");
  // Blank lines replace removed ones, so that the coordinates of an error are those of the file.
  auto document =
      parse_json(std::string(lines, '\n') + clean, "document", {.max_depth = kDeepest, .may_repeat = may_repeat});
  if (!document) throw ImportRefusal{document.error().where, document.error().what, hint};
  return std::move(*document);
}

}  // namespace assay::imports
