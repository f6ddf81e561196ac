// requirements_test: catalogues over runs with one of every outcome; nothing but a whole pass is met.
#include <algorithm>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "probes/core/json_io.h"
#include "profiles/embedded.h"
#include "profiles/schema.h"
#include "reports/requirements/shown.h"
#include "tests/unit/run_fixture.h"

namespace assay::requirements {
namespace {

/// A catalogue with `rows`, which begin on line 3.
std::string catalogue_text(const std::string& rows) {
  return R"({"schema": "assay.catalogue/1", "name": "example", "title": "Example demands", "revision": 1,
 "source": {"document": "Example guide", "address": "https://example.org/guide", "date": "2026-11-27"}, "rows": [
)" + rows +
         "\n]}";
}

std::string row_text(const std::string& id, const std::string& answers) {
  return fmt::format(R"({{"id": "{}", "section": "Memory", "text": "It is fast", "answered_by": [{}]}})", id, answers);
}

Catalogue catalogue_of(const std::string& rows) { return read_catalogue(catalogue_text(rows), "demands.json").value(); }

class Requirements : public testing::Test {
 protected:
  static dossier::OpenedRun open(fixture::Kind kind) {
    const fixture::TemporaryFolder folder;
    fixture::make_run(folder.path() + "/run", kind);
    return dossier::open_run(folder.path() + "/run", {}).value();
  }
  static void SetUpTestSuite() {
    runs().push_back(open(fixture::Kind::accepted));
    runs().push_back(open(fixture::Kind::mixed));
  }
  static void TearDownTestSuite() { runs().clear(); }
  static std::vector<dossier::OpenedRun>& runs() {
    static std::vector<dossier::OpenedRun> all;
    return all;
  }
  static dossier::OpenedRun accepted() { return runs().at(0); }
  static const dossier::OpenedRun& mixed() { return runs().at(1); }
  /// Of one row with these answers.
  static std::string state(const std::string& answers, const dossier::OpenedRun& run) {
    const auto catalogue = catalogue_of(row_text("a", answers));
    const auto problem = check_names(catalogue, run.content.run.plan);
    if (problem) return problem->text();
    const auto mapping = map(catalogue, run);
    return fmt::format("{}: {}", state_words(mapping.rows.front()), mapping.rows.front().reason);
  }
  static std::vector<judge::Result*> cells(dossier::OpenedRun& run, const std::string& id) {
    std::vector<judge::Result*> all;
    for (auto& one : run.content.verdict.results) {
      if (one.requirement == id) all.push_back(&one);
    }
    return all;
  }
};

constexpr const char* kCopy = R"({"probe": "example_memory", "metric": "copy_bandwidth"})";
constexpr const char* kLatency = R"({"probe": "example_memory", "metric": "load_latency"})";
constexpr const char* kProduct = R"({"probe": "example_gemm", "metric": "throughput"})";
constexpr const char* kDrive = R"({"requirement": "drive.read"})";

TEST_F(Requirements, a_row_is_met_by_required_cells_that_all_pass_and_by_nothing_else) {
  const auto run = accepted();
  const auto copy = [](const std::string& more) {
    return R"({"probe": "example_memory", "metric": "copy_bandwidth", )" + more + "}";
  };
  const auto condition = [](const std::string& more) {
    return R"({"probe": "example_memory", "condition": )" + more + "}";
  };
  const std::vector<std::pair<std::string, std::string>> cases = {
      {kCopy, "met: memory.copy: 3 of 3 cells pass"},
      {R"({"requirement": "memory.copy"})", "met: memory.copy: 3 of 3 cells pass"},
      {fmt::format("{}, {}", kCopy, kProduct), "met: memory.copy: 3 of 3 cells pass; gemm.fp16: 6 of 6 cells pass"},
      {copy(R"("scope": "node")"), "met: "},
      {copy(R"("scope": "gpu")"),
       "not tested: no requirement of this plan judges copy_bandwidth of example_memory, of"},
      {copy(R"("least_nodes": 2)"), "not tested: no requirement of this plan judges"},
      {copy(R"("parameters": {"size": 536870912})"), "met: "},
      {copy(R"("parameters": {"size": 4096})"), "not tested: no requirement of this plan judges"},
      {copy(R"("parameters": {"siez": 536870912})"), "not tested: no requirement of this plan judges"},
      {condition(R"("numa_bound")"), "met: "},
      {condition(R"("numa_bound", "equals": true)"), "met: "},
      {condition(R"("numa_bound", "equals": false)"), "not tested: no requirement of this plan judges condition"},
      {kLatency, "not tested: only advisory requirements judge load_latency of example_memory; memory.latency: 3 of 3"},
      {fmt::format("{}, {}", kCopy, kLatency), "not tested: only advisory"},
      {R"({"probe": "cuda_gemm", "metric": "throughput"})", "not tested: no requirement of this plan judges"},
      {fmt::format(R"({}, {{"probe": "cuda_gemm", "metric": "throughput"}})", kCopy), "not tested: no requirement"},
      {R"({"requirement": "hbm.mismatches"})", "not tested: no requirement of this plan judges hbm.mismatches"},
  };
  for (const auto& [answers, expected] : cases)
    EXPECT_TRUE(state(answers, run).starts_with(expected)) << answers << "\n" << state(answers, run);
}

TEST_F(Requirements, one_cell_that_fails_makes_a_row_not_met_whatever_else_is_open) {
  for (const std::string& answers :
       {std::string(kCopy), fmt::format("{}, {}", kDrive, kCopy), fmt::format("{}, {}", kCopy, kLatency)}) {
    EXPECT_TRUE(state(answers, mixed()).starts_with("not met: memory.copy: 1 of 3 cells fail, first on n03: "))
        << state(answers, mixed());
  }
}

TEST_F(Requirements, what_was_not_measured_or_not_decided_is_not_tested) {
  EXPECT_TRUE(state(kDrive, mixed()).starts_with("not tested: drive.read: 3 of 3 cells not measured, first on n01: "))
      << state(kDrive, mixed());
  EXPECT_TRUE(state(kProduct, mixed()).starts_with("not tested: gemm.fp16: ")) << state(kProduct, mixed());
  using enum judge::Outcome;
  for (const auto outcome : {conditional_pass, conditional_fail, inconclusive, not_measured, error}) {
    auto run = accepted();
    cells(run, "memory.copy").back()->outcome = outcome;
    EXPECT_TRUE(state(kCopy, run).starts_with("not tested: memory.copy: 1 of 3 cells")) << state(kCopy, run);
  }
}

TEST_F(Requirements, a_cell_that_the_machine_does_not_report_is_not_met_although_nothing_requires_it) {
  auto run = accepted();
  auto& cell = *cells(run, "memory.copy").back();
  cell.outcome = judge::Outcome::not_measured;
  cell.required = false;
  cell.unchecked = true;
  EXPECT_TRUE(state(kCopy, run).starts_with("not tested: memory.copy: 1 of 3 cells not measured"));
}

TEST_F(Requirements, a_requirement_without_cells_meets_nothing) {
  auto run = accepted();
  std::erase_if(run.content.verdict.results, [](const auto& one) { return one.requirement == "memory.copy"; });
  EXPECT_EQ(state(kCopy, run), "not tested: memory.copy: no cell was planned for it");
}

TEST_F(Requirements, a_requirement_that_was_left_out_keeps_a_row_open_beside_one_that_passes) {
  auto run = accepted();
  auto& plan = run.content.run.plan;
  auto other = *plan.requirement("memory.copy");
  other.id = "memory.copy.again";
  plan.profile.requirements.push_back(other);
  EXPECT_EQ(state(kCopy, run), "not tested: memory.copy.again: no cell was planned for it");
  EXPECT_EQ(state(R"({"probe": "example_memory", "metric": "copy_bandwidth", "parameters": {"size": 536870912}})", run),
            "not tested: memory.copy.again: no cell was planned for it");
}

TEST_F(Requirements, what_measures_nothing_or_rehearses_meets_nothing) {
  for (const std::string kind : {"simulated", "quick", "drawn"}) {
    for (auto run : {accepted(), mixed()}) {
      auto& plan = run.content.run.plan;
      if (kind == "simulated") plan.simulation.emplace();
      if (kind == "quick") plan.quick = true;
      if (kind == "drawn") plan.drawn.push_back({.requirement = "memory.copy", .subject = {}});
      const auto catalogue = catalogue_of(row_text("a", kCopy) + ",\n" + row_text("b", kLatency));
      const auto mapping = map(catalogue, run);
      EXPECT_EQ(mapping.counts.at("not_tested"), 2U) << kind;
      EXPECT_FALSE(mapping.no_test.empty());
      const bool passes = run.content.verdict.overall == judge::Overall::accepted;
      EXPECT_EQ(state_words(mapping.rows[0]), passes ? "not tested (would be met)" : "not tested (would be not met)");
      EXPECT_EQ(state_words(mapping.rows[1]), "not tested");
      for (const auto& text : {table(mapping, 0), page_of(mapping), csv(mapping)})
        EXPECT_EQ(text.find("\"met\",\"\""), std::string::npos);
      EXPECT_NE(page_of(mapping).find(mapping.no_test), std::string::npos);
    }
  }
}

TEST_F(Requirements, what_lies_outside_says_why) {
  const auto catalogue = catalogue_of(
      R"({"id": "a", "section": "Terms", "text": "It is cheap", "outside": {"kind": "contract", "why": "a price"}})");
  const auto run = accepted();
  const auto mapping = map(catalogue, run);
  EXPECT_EQ(mapping.rows.front().state, State::outside);
  EXPECT_EQ(mapping.counts.at("outside"), 1U);
  for (const auto& text : {table(mapping, 80), json_of(mapping), csv(mapping), page_of(mapping)})
    EXPECT_NE(text.find("a price"), std::string::npos);
}

struct BadCatalogue {
  const char* what;
  std::string rows;
  const char* error;
};

TEST_F(Requirements, a_catalogue_that_says_too_much_or_too_little_is_refused_with_its_line) {
  const std::string good = row_text("a", kCopy);
  const std::vector<BadCatalogue> cases = {
      {"an id twice", good + ",\n" + good, "demands.json:4: rows[1].id: 'a' is used twice, first on line 3"},
      {"an unknown field", good + ",\n" + R"({"id": "b", "section": "s", "text": "t", "outsied": 1})",
       "demands.json:4: rows[1]: unknown field 'outsied'"},
      {"neither", R"({"id": "b", "section": "s", "text": "t"})",
       "demands.json:3: rows[0]: has neither or both of answered_by and outside"},
      {"both",
       R"({"id": "b", "section": "s", "text": "t", "outside": {"kind": "contract", "why": "w"}, "answered_by": [)" +
           std::string(kCopy) + "]}",
       "demands.json:3: rows[0]: has neither or both of answered_by and outside"},
      {"a kind of its own", R"({"id": "b", "section": "s", "text": "t", "outside": {"kind": "later", "why": "w"}})",
       "'later' is not one of organisational, contract, not_measurable"},
      {"a probe alone", "{\"id\": \"{\", " + good.substr(1, 0) + R"("section": "s", "text": "t"})",
       "demands.json:3: rows[0].id: '{' has characters"},
      {"no figure", "\n\n" + row_text("a", R"({"probe": "example_memory"})"),
       "demands.json:5: rows[0].answered_by[0]: needs a metric or a condition of its probe"},
      {"two figures", row_text("a", R"({"probe": "example_memory", "metric": "m", "condition": "c"})"),
       "rows[0].answered_by[0]: needs a metric or a condition of its probe, and only one of them"},
      {"requirement and probe", row_text("a", R"({"requirement": "memory.copy", "probe": "example_memory"})"),
       "names a requirement and a probe, or neither"},
      {"nothing", row_text("a", R"({"least_nodes": 4})"), "names a requirement and a probe, or neither"},
      {"a value of a metric", row_text("a", R"({"probe": "p", "metric": "m", "equals": 1})"),
       "has `equals` without a condition"},
      {"a narrowed id", row_text("a", R"({"requirement": "memory.copy", "scope": "gpu"})"),
       "narrows a requirement that its id names already"},
  };
  for (const auto& one : cases) {
    const auto read = read_catalogue(catalogue_text(one.rows), "demands.json");
    ASSERT_FALSE(read) << one.what;
    EXPECT_NE(read.error().text().find(one.error), std::string::npos) << one.what << ": " << read.error().text();
    EXPECT_NE(read.error().text().find("hint: "), std::string::npos) << one.what;
  }
}

TEST_F(Requirements, a_name_that_nothing_has_is_refused_with_its_line_and_the_nearest_match) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {R"({"requirement": "memory.coppy"})",
       "'memory.coppy' is not a requirement of the plan or of a built-in profile"},
      {R"({"probe": "exampel_memory", "metric": "copy_bandwidth"})", "'exampel_memory' is not a probe of this version"},
      {R"({"probe": "example_memory", "metric": "copy_bandwith"})", "'copy_bandwith' is not a metric of this probe"},
      {R"({"probe": "example_memory", "condition": "numa_bond"})", "'numa_bond' is not a condition of this probe"},
  };
  const auto run = accepted();
  for (const auto& [answer, error] : cases) {
    const auto catalogue =
        catalogue_of(row_text("a", kCopy) + ",\n" + row_text("b", std::string(kCopy) + ", " + answer));
    const auto problem = check_names(catalogue, run.content.run.plan);
    ASSERT_TRUE(problem) << answer;
    EXPECT_EQ(problem->where, "demands.json:4: rows[1].answered_by[1]");
    EXPECT_NE(problem->text().find(error), std::string::npos) << problem->text();
    EXPECT_NE(problem->hint.find("did you mean"), std::string::npos) << problem->text();
  }
}

