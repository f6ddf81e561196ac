// rvs: the JSON of AMD's ROCm Validation Suite (rvs -j). Each number is a text. A record is known by its fields: a
// file of several modules has all of them under the first one's name. `gflops` is the best interval of a run, and the
// average power of iet the highest reading.
#include <algorithm>
#include <array>
#include <cctype>
#include <map>

#include <fmt/format.h>

#include "orchestrator/import/import.h"
#include "orchestrator/import/reading.h"
#include "probes/core/text.h"

namespace assay::imports {
namespace {

using nlohmann::json;

constexpr const char* kRvsHint = "run `rvs -c FILE -j OUT` and import OUT";

class RvsReader {
 public:
  explicit RvsReader(Figures& figures) : figures_(figures) {}

  void module(const json& actions, const std::string& path) {
    if (!actions.is_object()) throw ImportRefusal{path, "must be an object", kRvsHint};
    for (const auto& [action, records] : actions.items()) {
      const std::string place = fmt::format("{}.{}", path, printable(action));
      if (!records.is_array()) throw ImportRefusal{place, "must be an array", kRvsHint};
      for (std::size_t i = 0; i < records.size(); ++i) record(records[i], fmt::format("{}[{}]", place, i), action);
    }
  }

 private:
  void record(const json& document, const std::string& path, const std::string& action) {
    StrictObject one = closed(document, path);
    for (const char* name : {"err", "ERROR"})
      if (const json* error = one.optional(name))
        throw ImportRefusal{one.path(name), fmt::format("the tool failed: {}", error->dump()),
                            "correct the cause and run it again; the figures of a failed run are not imported"};
    Values at{{"action", action}};
    for (const auto& [field, name] :
         {std::pair("gpu_id", "gpu"), std::pair("gpu_index", "gpu_index"), std::pair("dtype", "type"),
          std::pair("srcgpu", "source"), std::pair("srccpu", "source"), std::pair("dstgpu", "target"),
          std::pair("intf", "link"), std::pair("array_size", "array_size"), std::pair("total_size", "total_size"),
          std::pair("iterations", "iterations"), std::pair("duration_ms", "duration_ms")}) {
      const json* value = one.optional(field);
      if (value != nullptr && value->is_string()) at[name] = value->get<std::string>();
    }
    // A record of the same coordinates again: a running average, or another round.
    if (const int again = ++seen_[at]; again > 1) at["record"] = std::int64_t{again};
    if (const json* value = one.optional("gflops"))
      return rated(one, at, {.metric = "throughput", .unit = "FLOP/s", .statistic = "max", .factor = 1e9}, *value,
                   "gflops");
    if (const json* value = one.optional("average power"))
      return rated(one, at, {.metric = "power", .unit = "W", .statistic = "max"}, *value, "average power");
    if (const json* value = one.optional("throughput")) return copy(one, at, *value);
    if (const json* results = one.optional("results")) return babel(one, at, *results);
    for (const auto& [field, factor] :
         {std::pair("bandwidth_gb_per_sec", 1e9), std::pair("bandwidth_gib_per_sec", kGibibyte)}) {
      const json* value = one.optional(field);
      if (value == nullptr) continue;
      at["kernel"] = std::string("triad");
      one.pass_over({"runtime_sec", "pass"});
      figures_.field({.metric = "bandwidth", .unit = "B/s", .statistic = "mean", .factor = factor}, at, value,
                     one.path(field));
      return figures_.unknown(one);
    }
    figures_.leave_out(path, "a record", "it has no figure that is known");
  }

  /// A figure that the tool compares with a target of its own, and the outcome. A target of 0 is none.
  void rated(StrictObject& one, const Values& at, const FigureName& name, const json& value, const char* field) {
    figures_.field(name, at, &value, one.path(field));
    const json* target = one.optional(one.optional("target") != nullptr ? "target" : "target_power");
    const auto number =
        target != nullptr && target->is_string() ? number_from(target->get_ref<const std::string&>()) : std::nullopt;
    const json* pass = one.optional("pass");
    if (number.value_or(0) > 0 && pass != nullptr && (*pass == "true" || *pass == "false"))
      figures_.count({.metric = "failures", .unit = "1", .statistic = "count"}, at, *pass == "false" ? 1 : 0,
                     one.path("pass"));
    else
      figures_.leave_out(one.path("pass"), "the verdict of rvs", "it has no target");
    figures_.unknown(one);
  }

  /// "33.912 GBps", with "(*)" since the beginning instead of the last interval. Of both directions it is the sum,
  /// which only the configuration tells.
  void copy(StrictObject& one, Values at, const json& value) {
    const std::string text = value.is_string() ? value.get<std::string>() : "";
    const auto words = words_of(text);
    one.pass_over({"pass"});  // always true
    figures_.unknown(one);
    if (words.size() < 2 || words[1] != "GBps" || (words.size() > 2 && words[2] != "(*)")) {
      constexpr std::array<std::string_view, 3> kNone = {"(pending)", "(not measured)", "NA"};
      if (std::ranges::find(kNone, text) != kNone.end())
        return figures_.leave_out(one.path("throughput"), "mean bandwidth", fmt::format("the tool says '{}'", text));
      throw ImportRefusal{one.path("throughput"), fmt::format("'{}' is not a rate in GBps", printable(text)), kRvsHint};
    }
    add_condition(at, "the output does not say whether of one direction or of both");
    figures_.word({.metric = "bandwidth", .unit = "B/s", .statistic = "mean", .factor = 1e9}, at, words[0],
                  one.path("throughput"));
  }

  /// Kernels of BabelStream. Where mean, best and worst are one text, the pass was timed as a whole.
  void babel(StrictObject& one, Values at, const json& results) {
    if (!results.is_array()) throw ImportRefusal{one.path("results"), "must be an array", kRvsHint};
    figures_.unknown(one);
    for (std::size_t i = 0; i < results.size(); ++i) {
      StrictObject kernel = closed(results[i], fmt::format("{}[{}]", one.path("results"), i));
      std::string name = kernel.text("subtest");
      for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      at["kernel"] = name;
      const bool binary = kernel.optional("avg_mibytes_per_sec") != nullptr;
      const std::string unit = binary ? "mibytes_per_sec" : "mbytes_per_sec";
      const json mean = kernel.need("avg_" + unit), best = kernel.need("max_" + unit),
                 worst = kernel.need("min_" + unit);
      const bool whole = mean == best && mean == worst;
      for (const auto& [statistic, value] :
           {std::pair("mean", &mean), std::pair("max", &best), std::pair("min", &worst)}) {
        if (whole && value != &mean) continue;
        figures_.field(
            {.metric = "bandwidth", .unit = "B/s", .statistic = statistic, .factor = binary ? kMebibyte : 1e6}, at,
            value, kernel.path(statistic));
      }
      kernel.optional(unit);  // the best again
      kernel.pass_over({"pass"});
      figures_.unknown(kernel);
    }
  }

  Figures& figures_;
  std::map<Values, int> seen_;
};

}  // namespace

void read_rvs(std::string_view text, judge::ImportSource& source, Figures& figures) {
  const json whole = document_of(text, figures, kRvsHint);
  StrictObject top = closed(whole, "");
  source.version = top.optional("version") != nullptr ? top.text("version") : "";
  RvsReader reader(figures);
  for (const auto& [name, actions] : whole.items()) {
    if (actions.is_object() && top.optional(name) != nullptr) reader.module(actions, printable(name));
  }
  figures.unknown(top);
}

}  // namespace assay::imports
