// dcgm: what `dcgmi diag -j` of DCGM 4, and of 2 and 3, prints. It has verdicts of DCGM and no measurements: they
// become counts of failures, one for each entity of each test.
#include <fmt/format.h>

#include "orchestrator/import/import.h"
#include "orchestrator/import/reading.h"

namespace assay::imports {
namespace {

using nlohmann::json;

/// The text at `name`; empty if there is none.
std::string text_at(const json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

/// The array at `name`; an empty one if there is none.
const json& list_at(const json& object, const char* name, const std::string& path) {
  static const json kNone = json::array();
  const auto found = object.find(name);
  if (found == object.end()) return kNone;
  if (!found->is_array()) throw ImportRefusal{path + "." + name, "must be an array", ""};
  return *found;
}

void need_object(const json& value, const std::string& path) {
  if (!value.is_object()) throw ImportRefusal{path, "must be an object", "import the whole output"};
}

class DcgmReader {
 public:
  DcgmReader(judge::ImportSource& source, Figures& figures) : source_(source), figures_(figures) {}

  void document(const json& whole) {
    const bool older = whole.contains(kOlder);
    const char* const name = older ? kOlder : "DCGM Diagnostic";
    const auto diagnostic = whole.find(name);
    if (diagnostic == whole.end())
      throw ImportRefusal{name, "is missing", "import what `dcgmi diag -r LEVEL -j` prints"};
    need_object(*diagnostic, name);
    if (const std::string failed = text_at(*diagnostic, "runtime_error"); !failed.empty()) {
      throw ImportRefusal{fmt::format("{}.runtime_error", name), fmt::format("the tool failed: {}", failed),
                          "correct the cause and run it again; a diagnosis that broke is not imported"};
    }
    const auto metadata = older ? diagnostic : whole.find("metadata");
    if (metadata != whole.end() && metadata->is_object()) {
      source_.version = text_at(*metadata, "version");
      if (const auto driver = text_at(*metadata, "Driver Version Detected"); !driver.empty())
        source_.facts["driver"] = driver;
    }
    const json& categories = list_at(*diagnostic, "test_categories", name);
    for (std::size_t i = 0; i < categories.size(); ++i) {
      const std::string path = fmt::format("test_categories[{}]", i);
      need_object(categories[i], path);
      const json& tests = list_at(categories[i], "tests", path);
      for (std::size_t j = 0; j < tests.size(); ++j)
        test(tests[j], fmt::format("{}.tests[{}]", path, j), text_at(categories[i], "category"));
    }
  }

 private:
  void test(const json& document, const std::string& path, const std::string& category) {
    need_object(document, path);
    const Values at{{"category", category}, {"test", text_at(document, "name")}};
    const json& results = list_at(document, "results", path);
    bool failed = false;
    for (std::size_t i = 0; i < results.size(); ++i)
      failed = result(results[i], fmt::format("{}.results[{}]", path, i), at) || failed;
    const auto summary = document.find("test_summary");
    if (summary == document.end()) {
      if (results.empty()) figures_.leave_out(path, text_at(document, "name"), "it has no result");
      return;
    }
    // It also has the failures of no entity; else it repeats the results.
    const std::string place = path + ".test_summary";
    need_object(*summary, place);
    if (results.empty() || (!failed && is_failure(text_at(*summary, "status"))))
      return void(result(*summary, place, at));
    note(*summary, place);
  }

  static bool is_failure(const std::string& status) { return status == "Fail" || status == "FAIL"; }

  /// Whether it is a failure.
  bool result(const json& document, const std::string& path, Values at) {
    need_object(document, path);
    if (const auto group = text_at(document, "entity_group"); !group.empty()) at["entity_group"] = group;
    if (const auto id = document.find("entity_id"); id != document.end() && id->is_number_integer())
      at["entity_id"] = id->get<std::int64_t>();
    // DCGM 3 and older: a test of each GPU has gpu_id, one of all of them together gpu_ids, "0,1".
    for (const char* gpus : {"gpu_id", "gpu_ids"}) {
      const std::string ids = text_at(document, gpus);
      if (ids.empty()) continue;
      at["entity_group"] = "GPU";
      const auto number = whole_from(ids);
      at[number ? "entity_id" : "entity_ids"] = number ? Value(*number) : Value(ids);
    }
    note(document, path);
    const std::string status = text_at(document, "status");
    const bool failed = is_failure(status);
    if (failed || status == "Pass" || status == "PASS")
      figures_.count({.metric = "failures", .unit = "1", .statistic = "count"}, at, failed ? 1 : 0, path);
    else  // skipped, not run, a warning of DCGM 3, or a word of another version: neither a pass nor a failure
      figures_.leave_out(path, "the verdict of DCGM", fmt::format("the tool says '{}'", status));
    return failed;
  }

  /// Warnings and remarks: objects with number and text, or texts; of DCGM 3 also one text without a list.
  void note(const json& document, const std::string& path) {
    for (const auto& [name, what] : {std::pair("warnings", "a warning"), std::pair("info", "a remark")}) {
      if (const auto one = text_at(document, name); !one.empty()) {
        figures_.leave_out(fmt::format("{}.{}", path, name), what, one);
        continue;
      }
      const json& all = list_at(document, name, path);
      for (std::size_t i = 0; i < all.size(); ++i) {
        const std::string place = fmt::format("{}.{}[{}]", path, name, i);
        if (all[i].is_string()) {
          figures_.leave_out(place, what, all[i].get<std::string>());
          continue;
        }
        need_object(all[i], place);
        const auto id = all[i].find("error_id");
        figures_.leave_out(place, id != all[i].end() ? fmt::format("error {}", id->dump()) : what,
                           text_at(all[i], "warning"));
      }
    }
  }

  static constexpr const char* kOlder = "DCGM GPU Diagnostic";  // of DCGM 2 and 3
  judge::ImportSource& source_;
  Figures& figures_;
};

}  // namespace

void read_dcgm(std::string_view text, judge::ImportSource& source, Figures& figures) {
  const json whole = document_of(text, figures, "run `dcgmi diag -r LEVEL -j` and import the whole output");
  need_object(whole, "document");
  DcgmReader(source, figures).document(whole);
}

}  // namespace assay::imports
