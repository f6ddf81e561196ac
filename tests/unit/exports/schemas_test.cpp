// schemas_test: the published schemas of record and verdict say what the readers take: what the schema refuses, the
// reader refuses, and members that are missing, unknown or null are refused by both or by neither.
#include <set>

#include <gtest/gtest.h>

#include "orchestrator/judge/evidence/evidence.h"
#include "probes/core/record_reader.h"
#include "profiles/embedded.h"
#include "profiles/schema.h"
#include "tests/unit/run_fixture.h"

namespace assay {
namespace {

using nlohmann::json;

/// Every place in `document`, as JSON pointers; of long lists the first two elements.
void places(const json& document, const json::json_pointer& at, std::vector<json::json_pointer>& all) {
  if (!at.empty()) all.push_back(at);
  if (document.is_object()) {
    for (const auto& [name, value] : document.items()) places(value, at / name, all);
  }
  if (document.is_array()) {
    for (std::size_t i = 0; i < std::min<std::size_t>(document.size(), 2); ++i) places(document[i], at / i, all);
  }
}

/// `document` without one member, with null in its place, and with another member beside it, for every place.
std::vector<std::pair<std::string, json>> changed(const json& document) {
  std::vector<json::json_pointer> all;
  places(document, json::json_pointer(), all);
  std::vector<std::pair<std::string, json>> bent = {{"unknown member", document}};
  bent.back().second["unknown"] = 1;
  for (const auto& place : all) {
    if (document[place.parent_pointer()].is_object()) {
      bent.emplace_back("without " + place.to_string(), document);
      bent.back().second[place.parent_pointer()].erase(place.back());
    }
    bent.emplace_back("null at " + place.to_string(), document);
    bent.back().second[place] = nullptr;
    if (document[place].is_object()) {
      bent.emplace_back("unknown member in " + place.to_string(), document);
      bent.back().second[place]["unknown"] = {1};
    }
  }
  return bent;
}

class Schemas : public testing::Test {
 protected:
  void SetUp() override {
    fixture::make_run(folder_.path() + "/run", fixture::Kind::mixed);
    run_ = judge::read_run(folder_.path() + "/run").value();
  }
  [[nodiscard]] std::string file(const std::string& path) const {
    return fixture::read(folder_.path() + "/run/" + path);
  }

  fixture::TemporaryFolder folder_;
  judge::Run run_;
};

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const auto end = text.find('\n', begin);
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

TEST_F(Schemas, every_line_of_a_record_is_one_of_the_schema) {
  std::size_t seen = 0;
  for (const auto& attempt : run_.journal.attempts) {
    for (const auto& evidence : attempt.evidence) {
      if (!evidence.path.starts_with("records/")) continue;
      for (const auto& line : lines_of(file(evidence.path))) {
        const auto problem = profiles::check_schema(parse_json(line, "line").value(), "record.schema", "line");
        EXPECT_FALSE(problem) << problem->text() << line;
        ++seen;
      }
    }
  }
  EXPECT_GT(seen, 20U);
}

TEST_F(Schemas, a_bent_line_of_a_record_is_refused_by_reader_and_schema_alike) {
  const auto& attempt = run_.journal.attempts.back();
  const auto lines = lines_of(file(attempt.evidence.front().path));
  const auto& description = run_.plan.probes.at(run_.plan.step(attempt.step)->probe).description;
  std::size_t refused = 0;
  for (std::size_t number = 0; number < lines.size(); ++number) {
    for (const auto& [what, line] : changed(parse_json(lines[number], "line").value())) {
      std::string text;
      for (std::size_t i = 0; i < lines.size(); ++i) text += (i == number ? line.dump() : lines[i]) + "\n";
      const bool read = read_record(text, description).has_value();
      const bool valid = !profiles::check_schema(line, "record.schema", "line");
      EXPECT_EQ(read, valid) << "line " << number << ": " << what;
      refused += read ? 0 : 1;
    }
  }
  EXPECT_GT(refused, 50U);
}

TEST_F(Schemas, a_result_has_the_members_that_the_schema_of_a_verdict_names) {
  std::set<std::string> listed = {"unchecked"};  // which old verdicts do not have
  EachField io{[&](const char* name, const auto&) { listed.insert(name); }};
  const judge::Result result;
  fields(io, result);
  const auto schema = parse_json(profiles::embedded_documents().at("verdict.schema"), "verdict.schema").value();
  std::set<std::string> named;
  for (const auto& member : schema.at("definitions").at("result").at("properties").items()) named.insert(member.key());
  EXPECT_EQ(listed, named);
}

TEST_F(Schemas, a_bent_verdict_is_refused_by_reader_and_schema_alike) {
  const auto document = parse_json(file("verdict.json"), "verdict.json").value();
  ASSERT_FALSE(profiles::check_schema(document, "verdict.schema", "verdict"))
      << profiles::check_schema(document, "verdict.schema", "verdict")->text();
  std::size_t refused = 0;
  for (const auto& [what, bent] : changed(document)) {
    const bool read = judge::read_verdict(bent.dump(1) + "\n", "verdict").has_value();
    const bool valid = !profiles::check_schema(bent, "verdict.schema", "verdict");
    // Digests of the fleet are made again from the nodes, which no schema can.
    if (!valid) {
      EXPECT_FALSE(read) << what;
    }
    if (what.find("/fleet") == std::string::npos) {
      EXPECT_EQ(read, valid) << what;
    }
    refused += read ? 0 : 1;
  }
  EXPECT_GT(refused, 80U);
}

}  // namespace
}  // namespace assay
