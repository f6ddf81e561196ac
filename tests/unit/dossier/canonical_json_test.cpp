// Canonical JSON: RFC 8785's own examples, and everything that is not canonical.
#include <bit>
#include <limits>

#include <gtest/gtest.h>

#include "probes/core/es6_number.h"
#include "reports/dossier/base64.h"
#include "reports/dossier/canonical_json.h"

namespace assay::dossier {
namespace {

std::string canonical(const std::string& text) { return canonical_json(nlohmann::json::parse(text)).value(); }

std::string verdict_on(const std::string& bytes) {
  const auto document = read_canonical_json(bytes, "payload");
  return document ? "accepted" : document.error().where + ": " + document.error().what;
}

double from_bits(std::uint64_t bits) { return std::bit_cast<double>(bits); }

TEST(CanonicalJson, the_example_of_rfc_8785_section_3_2_2_comes_out_as_printed_there) {
  const std::string input = R"({"numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
    "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/", "literals": [null, true, false]})";
  EXPECT_EQ(canonical(input),
            "{\"literals\":[null,true,false],\"numbers\":[333333333.3333333,1e+30,4.5,0.002,1e-27],"
            "\"string\":\"\u20ac$\\u000f\\nA'B\\\"\\\\\\\\\\\"/\"}");
}

TEST(CanonicalJson, keys_are_sorted_by_utf_16_code_units_as_in_rfc_8785_section_3_2_3) {
  const std::string input =
      R"({"\u20ac": "Euro Sign", "\r": "Carriage Return", "\ufb33": "Hebrew Letter Dalet With Dagesh", "1": "One",
    "\ud83d\ude00": "Emoji: Grinning Face", "\u0080": "Control", "\u00f6": "Latin Small Letter O With Diaeresis"})";
  EXPECT_EQ(canonical(input),
            "{\"\\r\":\"Carriage Return\",\"1\":\"One\",\"\u0080\":\"Control\",\"\u00f6\":\"Latin Small Letter O With "
            "Diaeresis\","
            "\"\u20ac\":\"Euro Sign\",\"\U0001F600\":\"Emoji: Grinning Face\",\"\ufb33\":\"Hebrew Letter Dalet With "
            "Dagesh\"}");
}

TEST(CanonicalJson, numbers_are_those_of_rfc_8785_appendix_b) {
  EXPECT_EQ(es6_number(from_bits(0x0000000000000000)), "0");
  EXPECT_EQ(es6_number(from_bits(0x8000000000000000)), "0");
  EXPECT_EQ(es6_number(from_bits(0x0000000000000001)), "5e-324");
  EXPECT_EQ(es6_number(from_bits(0x8000000000000001)), "-5e-324");
  EXPECT_EQ(es6_number(from_bits(0x7fefffffffffffff)), "1.7976931348623157e+308");
  EXPECT_EQ(es6_number(from_bits(0x4340000000000000)), "9007199254740992");
  EXPECT_EQ(es6_number(from_bits(0xc340000000000000)), "-9007199254740992");
  EXPECT_EQ(es6_number(from_bits(0x4430000000000000)), "295147905179352830000");
  EXPECT_EQ(es6_number(from_bits(0x44b52d02c7e14af5)), "9.999999999999997e+22");
  EXPECT_EQ(es6_number(from_bits(0x44b52d02c7e14af6)), "1e+23");
  EXPECT_EQ(es6_number(from_bits(0x44b52d02c7e14af7)), "1.0000000000000001e+23");
  EXPECT_EQ(es6_number(from_bits(0x444b1ae4d6e2ef4e)), "999999999999999700000");
  EXPECT_EQ(es6_number(from_bits(0x444b1ae4d6e2ef4f)), "999999999999999900000");
  EXPECT_EQ(es6_number(from_bits(0x444b1ae4d6e2ef50)), "1e+21");
  EXPECT_EQ(es6_number(from_bits(0x3eb0c6f7a0b5ed8c)), "9.999999999999997e-7");
  EXPECT_EQ(es6_number(from_bits(0x3eb0c6f7a0b5ed8d)), "0.000001");
  EXPECT_EQ(es6_number(from_bits(0x41b3de4355555553)), "333333333.3333332");
  EXPECT_EQ(es6_number(from_bits(0x41b3de4355555554)), "333333333.33333325");
  EXPECT_EQ(es6_number(from_bits(0x41b3de4355555555)), "333333333.3333333");
  EXPECT_EQ(es6_number(from_bits(0x41b3de4355555556)), "333333333.3333334");
  EXPECT_EQ(es6_number(from_bits(0x41b3de4355555557)), "333333333.33333343");
  EXPECT_EQ(es6_number(from_bits(0xbecbf647612f3696)), "-0.0000033333333333333333");
  EXPECT_EQ(es6_number(from_bits(0x43143ff3c1cb0959)), "1424953923781206.2");
}

