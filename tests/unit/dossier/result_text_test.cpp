// A result in a statement is canonical as it is written.
#include "reports/dossier/result_text.h"

#include <limits>

#include <gtest/gtest.h>

#include "probes/core/json_io.h"
#include "reports/dossier/canonical_json.h"
#include "reports/dossier/statement.h"

namespace assay::dossier {
namespace {

judge::Result whole_result() {
  judge::Result result{
      .requirement = "r", .subject = {.kind = "gpu", .id = "\"0\"\n\x01"}, .node = "n01", .step = "001"};
  result.reason = "größer";
  result.unit = "B/s";
  result.interval = {.low = 1e21, .high = 2e21, .level = 0.95};
  result.conditions = std::vector<judge::ConditionSeen>{{.name = "a", .demanded = "= true", .seen = Value(true)},
                                                        {.name = "b", .demanded = ">= 1"}};
  result.evidence = std::vector<std::string>{"records/a", "records/b"};
  for (auto* number : {&result.value, &result.uncertainty, &result.reference, &result.limit_low, &result.limit_high,
                       &result.acceptance_low, &result.acceptance_high, &result.margin, &result.false_accept})
    *number = 0.1;
  return result;
}

plan::Requirement whole_requirement() {
  return {.id = "r", .metric = "m", .rise = true, .contrast = plan::Contrast{.parameter = "huge"}};
}

TEST(ResultText, is_canonical_with_all_members) {
  std::string text;
  EXPECT_TRUE(add_result(whole_result(), whole_requirement(), text));
  const auto document = read_canonical_json(text, "result");
  ASSERT_TRUE(document) << document.error().text() << "\n" << text;
  EXPECT_EQ(document->size(), 26U);
  EXPECT_EQ(document->at("ci").at("high"), "2e+21");
  EXPECT_EQ(document->at("conditions").at(0).at("seen"), "true");
  EXPECT_FALSE(document->at("conditions").at(1).contains("seen"));
  EXPECT_EQ(document->at("subject").at("id"), "\"0\"\n\x01");
}

TEST(ResultText, a_number_that_is_not_finite_has_no_spelling) {
  for (const double odd : {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
    std::string text;
    judge::Result result = whole_result();
    result.value = odd;
    EXPECT_FALSE(add_result(result, whole_requirement(), text));
    result = whole_result();
    result.interval->high = odd;
    EXPECT_FALSE(add_result(result, whole_requirement(), text));
  }
}

}  // namespace
}  // namespace assay::dossier
