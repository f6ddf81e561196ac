// ior: output of IOR 3 and 4 with -O summaryFormat=JSON.
#include <algorithm>

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

/// Members that IOR writes a second time in one object.
bool ior_repeats(std::string_view, std::string_view key) {
  return key == "segmentCount" || key == "blockSize" || key == "transferSize";
}

void ior_summary(Figures& figures, const json& one, const std::string& path) {
  if (!one.is_object()) throw ImportRefusal{path, "must be an object", "import the whole output"};
  for (const auto& [key, value] : one.items()) {
    const std::string name = key.substr(0, key.rfind(" ("));
    if (!one.contains(name) || !ior_repeats("", name) || name == key) continue;
    if (value != one[name])
      throw ImportRefusal{path + "." + name, "is in one object twice, with two values",
                          "import the output as IOR wrote it"};
    figures.leave_out(path + "." + name, name, "the tool wrote it twice");
  }
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
  const json whole = document_of(text, figures, hint, ior_repeats);
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