TEST(CanonicalJson, numbers_that_no_double_holds_exactly_are_refused) {
  EXPECT_FALSE(canonical_json({{"n", std::int64_t{9007199254740993}}}));
  EXPECT_FALSE(canonical_json({{"n", std::numeric_limits<std::int64_t>::min()}}));
  EXPECT_FALSE(canonical_json({{"n", std::numeric_limits<double>::infinity()}}));
  EXPECT_TRUE(canonical_json({{"n", std::int64_t{9007199254740992}}}));
}

TEST(CanonicalJson, only_the_canonical_spelling_is_read) {
  EXPECT_EQ(verdict_on(R"({"a":1,"b":"A"})"), "accepted");
  EXPECT_EQ(verdict_on(R"({"a":1.0,"b":"A"})"), "payload: byte 6: is not canonical JSON (RFC 8785)");
  EXPECT_EQ(verdict_on(R"({"a":1,"b":"\u0041"})"), "payload: byte 12: is not canonical JSON (RFC 8785)");
  EXPECT_EQ(verdict_on(R"({"b":"A","a":1})"), "payload: byte 2: is not canonical JSON (RFC 8785)");
  EXPECT_EQ(verdict_on(R"({"a": 1,"b":"A"})"), "payload: byte 5: is not canonical JSON (RFC 8785)");
  EXPECT_EQ(verdict_on("{\"a\":1}\n"), "payload: byte 7: is not canonical JSON (RFC 8785)");
  EXPECT_EQ(verdict_on("\xef\xbb\xbf{\"a\":1}"), "payload: line 1, column 1: begins with a byte order mark");
  EXPECT_EQ(verdict_on(R"({"a":1,"a":1})"),
            "payload: the key 'a' is in one object twice; the second one ends at column 10");
  EXPECT_NE(verdict_on(R"({"a":1}})"), "accepted");
  EXPECT_NE(verdict_on(R"({"a":"\ud800"})"), "accepted");
  EXPECT_NE(verdict_on(R"({"a":9007199254740993})"), "accepted");
}

TEST(Base64, rfc_4648_section_10_both_ways) {
  EXPECT_EQ(base64(""), "");
  EXPECT_EQ(base64("f"), "Zg==");
  EXPECT_EQ(base64("fo"), "Zm8=");
  EXPECT_EQ(base64("foo"), "Zm9v");
  EXPECT_EQ(base64("foobar"), "Zm9vYmFy");
  EXPECT_EQ(base64_decoded("Zm9vYg=="), "foob");
  EXPECT_EQ(base64_decoded("Zm9vYmE="), "fooba");
  EXPECT_EQ(base64_decoded(""), "");
}

TEST(Base64, both_alphabets_are_read_and_nothing_else) {
  EXPECT_EQ(base64_decoded("-_-_"), base64_decoded("+/+/"));
  EXPECT_EQ(base64_decoded("+_+/"), std::nullopt) << "mixed alphabets";
  EXPECT_EQ(base64_decoded("Zh=="), std::nullopt) << "non-zero trailing bits";
  EXPECT_EQ(base64_decoded("Zm9="), std::nullopt) << "non-zero trailing bits";
  EXPECT_EQ(base64_decoded("Zg"), std::nullopt) << "no padding";
  EXPECT_EQ(base64_decoded("Zg==Zg=="), std::nullopt) << "padding inside";
  EXPECT_EQ(base64_decoded("===="), std::nullopt);
  EXPECT_EQ(base64_decoded("Zg== "), std::nullopt) << "white space";
  EXPECT_EQ(base64_decoded("Zm 9"), std::nullopt) << "white space";
  EXPECT_EQ(base64_decoded("Zm\n9"), std::nullopt) << "white space";
}

}  // namespace
}  // namespace assay::dossier
