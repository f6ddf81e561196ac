// reading: strict reading of lines, numbers and fields, shared by the importers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include <nlohmann/json.hpp>

#include "orchestrator/judge/evidence/imported.h"
#include "probes/core/error.h"
#include "probes/core/strict_object.h"

namespace assay::imports {

/// Why an output is refused, with the place in it. The importers throw it, as StrictObject does, and import_output()
/// only catches it, so that each check is one line.
using ImportRefusal = InputError;

/// Unit of tools that name MiB, or MB and mean MiB.
inline constexpr double kMebibyte = 1 << 20, kGibibyte = 1 << 30;
/// Units of time in s.
inline constexpr double kMillisecond = 1e-3, kMicrosecond = 1e-6;
/// Unit of tools that say Gb/s, in B/s.
inline constexpr double kGigabitPerSecond = 1e9 / 8;

/// A line of an output: its number from 1, its text without end of line, without the label of a launcher and without
/// white space around it. Labels: "[1,0]<stdout>:" of mpirun, "3: " of srun --label, "[3] " of MPICH, and "n01: " of
/// pdsh, clush and kubectl where every line has it.
struct TextLine {
  std::size_t number = 0;
  std::string_view text;
  /// "line 12".
  [[nodiscard]] std::string from() const;
};

class Figures;

/// `bytes` without the byte order mark of UTF-8, which is noted in `figures`. Refused: UTF-16, and NUL bytes.
std::string_view plain_text(std::string_view bytes, Figures& figures);

/// The lines of `text`, in order. A last line without an end may have lost digits, and such a figure is another one:
/// where `figures` are given, a last row (a line that begins with a digit) is left out, else the text is refused.
std::vector<TextLine> lines_of(std::string_view text, Figures* figures = nullptr);

/// `text` without white space around it.
std::string_view trimmed(std::string_view text);

/// The words of `text` between white space.
std::vector<std::string_view> words_of(std::string_view text);

/// The parts of `text` between `separator`, without white space around them; one between quotation marks separates
/// nothing.
std::vector<std::string_view> parts_of(std::string_view text, char separator);

/// Gb/s of one lane of an InfiniBand speed by its name ("NDR"), as mstflint's mlxlink_maps.cpp
/// (github.com/Mellanox/mstflint) has it of four; nothing for another name.
std::optional<double> infiniband_lane(std::string_view speed);

/// `word` as a whole number or a finite double, nothing of it left over; nothing otherwise.
std::optional<std::int64_t> whole_from(std::string_view word);
std::optional<double> number_from(std::string_view word);

/// B/s of one "GB/s" of a tool that says neither which nor why, by a rate that is `bytes` over `seconds`: 1e9 or 2^30.
/// Nothing if the rate `word` is neither, or has too few digits for that.
std::optional<double> gigabyte_of(double bytes, double seconds, std::string_view word);

/// True for the words by which tools say that there is not a number: N/A, nan, -nan, inf, -inf, in any case.
bool is_absent(std::string_view word);

/// Description of a figure, before its number is known.
struct FigureName {
  std::string metric;
  std::string unit;
  std::string statistic;
  double factor = 1;  ///< from the tool's unit to `unit`
};

/// Collects figures. A figure appears once; a rate or time is positive; other values are left out with the reason.
class Figures {
 public:
  /// Takes `value`, in the tool's unit. Zero is left out: a rate or a time of zero is below the tool's resolution, or
  /// was not measured. Refused: a negative value, one that is not finite, the same figure twice.
  void positive(const FigureName& name, const Values& at, double value, const std::string& from);
  /// The same for a count, which may be zero.
  void count(const FigureName& name, const Values& at, double value, const std::string& from);
  /// A positive figure as a word of a text; an absent one is left out, anything else that is not a number refused.
  void word(const FigureName& name, const Values& at, std::string_view word, const std::string& from);
  /// A positive figure as a JSON value: a number, null or one of the absent words; nullptr is left out as missing.
  void field(const FigureName& name, const Values& at, const nlohmann::json* value, const std::string& from);
  void leave_out(const std::string& from, const std::string& what, const std::string& why);
  /// Leaves out a line that is not the tool's; `begun`: it comes after the first one that is. The first fifty are
  /// named, all are counted. Refused: one behind it that reports a failure.
  void foreign(const TextLine& line, bool begun);
  /// Leaves out the fields of `object` that were not taken: a newer version of the tool has them. Refused: a field that
  /// is in the object twice.
  void unknown(const StrictObject& object);

  /// The figures taken; refused when there are none.
  void give(judge::Import& import);

 private:
  void take(const FigureName& name, const Values& at, double value, const std::string& from);

  std::vector<judge::Figure> figures_;
  std::vector<judge::LeftOut> left_out_;
  std::set<std::tuple<std::string, std::string, Values>> seen_;
  std::size_t foreign_ = 0;
};

/// Adds `what` to the coordinate `conditions` of a figure, which says how it is not the plain quantity: such a figure
/// is comparable with none of ours.
void add_condition(Values& at, const std::string& what);

/// An object of a JSON output, named `path` in errors ("results[3]"). Call Figures::unknown() or done() at its end.
StrictObject closed(const nlohmann::json& object, std::string path);

/// Where the JSON document of an output begins: at its first character that is not blank, if that is a '{', else at the
/// first line that is only a '{' or begins with one and a quoted name; an array of objects only at its first character.
/// Nothing if the output is no JSON.
std::optional<std::size_t> document_begin(std::string_view text);

/// The JSON document of an output. Lines before and behind it are left out, and so are the bare words nan, -nan and inf
/// that some tools print where JSON has no number: they become null. All are noted in `figures`. `may_repeat`: as in
/// JsonLimits. Refused: a second document. Errors carry `hint`.
nlohmann::json document_of(std::string_view text, Figures& figures, const std::string& hint,
                           bool (*may_repeat)(std::string_view object, std::string_view key) = nullptr);

}  // namespace assay::imports
