// nvbandwidth: output of nvbandwidth with --json: matrices whose cells are texts and whose unit is part of a sentence.
#include <optional>
#include <set>

#include <fmt/format.h>

#include "orchestrator/import/import.h"
#include "orchestrator/import/reading.h"
#include "probes/core/json_io.h"

namespace assay::imports {
namespace {

using nlohmann::json;

constexpr const char* kLatencyBetweenDevices = "device_to_device_latency_sm";

/// Whether `version` ("v0.8", "0.8.1") is older than 0.8; an unknown one counts as older.
bool before_0_8(std::string_view version) {
  if (version.starts_with('v')) version.remove_prefix(1);
  const auto dot = version.find('.');
  if (dot == std::string_view::npos) return true;
  const auto major = whole_from(version.substr(0, dot));
  const auto rest = version.substr(dot + 1);
  const auto minor = whole_from(rest.substr(0, rest.find('.')));
  return !major || !minor || (*major == 0 && *minor < 8);
}

/// Metric and unit by a description; an empty metric when it names no unit.
FigureName name_for(std::string_view description, const char* statistic) {
  if (description.ends_with("(GB/s)"))
    return {.metric = "bandwidth", .unit = "B/s", .statistic = statistic, .factor = 1e9};
  if (description.ends_with("(ns)")) return {.metric = "latency", .unit = "s", .statistic = statistic, .factor = 1e-9};
  return {};
}

/// The value of an option of the command, as "-b 64", "-b64", "--bufferSize 64" or "--bufferSize=64"; of one without a
/// value, the next word. Nothing if the command does not have it.
std::optional<std::string_view> option_of(std::string_view command, std::string_view letter, std::string_view name) {
  const auto words = words_of(command);
  for (auto word = words.begin(); word != words.end(); ++word) {
    if (*word == letter || *word == name) return word + 1 == words.end() ? std::string_view() : *(word + 1);
    if (word->starts_with(name) && word->substr(name.size()).starts_with('=')) return word->substr(name.size() + 1);
    if (word->starts_with(letter) && !word->starts_with("--")) return word->substr(letter.size());
  }
  return std::nullopt;
}

class NvbandwidthReader {
 public:
  NvbandwidthReader(judge::ImportSource& source, Figures& figures) : source_(source), figures_(figures) {}

  void document(const json& whole) {
    StrictObject outer = closed(whole, "");
    StrictObject top = closed(outer.need("nvbandwidth"), "nvbandwidth");
    if (const json* error = top.optional("error")) refuse_failed(*error, "nvbandwidth.error");
    if (const json* error = outer.optional("error")) refuse_failed(*error, "error");
    source_.version = top.text("version");
    if (const json* warning = top.optional("warning"))
      figures_.leave_out("nvbandwidth.warning", "a warning of the tool", warning->dump());
    facts(top);
    options();
    const json& tests = top.list("testcases");
    find_failed(tests);
    for (std::size_t i = 0; i < tests.size(); ++i) test(tests[i], fmt::format("nvbandwidth.testcases[{}]", i));
    figures_.unknown(top);
    figures_.unknown(outer);
  }

 private:
  /// -m makes the figures means, and -b is the size in MiB. Versions differ in whether the document has them.
  void options() {
    const auto mean = source_.facts.find("useMean");
    const bool stated = mean != source_.facts.end() && mean->second != Value(false) &&
                        mean->second != Value(std::int64_t{0}) && mean->second != Value(std::string("false"));
    if (stated || option_of(source_.command, "-m", "--useMean")) statistic_ = "mean";
    const auto stated_size = source_.facts.find("bufferSize");
    const auto size = option_of(source_.command, "-b", "--bufferSize");
    auto mebibytes = size ? whole_from(*size) : std::nullopt;
    if (!mebibytes && stated_size != source_.facts.end() && std::holds_alternative<std::int64_t>(stated_size->second))
      mebibytes = std::get<std::int64_t>(stated_size->second);
    constexpr std::int64_t kLargest = 1 << 30;
    if (mebibytes && *mebibytes > 0 && *mebibytes < kLargest) size_ = *mebibytes << 20;
    if (!size_)
      figures_.leave_out("nvbandwidth", "the buffer size and whether means were taken",
                         "the document does not say it: 512 MiB and medians, unless --command has -b or -m");
  }

  [[noreturn]] static void refuse_failed(const json& error, const std::string& where) {
    throw ImportRefusal{where, fmt::format("the tool failed: {}", error.dump()),
                        "correct the cause and run it again; the figures of a failed run are not imported"};
  }

