// A closed object: what its reader takes, and what it refuses with which words.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "probes/core/strict_object.h"

namespace assay {
namespace {

using nlohmann::json;

template <class Read>
std::string error_of(const json& object, Read read) {
  const auto result = read_strictly("file", [&] {
    StrictObject fields(object, "a.b", "a hint");
    read(fields);
    fields.done();
    return true;
  });
  return result ? "accepted" : result.error().text();
}

bool is_short(std::string_view text) { return text.size() < 3; }

}  // namespace

TEST(strict_object, every_type_is_read_back) {
  const json object = {{"text", "x"}, {"flag", true},        {"number", 1.5},
                       {"whole", -2}, {"count", UINT64_MAX}, {"list", {1}}};
  StrictObject fields(object, "");
  EXPECT_EQ(fields.text("text", is_short), "x");
  EXPECT_TRUE(fields.flag("flag"));
  EXPECT_EQ(fields.number("number", 1.5, 1.5), 1.5);
  EXPECT_EQ(fields.whole("whole"), -2);
  EXPECT_EQ(fields.count("count", 1, UINT64_MAX), UINT64_MAX);
  EXPECT_EQ(fields.list("list").size(), 1U);
  EXPECT_EQ(fields.optional("absent"), nullptr);
  EXPECT_NO_THROW(fields.done());
}

TEST(strict_object, a_missing_and_an_unknown_field_are_refused_with_place_and_hint) {
  EXPECT_EQ(error_of(json::object(), [](StrictObject& fields) { (void)fields.text("c"); }),
            "file: a.b.c: is missing\nhint: a hint");
  EXPECT_EQ(error_of({{"c", 1}, {"d\n", 2}}, [](StrictObject& fields) { fields.pass_over({"c"}); }),
            "file: a.b.d?: is not a known field\nhint: a hint");
  EXPECT_EQ(error_of(json::array(), [](StrictObject&) {}), "file: a.b: is not an object\nhint: a hint");
}

TEST(strict_object, another_type_is_refused) {
  const json object = {{"c", nullptr}};
  const auto refused = [&](auto read, const std::string& what) {
    EXPECT_EQ(error_of(object, read), "file: a.b.c: " + what + "\nhint: a hint");
  };
  refused([](StrictObject& fields) { (void)fields.text("c"); }, "is not text");
  refused([](StrictObject& fields) { (void)fields.flag("c"); }, "is neither true nor false");
  refused([](StrictObject& fields) { (void)fields.number("c", 0, 1); }, "is not a number from 0 to 1");
  refused([](StrictObject& fields) { (void)fields.whole("c"); }, "is not a whole number");
  refused([](StrictObject& fields) { (void)fields.count("c", 1, 2); }, "is not a whole number from 1 to 2");
  refused([](StrictObject& fields) { (void)fields.list("c"); }, "is not a list");
}

TEST(strict_object, bounds_hold_on_both_sides) {
  const auto whole = [](const json& value) {
    return error_of({{"c", value}}, [](StrictObject& fields) { (void)fields.whole("c", -1, 2); }) == "accepted";
  };
  EXPECT_TRUE(whole(-1) && whole(2));
  EXPECT_FALSE(whole(-2) || whole(3) || whole(1.0) || whole(UINT64_MAX));
  const auto number = [](const json& value) {
    return error_of({{"c", value}}, [](StrictObject& fields) { (void)fields.number("c", 0, 1); }) == "accepted";
  };
  EXPECT_TRUE(number(0) && number(1.0));
  EXPECT_FALSE(number(-0.1) || number(1.1) || number("1"));
  EXPECT_EQ(error_of({{"c", UINT64_MAX}}, [](StrictObject& fields) { (void)fields.whole("c"); }),
            "file: a.b.c: is not a whole number\nhint: a hint");
  EXPECT_EQ(error_of({{"c", "long"}}, [](StrictObject& fields) { (void)fields.text("c", is_short); }),
            "file: a.b.c: is not text of the allowed form\nhint: a hint");
}

}  // namespace assay
