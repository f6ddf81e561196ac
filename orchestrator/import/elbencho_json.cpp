// elbencho_json: output of elbencho 3 with --jsonfile, one object a line for each phase. It writes every number as a
// text.
#include <algorithm>

#include <fmt/format.h>

#include "orchestrator/import/import.h"
#include "orchestrator/import/reading.h"
#include "probes/core/json_io.h"

namespace assay::imports {
namespace {

using nlohmann::json;

constexpr double kJsonMillisecond = 1e-3, kJsonMicrosecond = 1e-6;
constexpr const char* kWholeFile = "import the file of --jsonfile as it was written";

struct ElbenchoField {
  const char* part;  ///< "first_done", or "last_done" and below
  const char* field;
  FigureName name;
};

/// "last_done" is when every thread was done and is the figure; "first_done", when the first one was, is the stonewall.
const ElbenchoField kElbenchoFields[] = {
    {"/last_done", "bytes/s", {"bandwidth", "B/s", "mean"}},
    {"/first_done", "bytes/s", {"bandwidth_stonewall", "B/s", "mean"}},
    {"/last_done", "iops", {"iops", "1/s", "mean"}},
    {"/first_done", "iops", {"iops_stonewall", "1/s", "mean"}},
    {"/last_done", "entries/s", {"entry_rate", "1/s", "mean"}},
    {"/first_done", "entries/s", {"entry_rate_stonewall", "1/s", "mean"}},
    {"/last_done", "elapsed_time_ms", {"duration", "s", "max", kJsonMillisecond}},
    {"/first_done", "elapsed_time_ms", {"duration", "s", "min", kJsonMillisecond}},
    {"/last_done/latency/IO", "min_us", {"latency", "s", "min", kJsonMicrosecond}},
    {"/last_done/latency/IO", "avg_us", {"latency", "s", "mean", kJsonMicrosecond}},
    {"/last_done/latency/IO", "max_us", {"latency", "s", "max", kJsonMicrosecond}},
    {"/last_done/latency/entries", "min_us", {"entry_latency", "s", "min", kJsonMicrosecond}},
    {"/last_done/latency/entries", "avg_us", {"entry_latency", "s", "mean", kJsonMicrosecond}},
    {"/last_done/latency/entries", "max_us", {"entry_latency", "s", "max", kJsonMicrosecond}},
};

/// Members of "config", and the coordinate that each becomes: those of the table that --csvfile writes.
constexpr std::pair<const char*, const char*> kElbenchoConfig[] = {
    {"path_type", "path_type"},   {"hosts", "hosts"},      {"threads", "threads"},       {"file_size", "file_size"},
    {"block_size", "block_size"}, {"direct_io", "direct"}, {"random_offsets", "random"}, {"io_depth", "io_depth"}};

/// The object at `pointer` of `phase`; nullptr if there is none. "/" in names of members is no separator here.
const json* elbencho_part(const json& phase, std::string_view pointer) {
  const json* part = &phase;
  for (std::size_t begin = 1; begin <= pointer.size();) {
    const std::size_t end = std::min(pointer.find('/', begin), pointer.size());
    const auto found = part->find(std::string(pointer.substr(begin, end - begin)));
    if (found == part->end() || !found->is_object()) return nullptr;
    part = &*found;
    begin = end + 1;
  }
  return part;
}

/// The text at `name`; empty if there is none. Refused: other types, because the tool writes nothing else.
std::string elbencho_text(const json& object, const char* name, const std::string& from) {
  const auto found = object.find(name);
  if (found == object.end()) return "";
  if (!found->is_string()) throw ImportRefusal{from + "." + name, "must be a text, as elbencho writes it", kWholeFile};
  return found->get<std::string>();
}

/// A word of a setting: a number if it is one, a flag as the table of --csvfile has it.
Value elbencho_setting(const std::string& text) {
  if (text == "true" || text == "false") return std::int64_t{text == "true"};
  const auto number = whole_from(text);
  return number ? Value(*number) : Value(text);
}

void elbencho_phase(const json& phase, const std::string& from, std::int64_t row, judge::ImportSource& source,
                    Figures& figures) {
  const json* config = elbencho_part(phase, "/config");
  if (config == nullptr) throw ImportRefusal{from + ": config", "is missing", kWholeFile};
  const std::string operation = elbencho_text(phase, "phase_type", from);
  if (operation.empty()) throw ImportRefusal{from + ": phase_type", "is missing", kWholeFile};
  if (elbencho_part(phase, "/last_done") == nullptr)
    throw ImportRefusal{from + ": last_done", "is missing", kWholeFile};
  Values at{{"row", row}, {"operation", operation}};
  if (const auto label = elbencho_text(phase, "label", from); !label.empty()) at["label"] = label;
  for (const auto& [member, name] : kElbenchoConfig) {
    if (const auto text = elbencho_text(*config, member, from + ": config"); !text.empty())
      at[name] = elbencho_setting(text);
  }
  if (const auto version = elbencho_text(*config, "version", from); !version.empty()) source.version = version;
  if (const auto command = elbencho_text(*config, "command", from); !command.empty())
    source.command = std::string(trimmed(command));
  if (const auto direct = at.find("direct"); direct != at.end() && direct->second == Value(std::int64_t{0}))
    figures.leave_out(from, "direct I/O", "it was off: the page cache may have been measured");
  for (const auto& one : kElbenchoFields) {
    const json* part = elbencho_part(phase, one.part);
    if (part == nullptr) continue;  // of a kind of work that the phase does not do, or was not asked to show
    const std::string place = fmt::format("{}{}.{}", from, one.part, one.field);
    if (const auto text = elbencho_text(*part, one.field, from); !text.empty()) figures.word(one.name, at, text, place);
  }
  for (const char* part : {"/first_done", "/last_done", "/last_done/latency/IO", "/last_done/latency/entries"}) {
    const json* found = elbencho_part(phase, part);
    if (found != nullptr && found->contains("rwmix_read"))
      figures.leave_out(from + part, "rwmix_read", "the reads of a mixed phase are not imported");
  }
}

}  // namespace

void read_elbencho_json(std::string_view text, judge::ImportSource& source, Figures& figures) {
  std::int64_t row = 0;
  for (const auto& line : lines_of(text)) {
    if (line.text.empty()) continue;
    const auto phase = parse_json(line.text, line.from());
    if (!phase) throw ImportRefusal{phase.error().where, phase.error().what, kWholeFile};
    if (!phase->is_object()) throw ImportRefusal{line.from(), "must be an object", kWholeFile};
    elbencho_phase(*phase, line.from(), ++row, source, figures);
  }
}

}  // namespace assay::imports
