// Text from outside: what a terminal would obey is shown and not sent.
#include <gtest/gtest.h>

#include "probes/core/error.h"
#include "probes/core/host_facts.h"
#include "probes/core/text.h"

namespace assay {

TEST(text, what_a_terminal_obeys_is_shown_by_its_number) {
  EXPECT_EQ(harmless("\x1b[2J\x1b[Hverified: accepted"), "<U+001B>[2J<U+001B>[Hverified: accepted");
  EXPECT_EQ(harmless("a\rb\x07"
                     "c\x7f"),
            "a<U+000D>b<U+0007>c<U+007F>");
  EXPECT_EQ(harmless("\u009b31m"), "<U+009B>31m");  // a control of C1 in UTF-8
  EXPECT_EQ(harmless("\x9b"
                     "31m"),
            "<0x9B>31m");  // the same as a bare byte, which some terminals obey
  EXPECT_EQ(harmless("\u202Etxet\u2066"), "<U+202E>txet<U+2066>");
  EXPECT_EQ(harmless("no\u200Bbreak\uFEFF"), "no<U+200B>break<U+FEFF>");
  EXPECT_EQ(harmless("\U000E0041"), "<U+E0041>");
}

TEST(text, other_languages_stay_as_they_are) {
  EXPECT_EQ(harmless("Prüfstand 7 — 測試 🙂 ½"), "Prüfstand 7 — 測試 🙂 ½");
  EXPECT_EQ(harmless(""), "");
}

TEST(text, a_line_of_its_own_cannot_be_begun) {
  EXPECT_EQ(harmless("reason\nACCEPTED: 2 of 2\tpass"), "reason ACCEPTED: 2 of 2 pass");
  EXPECT_EQ(harmless_page("a\nb\tc\rd"), "a\nb\tc<U+000D>d");
  EXPECT_EQ(harmless("a\u2028b"), "a<U+2028>b");
}

TEST(text, bad_utf8_is_shown_byte_by_byte) {
  EXPECT_EQ(harmless("a\xff"
                     "b\xc3"),
            "a<0xFF>b<0xC3>");
  EXPECT_EQ(harmless("\xc0\xaf"), "<0xC0><0xAF>");            // an overlong slash
  EXPECT_EQ(harmless("\xed\xa0\x80"), "<0xED><0xA0><0x80>");  // half of a pair of surrogates
  EXPECT_EQ(harmless("\xf4\x90\x80\x80"), "<0xF4><0x90><0x80><0x80>");
  EXPECT_EQ(harmless(std::string_view("a\0b", 3)), "a<U+0000>b");
}

TEST(text, what_is_too_long_is_cut_between_characters_and_says_so) {
  EXPECT_EQ(harmless("aaüü", 3), "aa… (6 bytes)");
  EXPECT_LT(harmless(std::string(1 << 20, 'x')).size(), 5000U);
  EXPECT_EQ(without_controls("aaüü", 3), "aa");
  EXPECT_EQ(without_controls("a\x1b\u009b\nb\x7f", 100), "a???\nb?");
}

TEST(text, controls_are_those_of_both_sets) {
  EXPECT_FALSE(has_controls("two\nlines\tü — \u202e"));
  for (const char* text : {"\x1b", "a\x7f", "\u0080", "\u009f", "\r"}) EXPECT_TRUE(has_controls(text)) << text;
}

TEST(text, json_is_ascii_and_the_same_document) {
  EXPECT_EQ(ascii_json("{\"a\":\"ü\u009b\u202e🙂\x7f\"}"), R"({"a":"\u00fc\u009b\u202e\ud83d\ude42\u007f"})");
  EXPECT_EQ(ascii_json("\xff"), "\\ufffd");
}

TEST(error, what_an_error_quotes_is_harmless) {
  EXPECT_EQ((InputError{"f: '\x1b]0;x\x07'", "is '\u202e\n'", "give\rothers"}.text()),
            "f: '<U+001B>]0;x<U+0007>': is '<U+202E> '\nhint: give<U+000D>others");
}

TEST(host_facts, are_a_closed_grammar) {
  const Values good = {{"name", std::string("n01")},
                       {"boot_id", std::string("b")},
                       {"cpus", std::int64_t{64}},
                       {"memory", std::int64_t{1} << 40}};
  EXPECT_EQ(problem_of_facts(good), std::nullopt);
  EXPECT_EQ(problem_of_facts({}), "name is missing");
  const auto with = [&](const char* name, Value value) {
    Values facts = good;
    facts[name] = std::move(value);
    return problem_of_facts(facts).value_or("taken");
  };
  EXPECT_EQ(with("name", std::int64_t{7}), "name is not a text of 1 to 255 bytes");
  EXPECT_EQ(with("name", std::string("a b")), "name is not of visible ASCII");
  EXPECT_EQ(with("name", std::string(256, 'n')), "name is not a text of 1 to 255 bytes");
  EXPECT_EQ(with("boot_id", std::int64_t{7}), "boot_id is not a text of 1 to 255 bytes");
  EXPECT_EQ(with("kernel", std::string("6.1\x1b[2J")), "kernel is not a text of 1 to 255 bytes");
  for (const Value& bad : {Value(std::int64_t{-1}), Value(std::int64_t{0}), Value(1e308), Value(std::string("lots")),
                           Value(true), Value((std::int64_t{1} << 50) + 1)})
    EXPECT_EQ(with("memory", bad), "memory is not a whole number from 1 to 1125899906842624");
  EXPECT_EQ(with("cpus", std::string("x")), "cpus is not a whole number from 1 to 1048576");
  EXPECT_EQ(with("f\x1b", std::int64_t{1}), "'f?' is not a known fact");
}

TEST(as_markup, is_no_element_and_ends_no_attribute) {
  EXPECT_EQ(as_markup("<b>\"R&D\" 5 µs</b>\n"), "&lt;b&gt;&quot;R&amp;D&quot; 5 µs&lt;/b&gt;\n");
}

TEST(host_facts, those_of_this_machine_are_fit) { EXPECT_EQ(problem_of_facts(host_facts()), std::nullopt); }

}  // namespace assay
