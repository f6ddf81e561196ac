// The strict reader against malformed and well-formed texts, in the classes of "Parsing JSON is a Minefield" (Nicolas
// Seriot 2016).
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "probes/core/json_io.h"

namespace assay {
namespace {

using namespace std::string_view_literals;

/// A name that GoogleTest takes, and the texts of that class.
struct Class {
  const char* name;
  std::vector<std::string_view> texts;
};

void PrintTo(const Class& one, std::ostream* out) { *out << one.name; }

std::string name_of(const testing::TestParamInfo<Class>& info) { return info.param.name; }

std::string error_of(std::string_view text) {
  const auto document = parse_json(text, "given.json");
  return document ? "accepted" : document.error().text();
}

class Malformed : public testing::TestWithParam<Class> {};

TEST_P(Malformed, is_refused) {
  for (const auto text : GetParam().texts)
    EXPECT_TRUE(error_of(text).starts_with("given.json: line ")) << text << ": " << error_of(text);
}

const Class kMalformed[] = {
    {"arrays",
     {"[7"sv,    "["sv,     "[7,"sv,       "[7,]"sv, "[,7]"sv, "[,]"sv,    "[7,,8]"sv,    "[7,8,,]"sv, "[7 8]"sv,
      "[7;8]"sv, "[7:8]"sv, "[\"k\":7]"sv, "[[7]"sv, "[7]]"sv, "]"sv,      "7]"sv,        "[7][8]"sv,  "[7[8]]"sv,
      "[7],"sv,  "[7}"sv,   "[{}"sv,       "[{"sv,   "[\"t"sv, "[\"t\""sv, "[7\n,8\n,"sv, "[ , 7]"sv}},
    {"objects",
     {"{"sv,
      "{]"sv,
      "{["sv,
      "{,"sv,
      "{\"k\""sv,
      "{\"k\":"sv,
      "{\"k\":7"sv,
      "{\"k\":7,"sv,
      "{\"k\":7,}"sv,
      "{\"k\":7,,}"sv,
      "{\"k\":7,,\"l\":8}"sv,
      "{\"k\" 7}"sv,
      "{\"k\"}"sv,
      "{\"k\",7}"sv,
      "{\"k\"::7}"sv,
      "{\"k\"=7}"sv,
      "{:7}"sv,
      "{7:8}"sv,
      "{7e999:8}"sv,
      "{k:7}"sv,
      "{'k':7}"sv,
      "{null:7}"sv,
      "{[:7}"sv,
      "{\"k\":7 8}"sv,
      "{\"k\":7}}"sv,
      "{\"k\":7}\"t\""sv,
      "{\"k"sv,
      "{\"k\":\"t"sv,
      "{\"k\":7,\"l\"}"sv,
      "{\"k\":seven}"sv}},
    {"numbers",
     {"[+7]"sv,        "[++7]"sv,          "[07]"sv,    "[-07]"sv,    "[00]"sv,     "[-]"sv,     "[- 7]"sv,
      "[--7]"sv,       "[7.]"sv,           "[-7.]"sv,   "[.7]"sv,     "[-.7]"sv,    "[.-7]"sv,   "[7.e2]"sv,
      "[7.e+2]"sv,     "[7.e-2]"sv,        "[7e]"sv,    "[7E]"sv,     "[7e+]"sv,    "[7E-]"sv,   "[7.5e]"sv,
      "[7.5e+]"sv,     "[0e]"sv,           "[0e+]"sv,   "[0e+-1]"sv,  "[7ee2]"sv,   "[7e2.5]"sv, "[7.5.5]"sv,
      "[7.5.]"sv,      "[7 000]"sv,        "[7_000]"sv, "[7,5e]"sv,   "[0x7]"sv,    "[0x7F]"sv,  "[0b1]"sv,
      "[7+8]"sv,       "[7a]"sv,           "[-7a]"sv,   "[7.5a-3]"sv, "[7.5H-3]"sv, "[7ea]"sv,   "[-a]"sv,
      "[NaN]"sv,       "[-NaN]"sv,         "[nan]"sv,   "[Inf]"sv,    "[+Inf]"sv,   "[-Inf]"sv,  "[Infinity]"sv,
      "[-Infinity]"sv, "[\xEF\xBC\x97]"sv, "7@"sv,      "[7e999]"sv,  "[-7e999]"sv}},
    {"words",
     {"[tru]"sv, "[fals]"sv, "[nul]"sv, "[True]"sv, "[NULL]"sv, "[truth]"sv, "[nulll]"sv, "[yes]"sv, "word"sv,
      "[word]"sv, "[*]"sv, "*"sv, "[<null>]"sv, "<.>"sv, "[undefined]"sv, "[ true, fals"sv, "[ true, nul"sv, "tru"sv}},
    {"strings",
     {"\""sv,
      "\"t"sv,
      "'t'"sv,
      "['t']"sv,
      "['"sv,
      "\"t\"u"sv,
      "\"\"u"sv,
      "[\"\\\"]"sv,
      "[\"\\\\\\\"]"sv,
      "[\"\\"sv,
      "[\"\\a\"]"sv,
      "[\"\\x41\"]"sv,
      "[\"\\U0041\"]"sv,
      "[\"\\u\"]"sv,
      "[\"\\u4\"]"sv,
      "[\"\\u004\"]"sv,
      "[\"\\u00G1\"]"sv,
      "[\"\\'\"]"sv,
      "[\"\\ \"]"sv,
      "[\"\\\t\"]"sv,
      "[\"\\\xF0\x9F\x8C\x8A\"]"sv,
      "[\\n]"sv,
      "[\\u0020\"t\"]"sv,
      "\\u000A[]"sv,
      "[\xC3\xA4]"sv,
      "\xC3\xA4"sv,
      "[\"\\{[\"\\{[\"\\{"sv}},
    {"control_characters",
     {"[\"\t\"]"sv, "[\"\n\"]"sv, "[\"\r\"]"sv, "[\"\x01\"]"sv, "[\"\x1F\"]"sv, "[\"\b\"]"sv, "[\v]"sv, "[\f]"sv,
      "\f[]"sv, "[]\v"sv, "[\x01]"sv, "[\"\x0Bt\"\\f]"sv}},
    {"surrogates",
     {R"(["\uD800"])"sv, R"(["\uDBFFt"])"sv, R"(["\uDC00"])"sv, R"(["\uDFFF"])"sv, R"(["\uDC00\uD800"])"sv,
      R"(["\uD800\uD800"])"sv, R"(["\uD800\u0041"])"sv, R"(["\uD800\n"])"sv, R"(["\uD800\"])"sv, R"(["\uD800\u"])"sv,
      R"(["\uD800\uD"])"sv, R"(["\uD800\uDC0"])"sv, R"(["\uD800\x"])"sv, R"({"\uDC00":7})"sv}},
    {"invalid_utf8",
     {"[\"\xFF\"]"sv,
      "[\"\xFE\"]"sv,
      "[\"\x80\"]"sv,
      "[\"\xC3\"]"sv,
      "[\"\xE4\"]"sv,
      "[\"\xC0\xAF\"]"sv,
      "[\"\xE0\x80\xAF\"]"sv,
      "[\"\xF0\x80\x80\xAF\"]"sv,
      "[\"\xED\xA0\x80\"]"sv,
      "[\"\xED\xBF\xBF\"]"sv,
      "[\"\xF4\x90\x80\x80\"]"sv,
      "[\"\xF8\x88\x80\x80\x80\"]"sv,
      "[\"\xFC\x84\x80\x80\x80\x80\"]"sv,
      "[\"\xE2\x82\"]"sv,
      "[\"\xE2\x28\xA1\"]"sv,
      "[\"\\u\xE4\"]"sv,
      "[\"\\\xE4\"]"sv,
      "{\"\x80\":7}"sv,
      "[\xFF]"sv,
      "\xFF"sv,
      "\xC3"sv,
      "[7\xE4]"sv,
      "[7e1\xE4]"sv,
      "[7e\xE4]"sv,
      "[t\xE4]"sv}},
    {"comments",
     {"[7]//"sv, "[7]/"sv, "[7]/**/"sv, "[7]/**//"sv, "/**/[7]"sv, "[/**/7]"sv, "{\"k\":/*c*/7}"sv, "[7]#"sv,
      "[7]#c\n"sv, "#c\n[7]"sv, "//c\n[7]"sv, "[7]--"sv, "[7];"sv}},
    {"what_is_not_white_space",
     {"[\xC2\xA0]"sv, "[\xE2\x81\xA0]"sv, "[\xE2\x80\x8B]"sv, "[\xE3\x80\x80]"sv, "[\xC2\x85]"sv, "[]\xE2\x80\xA8"sv}},
    {"nothing", {""sv, " "sv, "\n"sv, "\t \r\n"sv}},
    {"byte_order_marks",
     {"\xEF\xBB\xBF"sv, "\xEF\xBB\xBF{}"sv, "\xEF\xBB\xBF[7]"sv, "\xEF\xBB\xBF 7"sv, "\xEF\xBB{}"sv, "\xEF{}"sv,
      "{}\xEF\xBB\xBF"sv, " \xEF\xBB\xBF{}"sv, "\xEF\xBB\xBF\xEF\xBB\xBF{}"sv}},
    {"nul",
     {"\0"sv, "{}\0"sv, "{}\0garbage"sv, "123\0"sv, "7\0"sv, "[\0]"sv, "[7\0,8]"sv, "[\"\0\"]"sv, "[\"t\0u\"]"sv,
      "[\"\\\0\"]"sv, "{\"k\0\":7}"sv, "\0{}"sv, "true\0true"sv, "{}\n\0\0\0\0"sv, "\"t\"\0"sv}},
    {"utf16_and_utf32",
     {"\xFF\xFE[\0]\0"sv, "\xFE\xFF\0[\0]"sv, "[\0]\0"sv, "\0[\0]"sv, "[\0\0\0]\0\0\0"sv, "\0\0\0[\0\0\0]"sv}},
};

INSTANTIATE_TEST_SUITE_P(Json, Malformed, testing::ValuesIn(kMalformed), name_of);

TEST(Json, comments_are_taken_where_they_are_asked_for) {
  const auto read = parse_json("// head\n{\"k\": /* of k */ 7} // end", "cufile.json", {.comments = true});
  ASSERT_TRUE(read);
  EXPECT_EQ(*read, (nlohmann::json{{"k", 7}}));
  EXPECT_FALSE(parse_json("{\"k\": 7} /* not closed", "cufile.json", {.comments = true}));
  EXPECT_FALSE(parse_json("{\"k\": 7, \"k\": 8}", "cufile.json", {.comments = true}));
}

class WellFormed : public testing::TestWithParam<Class> {};

TEST_P(WellFormed, is_read) {
  for (const auto text : GetParam().texts) EXPECT_EQ(error_of(text), "accepted") << text;
}

const Class kWellFormed[] = {
    {"arrays", {"[]"sv, "[[]   ]"sv, " [] "sv, "[\"\"]"sv, "[7]\n"sv, "[null,7,\"t\",{},[true]]"sv, "[7\r\n,\t8]"sv}},
    {"objects",
     {"{}"sv, "{\"\":7}"sv, "{\"k\":[]}"sv, "{\"k\":7,\"l\":{\"k\":7}}"sv, "{\n\"k\" : 7\n}"sv, R"({"k\u0000l":7})"sv,
      R"({"\u0416":7})"sv}},
    {"numbers",
     {"[0]"sv, "[-0]"sv, "[7]"sv, "[-7]"sv, "[7.25]"sv, "[-0.0]"sv, "[0e1]"sv, "[0E+1]"sv, "[7e2]"sv, "[7E-2]"sv,
      "[7.5e+20]"sv, "[-1.0e+28]"sv, "[ 7]"sv, "[7e-400]"sv, "[123123123123123123123123]"sv,
      "[-0.00000000000000000000000000000000000000000000000000000000000000000000000000000001]"sv}},
    {"scalars_alone", {"7"sv, "-0.5"sv, "true"sv, "false"sv, "null"sv, "\"t\""sv, "\"\""sv, "\" \""sv}},
    {"strings",
     {R"(["\"\\\/\b\f\n\r\t"])"sv, R"(["\u0000"])"sv, R"(["\u0012\u00A0\u2028\uFFFF\uFDD0"])"sv, R"(["\\u0041"])"sv,
      R"(["\\a"])"sv, R"(["\uD834\uDD1E"])"sv, R"(["\uDBFF\uDFFF"])"sv, R"(["\ud83d\ude39\uD83D\uDC8D"])"sv,
      "[\"\x7F\"]"sv, "[\"\xE2\x80\xA8\xE2\x80\xA9\"]"sv, "[\"\xC2\x80\xE2\x82\xAC\xF0\x9D\x84\x9E\"]"sv,
      "[\"\xEF\xBF\xBF\xF4\x8F\xBF\xBF\"]"sv, "[\"\xEF\xBB\xBF\"]"sv, "[\"/*t*/ // # '\"]"sv}},
};