TEST_F(Requirements, every_built_in_catalogue_is_read_and_names_what_there_is) {
  const auto run = accepted();
  EXPECT_GE(embedded_catalogues().size(), 2U);
  for (const auto& [name, text] : embedded_catalogues()) {
    const auto catalogue = catalogue_named(name);
    ASSERT_TRUE(catalogue) << catalogue.error().text();
    EXPECT_EQ(catalogue->name, name);
    const auto problem = check_names(*catalogue, run.content.run.plan);
    EXPECT_FALSE(problem) << problem->text();
    EXPECT_EQ(map(*catalogue, run).counts.at("met"), 0U) << "an example probe meets nothing";
  }
  EXPECT_FALSE(plan::embedded_profiles().contains("catalogues/clustermax"));
  const auto unknown = catalogue_named("clustermx");
  ASSERT_FALSE(unknown);
  EXPECT_NE(unknown.error().text().find("did you mean 'clustermax'?"), std::string::npos);
}

TEST_F(Requirements, its_json_fits_the_schema_and_has_the_digest_of_every_record) {
  const auto catalogue = catalogue_of(row_text("a", kCopy) + ",\n" + row_text("b", kProduct));
  for (const auto& run : {accepted(), mixed()}) {
    const auto mapping = map(catalogue, run);
    const auto document = parse_json(json_of(mapping), "output").value();
    const auto problem = profiles::check_schema(document, "requirements.schema", "output");
    EXPECT_FALSE(problem) << problem->text();
    std::size_t records = 0;
    for (const auto& requirement : document.at("requirements")) {
      for (const auto& cell : requirement.at("cells")) {
        for (const auto& record : cell.at("records")) {
          EXPECT_EQ(record.at("sha256").get<std::string>(),
                    mapping.files.at(record.at("path").get<std::string>()).sha256);
          ++records;
        }
      }
    }
    EXPECT_GE(records, 8U);
    EXPECT_EQ(document.at("run").at("standing"), "unsigned");
  }
}