  void facts(StrictObject& top) {
    for (const char* name : {"git_version", "CUDA Runtime Version", "Driver Version", "Hostname", "bufferSize",
                             "testSamples", "useMean"}) {
      const json* value = top.optional(name);
      const auto scalar = value == nullptr ? std::nullopt : value_from(*value);
      if (scalar) source_.facts[name] = *scalar;
    }
    for (const char* name : {"GPU Device list", "GPU Device info"}) {
      const json* list = top.optional(name);
      if (list == nullptr || !list->is_array()) continue;
      for (std::size_t i = 0; i < list->size(); ++i) {
        if ((*list)[i].is_string()) source_.facts[fmt::format("gpu.{}", i)] = (*list)[i].get<std::string>();
      }
    }
  }

  /// A test that fails late appears twice, once as passed: the tool adds its failure as another test of the same name.
  void find_failed(const json& tests) {
    for (const auto& one : tests) {
      if (one.is_object() && one.value("status", json()) == "Error" && one.contains("name") && one["name"].is_string())
        failed_.insert(one["name"].get<std::string>());
    }
  }

  void test(const json& document, const std::string& path) {
    StrictObject one = closed(document, path);
    const std::string name = one.text("name");
    const std::string status = one.text("status");
    if (const json* error = one.optional("error")) refuse_failed(*error, one.path("error"));
    one.pass_over({"sum", "min", "max", "average"});  // absent cells count as 0 in them
    const json* description = one.optional("bandwidth_description");
    const json* matrix = one.optional("bandwidth_matrix");
    figures_.unknown(one);
    if (status != "Passed") return figures_.leave_out(path, name, fmt::format("its status is '{}'", status));
    if (failed_.contains(name)) return figures_.leave_out(path, name, "another entry reports that this test failed");
    if (description == nullptr || !description->is_string() || matrix == nullptr || !matrix->is_array())
      throw ImportRefusal{path, "passed, but has no description or no matrix", "another version of the tool"};
    const auto& sentence = description->get_ref<const std::string&>();
    const FigureName figure = name_for(sentence, statistic_);
    if (figure.metric.empty()) return figures_.leave_out(path, name, fmt::format("'{}' names no known unit", sentence));
    if (name == kLatencyBetweenDevices && before_0_8(source_.version))
      return figures_.leave_out(path, name, "before 0.8 this test measured the latency of the host");
    cells(*matrix, one.path("bandwidth_matrix"), name, sentence, figure);
  }

  /// The three tables of a test of both directions are stacked in one matrix, under the description of the
  /// last.
  void cells(const json& matrix, const std::string& path, const std::string& name, const std::string& sentence,
             const FigureName& figure) {
    const bool three =
        sentence.find("<->") != std::string::npos && sentence.find(" Total bandwidth") != std::string::npos;
    if (three && matrix.size() % 3 != 0)
      throw ImportRefusal{path, fmt::format("{} rows are not three tables", matrix.size()),
                          "a test of both directions has one each for the two directions and their sum"};
    const std::size_t rows = three ? matrix.size() / 3 : matrix.size();
    constexpr const char* kTables[] = {"first", "second", "both"};
    for (std::size_t i = 0; i < matrix.size(); ++i) {
      const json& row = matrix[i];
      if (!row.is_array() || row.size() != matrix[0].size())
        throw ImportRefusal{fmt::format("{}[{}]", path, i), "is not a row as long as the others", ""};
      for (std::size_t column = 0; column < row.size(); ++column) {
        Values at{{"test", name},
                  {"row", static_cast<std::int64_t>(i % rows)},
                  {"column", static_cast<std::int64_t>(column)}};
        if (size_ && figure.unit == "B/s") at["size"] = *size_;
        if (three) at["direction"] = std::string(kTables[i / rows]);
        if (!row[column].is_string())
          throw ImportRefusal{fmt::format("{}[{}][{}]", path, i, column), "is not a text",
                              "nvbandwidth writes its cells as texts"};
        figures_.field(figure, at, &row[column], fmt::format("{}[{}][{}]", path, i, column));
      }
    }
  }

  judge::ImportSource& source_;
  Figures& figures_;
  std::set<std::string> failed_;
  const char* statistic_ = "median";
  std::optional<std::int64_t> size_;  ///< of a copy, in B
};

}  // namespace

void read_nvbandwidth(std::string_view text, judge::ImportSource& source, Figures& figures) {
  NvbandwidthReader(source, figures)
      .document(document_of(text, figures,
                            "nvbandwidth writes this document with --json; import all of it and nothing else"));
}

}  // namespace assay::imports