INSTANTIATE_TEST_SUITE_P(Json, WellFormed, testing::ValuesIn(kWellFormed), name_of);

}  // namespace

// What RFC 8259 leaves to the reader and this one refuses on purpose.
TEST(json, a_key_twice_is_refused) {
  const std::string hint = "\nhint: the document must be strict JSON (RFC 8259) in UTF-8";
  const std::string twice = "given.json: the key 'k' is in one object twice; the second one ends at ";
  EXPECT_EQ(error_of(R"({"k":7,"k":8})"), twice + "column 10" + hint);
  EXPECT_EQ(error_of(R"({"k":7,"k":7})"), twice + "column 10" + hint);
  EXPECT_EQ(error_of("{\"a\": {\"k\": 1},\n \"b\": [1, {\"k\": 2,\n  \"k\" : 3}]}"), twice + "line 3, column 5" + hint);
}

TEST(json, a_key_twice_is_kept_under_another_name_where_the_reader_takes_it) {
  const JsonLimits limits{
      .may_repeat = [](std::string_view object, std::string_view key) { return object == "options" && key == "file"; }};
  const auto read =
      parse_json(R"({"options":{"file":"a","file":"b","file":"c"},"list":[{"file":1}]})", "given", limits);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->at("options"), (nlohmann::json{{"file", "a"}, {"file (2)", "b"}, {"file (3)", "c"}}));
  EXPECT_TRUE(parse_json(R"({"options":[{"file":1,"file":2}]})", "given", limits));
  EXPECT_FALSE(parse_json(R"({"options":{"name":1,"name":2}})", "given", limits));
  EXPECT_FALSE(parse_json(R"({"options":{"k":{}},"file":1,"file":2})", "given", limits));
  std::string many = R"({"options":{"file":0)";
  for (int i = 0; i < 200; ++i) many += R"(,"file":0)";
  EXPECT_FALSE(parse_json(many + "}}", "given", limits));
}

