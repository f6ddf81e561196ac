// The documentation's example of a record is one that the strict reader takes, and its vocabularies are those of the
// code and of the schemas.
#include <regex>
#include <set>

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "orchestrator/judge/evidence/journal.h"
#include "orchestrator/judge/verdict.h"
#include "orchestrator/plan/profile.h"
#include "probes/core/record_reader.h"
#include "probes/core/units.h"
#include "tests/unit/paths.h"

namespace assay {
namespace {

const std::string kFormats = source_file("docs/FORMATS.md");
const std::string kProfileSchema = source_file("profiles/schemas/schema.json");

constexpr Parameter kParameters[] = {{.name = "size", .unit = "B", .fallback = "8MiB", .meaning = "payload"}};
constexpr Metric kMetrics[] = {
    {.name = "bandwidth", .unit = "B/s", .better = Better::higher, .meaning = "bytes over time"},
    {.name = "mismatches", .unit = "1", .better = Better::lower, .meaning = "bytes that differ"},
};
constexpr ConditionSpec kConditions[] = {{.name = "page_cache_cold", .meaning = "whether the cache was dropped"}};
constexpr ProbeSpec kSpec{.name = "example_copy",
                          .measures = "Nothing.",
                          .method = "None.",
                          .source = "None.",
                          .parameters = kParameters,
                          .metrics = kMetrics,
                          .conditions = kConditions};

/// What stands in the first block of `text` that is fenced as JSON.
std::string first_json_block(const std::string& text) {
  const std::string open = "```json\n";
  const auto begin = text.find(open) + open.size();
  return text.substr(begin, text.find("```", begin) - begin);
}

using Words = std::vector<std::string>;

template <Vocabulary Enum>
Words words_of_table() {
  Words all;
  for (const auto& word : words_of(Enum{})) all.emplace_back(word.text);
  return all;
}

Words sorted(Words words) {
  std::ranges::sort(words);
  return words;
}

/// Every text between backquotes in `text`.
Words quoted_in(const std::string& text) {
  static const std::regex kQuoted("`([^`]*)`");
  Words all;
  for (std::sregex_iterator at(text.begin(), text.end(), kQuoted), end; at != end; ++at) all.push_back((*at)[1]);
  return all;
}

/// The lines of FORMATS.md.
Words formats_lines() {
  std::istringstream document(read_file(kFormats).value());
  Words lines;
  for (std::string line; std::getline(document, line);) lines.push_back(line);
  return lines;
}

/// The quoted words in the first column of the table whose head begins with `head`.
Words first_column(const std::string& head) {
  const Words lines = formats_lines();
  auto line = std::ranges::find_if(lines, [&](const std::string& one) { return one.starts_with(head); });
  Words all;
  if (line == lines.end()) return all;
  for (line += 2; line != lines.end() && line->starts_with("|"); ++line) {
    for (auto& word : quoted_in(line->substr(0, line->find('|', 1)))) all.push_back(std::move(word));
  }
  return all;
}

/// Whether the row that begins with `row` quotes every word of the vocabulary.
template <Vocabulary Enum>
testing::AssertionResult row_names(const std::string& row) {
  const Words lines = formats_lines();
  const auto line = std::ranges::find_if(lines, [&](const std::string& one) { return one.starts_with(row); });
  if (line == lines.end()) return testing::AssertionFailure() << "FORMATS.md has no row " << row;
  const Words quoted = quoted_in(*line);
  for (const auto& word : words_of_table<Enum>()) {
    if (std::ranges::find(quoted, word) == quoted.end())
      return testing::AssertionFailure() << row << " does not name `" << word << "`";
  }
  return testing::AssertionSuccess();
}

/// The closed list of a requirement's field in the schema of profiles.
Words schema_words(const std::string& field) {
  const auto schema = parse_json(read_file(kProfileSchema).value(), kProfileSchema).value();
  return schema.at("definitions").at("requirement").at("properties").at(field).at("enum");
}

}  // namespace

TEST(vocabularies, the_tables_of_the_documentation_have_the_words_of_the_code_and_no_others) {
  EXPECT_EQ(sorted(first_column("| `outcome` of an attempt |")), sorted(words_of_table<AttemptOutcome>()));
  EXPECT_EQ(first_column("| outcome | when |"), words_of_table<judge::Outcome>());
  EXPECT_EQ(first_column("| overall |"), words_of_table<judge::Overall>());
}

TEST(vocabularies, the_rows_of_the_documentation_name_every_word_of_the_code) {
  EXPECT_TRUE(row_names<plan::JudgedScope>("| `scope` |"));
  EXPECT_TRUE(row_names<plan::Grouping>("| `by` |"));
  EXPECT_TRUE(row_names<plan::PairChoice>("| `pairs` |"));
  EXPECT_TRUE(row_names<plan::Statistic>("| `statistic` |"));
  EXPECT_TRUE(row_names<judge::SearchState>("| `state`, `reason` |"));
  EXPECT_TRUE(row_names<judge::TestOutcome>("| `budget`, `tests` |"));
  EXPECT_TRUE(row_names<judge::Fault>("| `culprits` |"));
}

TEST(vocabularies, the_schema_of_profiles_has_the_words_of_the_code_and_no_others) {
  EXPECT_EQ(schema_words("scope"), words_of_table<plan::JudgedScope>());
  EXPECT_EQ(schema_words("by"), words_of_table<plan::Grouping>());
  EXPECT_EQ(schema_words("pairs"), words_of_table<plan::PairChoice>());
  EXPECT_EQ(schema_words("statistic"), words_of_table<plan::Statistic>());
}

TEST(vocabularies, the_schemas_of_profiles_and_records_have_the_units_of_the_code_and_no_others) {
  const std::pair<std::string, const char*> places[] = {
      {kProfileSchema, "/definitions/unit/enum"},
      {source_file("profiles/schemas/record.schema.json"), "/definitions/measurement/properties/unit/enum"},
  };
  for (const auto& [path, place] : places) {
    const auto schema = parse_json(read_file(path).value(), path).value();
    const Words units = schema.at(nlohmann::json::json_pointer(place));
    EXPECT_EQ(fmt::format("{}", fmt::join(units, ", ")), kBaseUnits) << path;
  }
}

TEST(vocabularies, an_enumerator_is_its_word_in_json_and_in_messages_and_another_word_is_refused) {
  const nlohmann::json written = AttemptOutcome::memory_limit;
  EXPECT_EQ(written.dump(), "\"memory_limit\"");
  EXPECT_EQ(written.get<AttemptOutcome>(), AttemptOutcome::memory_limit);
  EXPECT_EQ(fmt::format("{:>7}", judge::Fault::leaf), "   leaf");
  EXPECT_THROW((void)nlohmann::json("luck").get<judge::Fault>(), nlohmann::json::exception);
  EXPECT_THROW((void)nlohmann::json(1).get<judge::Fault>(), nlohmann::json::exception);
}

TEST(formats, the_example_in_the_documentation_is_a_record) {
  const auto document = read_file(kFormats);
  ASSERT_TRUE(document) << document.error().text();
  const auto record = read_record(first_json_block(*document), *read_description(describe(kSpec).dump(), "example"));
  ASSERT_TRUE(record) << record.error().text();
  EXPECT_EQ(record->measurements.size(), 2U);
  EXPECT_EQ(record->conditions.size(), 1U);
  EXPECT_EQ(record->notes.size(), 1U);
}

TEST(formats, the_documentation_names_every_kind_of_subject_and_every_unit) {
  const auto document = read_file(kFormats);
  ASSERT_TRUE(document) << document.error().text();
  EXPECT_NE(document->find(std::string(kBaseUnits) + ". There are no prefixes"), std::string::npos);
  for (const auto* kind :
       {"`node`", "`cpu`", "`dimm`", "`gpu`", "`nic`", "`drive`", "`rank`", "`pair`", "`group`", "`cluster`"}) {
    EXPECT_NE(document->find(kind), std::string::npos) << kind;
  }
}

}  // namespace assay
