// ior: output of IOR 3 and 4 with -O summaryFormat=JSON.
#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "orchestrator/import/import.h"
#include "orchestrator/import/reading.h"
#include "probes/core/json_io.h"

namespace assay::imports {
namespace {

using nlohmann::json;

struct IorField {
  const char* field;
  FigureName name;
};

const IorField kIorFields[] = {
    {"bwMaxMIB", {"bandwidth", "B/s", "max", kMebibyte}},
    {"bwMinMIB", {"bandwidth", "B/s", "min", kMebibyte}},
    {"bwMeanMIB", {"bandwidth", "B/s", "mean", kMebibyte}},
    {"bwStdMIB", {"bandwidth", "B/s", "stdev", kMebibyte}},
    {"OPsMax", {"iops", "1/s", "max"}},
    {"OPsMin", {"iops", "1/s", "min"}},
    {"OPsMean", {"iops", "1/s", "mean"}},
    {"OPsSD", {"iops", "1/s", "stdev"}},
    {"MeanTime", {"duration", "s", "mean"}},
    {"StoneWallbwMeanMIB", {"bandwidth_stonewall", "B/s", "mean", kMebibyte}},
    {"StoneWallTime", {"duration_stonewall", "s", "mean"}},
};

/// Coordinates of the figures of one summary.
constexpr const char* kIorSettings[] = {"operation",   "API",          "TestID",       "segmentCount",
                                        "blockSize",   "transferSize", "numTasks",     "tasksPerNode",
                                        "repetitions", "filePerProc",  "reorderTasks", "reorderTasksRandom"};

/// `text` with lines left blank that IOR writes a second time in one object (segmentCount, blockSize, transferSize):
/// JSON with two fields of one name is refused. Fields that differ stay, and are refused.
std::string without_repeats(std::string_view text, Figures& figures) {
  std::string clean;
  std::set<std::string_view> seen;
  std::size_t repeats = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line = trimmed(text.substr(begin, end - begin));
    while (line.ends_with(',') || line.ends_with(' ')) line.remove_suffix(1);
    if (line.find_first_of("{}[]") != std::string_view::npos) seen.clear();
    if (line.find("\": ") != std::string_view::npos && !seen.insert(line).second) {
      ++repeats;
    } else {
      clean += text.substr(begin, end - begin);
    }
    if (end < text.size()) clean += '\n';
    begin = end + 1;
  }
  if (repeats > 0) figures.leave_out("document", fmt::format("{} lines", repeats), "the tool wrote them twice");
  return clean;
}

void ior_summary(Figures& figures, const json& one, const std::string& path) {
  if (!one.is_object()) throw ImportRefusal{path, "must be an object", "import the whole output"};
  Values at;
  for (const char* name : kIorSettings) {
    const auto found = one.find(name);
    const auto scalar = found == one.end() ? std::nullopt : value_from(*found);
    if (scalar) at[name] = *scalar;
  }
  for (const char* name : {"operation", "transferSize", "numTasks"}) {
    if (!at.contains(name)) throw ImportRefusal{path + "." + name, "is missing", "import the whole output"};
  }
  for (const auto& [name, value] : one.items()) {
    const auto* field = std::find_if(std::begin(kIorFields), std::end(kIorFields),
                                     [&](const IorField& known) { return name == known.field; });
    if (field != std::end(kIorFields)) figures.field(field->name, at, &value, path + "." + name);
  }
}

}  // namespace

void read_ior(std::string_view text, judge::ImportSource& source, Figures& figures) {
  const char* const hint = "run ior with -O summaryFormat=JSON and import the whole output";
  const json whole = document_of(without_repeats(text, figures), figures, hint);
  const auto found = whole.is_object() ? whole.find("summary") : whole.end();
  if (found == whole.end() || !found->is_array()) throw ImportRefusal{"summary", "is missing", hint};
  const auto fact = [&](const char* name) {
    const auto value = whole.find(name);
    return value != whole.end() && value->is_string() ? value->get<std::string>() : std::string();
  };
  source.version = fact("Version");
  if (const auto command = fact("Command line"); !command.empty()) source.command = command;
  if (const auto machine = fact("Machine"); !machine.empty()) source.facts["Machine"] = machine;
  for (std::size_t i = 0; i < found->size(); ++i) ior_summary(figures, (*found)[i], fmt::format("summary[{}]", i));
}

}  // namespace assay::imports