TEST(json, nesting_is_read_up_to_the_limit_and_refused_beyond_it) {
  const auto nested = [](std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_EQ(error_of(nested(32)), "accepted");
  EXPECT_NE(error_of(nested(33)).find("deeper than 32 levels"), std::string::npos);
  EXPECT_NE(error_of(std::string(100'000, '[')).find("deeper than 32 levels"), std::string::npos);
}

TEST(json, nul_is_refused_wherever_it_stands_with_its_place_and_a_hint) {
  const std::string good = "{\n \"k\": [7, \"t\", null]\n}\n";
  EXPECT_EQ(error_of(good), "accepted");
  for (std::size_t at = 0; at <= good.size(); ++at) {
    std::string text = good;
    text.insert(at, 1, '\0');
    EXPECT_NE(error_of(text).find(": has a NUL byte\nhint: JSON is UTF-8 text"), std::string::npos) << at;
  }
  EXPECT_TRUE(error_of("{\n \"k\":\0 7}"sv).starts_with("given.json: line 2, column 6: has a NUL byte\n"));
}

TEST(json, a_byte_order_mark_is_refused_with_its_place_and_a_hint) {
  EXPECT_EQ(error_of("\xEF\xBB\xBF{}"),
            "given.json: line 1, column 1: begins with a byte order mark\nhint: write it as UTF-8 without a byte order "
            "mark (RFC 8259, section 8.1)");
}

TEST(json, every_text_that_is_cut_short_is_refused) {
  const std::string good = R"({"k": [7.25e1, "t\u0041", {"l": [true, false, null]}], "m": {"n": ""}})";
  EXPECT_EQ(error_of(good), "accepted");
  for (std::size_t length = 0; length < good.size(); ++length)
    EXPECT_NE(error_of(good.substr(0, length)), "accepted") << length;
}

TEST(parse_json, values_are_counted_before_they_are_stored) {
  const auto read = [](const std::string& text, std::size_t most) {
    const auto document = parse_json(text, "f", {.max_values = most});
    return document ? "taken" : document.error().text();
  };
  EXPECT_EQ(read(R"({"a":[1,2,{}]})", 5), "taken");
  EXPECT_EQ(read(R"({"a":[1,2,{}]})", 4),
            "f: more than 4 values\nhint: the document must be strict JSON (RFC 8259) in UTF-8");
  std::string many = "[";
  for (int i = 0; i < 1'000'001; ++i) many += "0,";
  EXPECT_NE(parse_json(many + "0]", "f").error().text().find("more than 1000000 values"), std::string::npos);
}

}  // namespace assay