/// Fields of each line of CSV; no text of the example has a line break.
std::size_t fields(const std::string& line) {
  bool quoted = false;
  std::size_t count = 1;
  for (const char c : line) {
    if (c == '"') quoted = !quoted;
    if (c == ',' && !quoted) ++count;
  }
  return count;
}

TEST_F(Requirements, every_line_of_its_csv_has_the_fields_of_the_first) {
  const auto catalogue = catalogue_of(
      row_text("a", std::string(kCopy) + ", " + kLatency) + ",\n" + row_text("b", kProduct) + ",\n" +
      row_text("c", R"({"requirement": "hbm.mismatches"})") +
      R"(, {"id": "d", "section": "s", "text": "=1+1", "outside": {"kind": "contract", "why": "w, \"w\""}})");
  const auto& run = mixed();
  const std::string text = csv(map(catalogue, run));
  std::size_t lines = 0;
  for (std::size_t at = 0; at < text.size(); at = text.find('\n', at) + 1, ++lines)
    EXPECT_EQ(fields(text.substr(at, text.find('\n', at) - at)), 21U) << lines;
  EXPECT_EQ(lines, 6U);
  EXPECT_NE(text.find("\"'=1+1\""), std::string::npos);
}

TEST_F(Requirements, texts_of_a_node_are_cut_and_escaped_everywhere) {
  auto run = mixed();
  for (auto* cell : cells(run, "memory.copy")) cell->reason = fixture::kHostile + std::string(100'000, 'x');
  for (auto* cell : cells(run, "gemm.fp16")) cell->subject.id = fixture::kHostile + std::string(100'000, 'y');
  const auto catalogue = catalogue_of(row_text("a", kCopy) + ",\n" + row_text("b", kProduct));
  const auto mapping = map(catalogue, run);
  const std::string page = page_of(mapping);
  EXPECT_EQ(page.find("<script>"), std::string::npos);
  for (const auto& text : {page, table(mapping, 80), csv(mapping)}) {
    EXPECT_EQ(text.find("\u202E"), std::string::npos);
    EXPECT_LT(text.size(), 40'000U);
  }
}

TEST_F(Requirements, all_outputs_say_what_vouches_for_the_run) {
  auto run = accepted();
  const auto catalogue = catalogue_of(row_text("a", kCopy));
  const auto said = [&](const std::string& words) {
    const auto mapping = map(catalogue, run);
    for (const auto& text : {table(mapping, 0), csv(mapping), page_of(mapping)})
      EXPECT_NE(text.find(words), std::string::npos) << words;
    return page_of(mapping).find("NOT VERIFIED") == std::string::npos;
  };
  EXPECT_FALSE(said("unsigned"));
  run.standing = "signature_not_checked";
  EXPECT_FALSE(said("signature not checked"));
  run.standing = "verified";
  run.signers = {"4a5b"};
  EXPECT_TRUE(said("verified; signed by 4a5b"));
}

}  // namespace
}  // namespace assay::requirements
