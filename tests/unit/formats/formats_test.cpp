// The documentation's example of a record is one that the strict reader takes.
#include <gtest/gtest.h>

#include "probes/core/record_reader.h"

namespace assay {
namespace {

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

}  // namespace

TEST(formats, the_example_in_the_documentation_is_a_record) {
  const auto document = read_file(FORMATS_DOCUMENT);
  ASSERT_TRUE(document) << document.error().text();
  const auto record = read_record(first_json_block(*document), *read_description(describe(kSpec).dump(), "example"));
  ASSERT_TRUE(record) << record.error().text();
  EXPECT_EQ(record->measurements.size(), 2U);
  EXPECT_EQ(record->conditions.size(), 1U);
  EXPECT_EQ(record->notes.size(), 1U);
}

TEST(formats, the_documentation_names_every_kind_of_subject_and_every_unit) {
  const auto document = read_file(FORMATS_DOCUMENT);
  ASSERT_TRUE(document) << document.error().text();
  EXPECT_NE(document->find(std::string(kBaseUnits) + ". There are no prefixes"), std::string::npos);
  for (const auto* kind :
       {"`node`", "`cpu`", "`dimm`", "`gpu`", "`nic`", "`drive`", "`rank`", "`pair`", "`group`", "`cluster`"}) {
    EXPECT_NE(document->find(kind), std::string::npos) << kind;
  }
}

}  // namespace assay
