// nccl_tests_json: output of nccl-tests with -J. Its `env` is the whole environment, passwords and all: only variables
// of NCCL are kept.
#include <map>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "orchestrator/import/import.h"
#include "orchestrator/import/reading.h"
#include "probes/core/json_io.h"

namespace assay::imports {
namespace {

using nlohmann::json;

constexpr const char* kHint = "nccl-tests writes this document with -J FILE; a run that was killed leaves half of it";

void take_arguments(StrictObject& top, judge::ImportSource& source) {
  std::string command;
  for (const auto& argument : top.list("args")) {
    if (!argument.is_string()) throw ImportRefusal{"args", "must be texts", ""};
    command += (command.empty() ? "" : " ") + argument.get<std::string>();
  }
  source.command = command;
  for (const auto& variable : top.list("env")) {
    if (!variable.is_string()) throw ImportRefusal{"env", "must be texts", ""};
    const auto& text = variable.get_ref<const std::string&>();
    const auto equals = text.find('=');
    if (text.starts_with("NCCL_") && equals != std::string::npos)
      source.facts["env." + text.substr(0, equals)] = text.substr(equals + 1);
  }
}

void take_settings(const json& document, judge::ImportSource& source, Figures& figures, Values& conditions) {
  StrictObject config = closed(document, "config");
  for (const char* name : {"nthreads", "ngpus", "warmup_iters", "iterations", "aggregated_iterations", "validation"})
    source.facts[name] = config.whole(name);
  config.pass_over({"minimum_bytes", "maximum_bytes", "step_factor", "step_bytes", "per_iter_timing", "per_iter_skip",
                    "parallel_init"});
  if (source.facts["aggregated_iterations"] != Value(std::int64_t{1}))
    add_condition(conditions, "agg iters " + to_json(source.facts["aggregated_iterations"]).dump());
  for (const char* name : {"graph", "blocking_collectives", "unalign"}) {  // flags are texts
    const json* value = config.optional(name);
    const bool plain = value == nullptr || *value == 0 || *value == false || *value == "false" || *value == "0";
    if (!plain) add_condition(conditions, fmt::format("{} {}", name, value->dump(-1, ' ', true)));
  }
  std::set<std::string> hosts;
  std::set<std::int64_t> groups;
  const json& devices = config.list("devices");
  for (const auto& device : devices) {
    StrictObject one = closed(device, "config.devices");
    hosts.insert(one.text("hostname"));
    if (one.optional("group") != nullptr) groups.insert(one.whole("group", 0));
    one.pass_over({"rank", "pid", "device", "device_hex", "device_info"});
    figures.unknown(one);
  }
  source.facts["ranks"] = static_cast<std::int64_t>(devices.size());
  take_nccl_groups(groups.size(), conditions);
  if (!hosts.empty()) source.facts["nodes"] = static_cast<std::int64_t>(hosts.size());
  figures.unknown(config);
}

/// The figures of one place, "out_of_place" or "in_place"; false when its data were wrong, so that no speed of it
/// counts.
bool take_place(const json& document, const std::string& path, Values at, const std::string& place, Figures& figures) {
  at["place"] = place;
  StrictObject one = closed(document, path);
  const json& wrong = one.need("nwrong");
  const json* time = one.optional("time");
  const json* cpu_time = one.optional("cpu_time");
  const json* algbw = one.optional("alg_bw");
  const json* busbw = one.optional("bus_bw");
  figures.unknown(one);
  if (wrong.is_number()) {
    figures.count({.metric = "mismatches", .unit = "1", .statistic = "count"}, at, wrong.get<double>(),
                  path + ".nwrong");
    if (wrong.get<double>() > 0) {
      figures.leave_out(path, "time, algbw, busbw", "elements were wrong: the speed of wrong data is meaningless");
      return false;
    }
  } else if (wrong.is_null() || (wrong.is_string() && is_absent(wrong.get_ref<const std::string&>()))) {
    figures.leave_out(path + ".nwrong", "count mismatches", "the tool did not check the data");
  } else {
    throw ImportRefusal{path + ".nwrong", "is not a number", ""};
  }
  if (cpu_time != nullptr)
    figures.field({.metric = "cpu_time", .unit = "s", .statistic = "mean", .factor = 1e-6}, at, cpu_time,
                  path + ".cpu_time");
  else
    figures.field({.metric = "time", .unit = "s", .statistic = "mean", .factor = 1e-6}, at, time, path + ".time");
  figures.field({.metric = "algbw", .unit = "B/s", .statistic = "mean", .factor = 1e9}, at, algbw, path + ".alg_bw");
  figures.field({.metric = "busbw", .unit = "B/s", .statistic = "mean", .factor = 1e9}, at, busbw, path + ".bus_bw");
  return true;
}

/// The times of single iterations, which are the tool's own summary of them.
void take_iterations(const json& document, const std::string& path, Values at, const std::string& place,
                     Figures& figures) {
  at["place"] = place;
  StrictObject one = closed(document, path);
  const std::pair<const char*, const char*> kStatistics[] = {
      {"min_us", "min"}, {"max_us", "max"}, {"p50_us", "p50"}, {"p95_us", "p95"}, {"p99_us", "p99"}};
  for (const auto& [field, statistic] : kStatistics)
    figures.field({.metric = "time", .unit = "s", .statistic = statistic, .factor = 1e-6}, at, one.optional(field),
                  one.path(field));
  one.pass_over({"skipped_iterations", "avg_us", "stdev_us", "cv_pct", "times_us", "per_process_max_times_us"});
  figures.unknown(one);
}

/// `at`: coordinates of all results; `seen`: how often a result of the same coordinates came.
void take_result(const json& document, const std::string& path, Values at, std::map<Values, int>& seen,
                 Figures& figures) {
  StrictObject result = closed(document, path);
  at["size"] = result.whole("size");
  at["type"] = result.text("type");
  const std::string redop = result.text("redop");
  if (redop != "none" && !redop.empty()) at["redop"] = redop;
  const auto root = whole_from(trimmed(result.text("root")));
  if (!root) throw ImportRefusal{result.path("root"), "is not a whole number", ""};
  if (*root >= 0) at["root"] = *root;
  result.pass_over({"count", "actual_iterations", "experiment_name"});
  if (const int cycle = ++seen[at]; cycle > 1) at["cycle"] = std::int64_t{cycle};  // of -N
  const bool empty = at["size"] == Value(std::int64_t{0});
  if (empty) figures.leave_out(path, "a result of size 0", "the tool rounds small sizes down to nothing");
  for (const char* place : {"out_of_place", "in_place"}) {
    const json* one = result.optional(place);
    const std::string iterations = std::string(place) + "_per_iter";
    const json* each = result.optional(iterations);
    if (empty) continue;
    if (one == nullptr || one->is_null()) {
      figures.leave_out(result.path(place), "time, algbw, busbw", "the tool did not measure this place");
    } else if (take_place(*one, result.path(place), at, place, figures) && each != nullptr) {
      take_iterations(*each, result.path(iterations), at, place, figures);
    }
  }
  figures.unknown(result);
}

}  // namespace

void read_nccl_tests_json(std::string_view text, judge::ImportSource& source, Figures& figures) {
  const json document = document_of(text, figures, kHint);
  StrictObject top = closed(document, "");
  source.facts["format"] = top.whole("version");
  source.facts["nccl_version"] = top.whole("nccl_version");
  take_arguments(top, source);
  Values at;
  take_settings(top.need("config"), source, figures, at);
  take_nccl_options(source.command, at);
  StrictObject bounds = closed(top.need("out_of_bounds"), "out_of_bounds");
  source.facts["out_of_bounds"] = bounds.whole("count");
  bounds.pass_over({"okay"});
  figures.unknown(bounds);
  (void)top.need(
      "average_bus_bandwidth");  // its presence shows that the run ended; an average over all sizes is no figure
  figures.leave_out("average_bus_bandwidth", "average bus bandwidth",
                    "an average over all sizes is not the figure of any size");
  if (const std::string operation = operation_of(source.command); !operation.empty()) at["operation"] = operation;
  std::map<Values, int> seen;
  const json& results = top.list("results");
  for (std::size_t i = 0; i < results.size(); ++i)
    take_result(results[i], fmt::format("results[{}]", i), at, seen, figures);
  if (const json* errors = top.optional("errors")) {
    for (const auto& error : *errors) {
      if (error.is_string() && !error.get_ref<const std::string&>().empty())
        figures.leave_out("errors", "a remark of NCCL", error.get<std::string>());
    }
  }
  top.pass_over({"start_time", "end_time"});
  figures.unknown(top);
}

}  // namespace assay::imports
