// What a reader found against what was written and what was there before: right, old, or neither, and in which words.
#include <string_view>

#include <gtest/gtest.h>

#include "workloads/storage/shared/consistency_look.h"

namespace assay::cluster_storage {
namespace {

Content bytes(std::string_view text) {
  Content found;
  for (const char one : text) found.push_back(static_cast<std::byte>(one));
  return found;
}

const Content kNow = bytes("abcdefgh"), kBefore = bytes("ABCDEFGH");

void expect(const Look& look, Seen seen, const std::string& text) {
  EXPECT_EQ(look.seen, seen) << look.text;
  EXPECT_EQ(look.text, text);
}

TEST(JudgeContent, what_was_written_last_is_right_and_absence_is_right_where_it_was_removed) {
  expect(judge_content(kNow, kNow, kBefore), Seen::right, "");
  expect(judge_content(std::nullopt, std::nullopt, kBefore), Seen::right, "");
}

TEST(JudgeContent, what_was_there_before_and_a_beginning_of_the_new_are_old) {
  expect(judge_content(kBefore, kNow, kBefore), Seen::old, "all 8 B are what was there before");
  expect(judge_content(bytes("abc"), kNow, kBefore), Seen::old, "the file ends after 3 of 8 B");
  expect(judge_content(bytes(""), kNow, std::nullopt), Seen::old, "the file ends after 0 of 8 B");
  expect(judge_content(std::nullopt, kNow, std::nullopt), Seen::old, "there is no such file");
  expect(judge_content(kBefore, std::nullopt, kBefore), Seen::old, "the file is still there");
}

TEST(JudgeContent, what_never_was_is_wrong_and_the_words_say_what_stands_there) {
  expect(judge_content(bytes("abcdefgx"), kNow, kBefore), Seen::wrong,
         "1 of 8 B differ from B 7 on: bytes that were never written there");
  expect(judge_content(bytes("abcdEFGH"), kNow, kBefore), Seen::wrong,
         "4 of 8 B differ from B 4 on: what was there before");
  expect(judge_content(Content(8), kNow, kBefore), Seen::wrong, "8 of 8 B differ from B 0 on: zeros");
  expect(judge_content(std::nullopt, kNow, kBefore), Seen::wrong, "there is no such file, and there always was one");
  expect(judge_content(kNow, std::nullopt, kBefore), Seen::wrong,
         "there is a file of other content than the one that was removed");
  EXPECT_EQ(judge_content(bytes("abcdefghi"), kNow, kBefore).seen, Seen::wrong);
}

TEST(JudgeRecords, each_must_be_there_once_in_any_order) {
  const std::vector<Content> records = {bytes("aaaa"), bytes("bbbb"), bytes("cccc")};
  expect(judge_records(bytes("ccccaaaabbbb"), records), Seen::right, "");
  expect(judge_records(bytes("bbbb"), records), Seen::old, "2 of 3 appended records are missing");
  expect(judge_records(bytes("aaaaaaaabbbb"), records), Seen::wrong, "the record at B 4 is there twice");
  expect(judge_records(bytes("aaaaabbbcccc"), records), Seen::wrong, "at B 4 is none of the records");
  expect(judge_records(bytes("aaaab"), records), Seen::wrong, "5 B are no whole number of records of 4 B");
}

CaseTally after(std::vector<Look> looks) {
  CaseTally tally;
  std::size_t next = 0;
  check_until_right(
      tally, [&] { return looks.at(std::min(next++, looks.size() - 1)); }, {0.05}, "a to b");
  return tally;
}

TEST(CheckUntilRight, a_check_counts_in_one_class_at_most) {
  const Look right, old{Seen::old, "old"}, wrong{Seen::wrong, "wrong"};
  const auto counts = [](const CaseTally& tally) {
    return std::vector<std::uint64_t>{tally.checks, tally.stale, tally.wrong, tally.lies, tally.failures};
  };
  EXPECT_EQ(counts(after({right})), (std::vector<std::uint64_t>{1, 0, 0, 0, 0}));
  EXPECT_EQ(counts(after({old, right})), (std::vector<std::uint64_t>{1, 1, 0, 0, 0}));
  EXPECT_EQ(counts(after({wrong, right})), (std::vector<std::uint64_t>{1, 0, 1, 0, 0}));
  EXPECT_EQ(counts(after({old, wrong, right})), (std::vector<std::uint64_t>{1, 0, 1, 0, 0}));
  EXPECT_EQ(counts(after({old})), (std::vector<std::uint64_t>{1, 0, 0, 1, 0}));
  EXPECT_GT(after({old, right}).visible_after_s, 0);
  const auto named = [](const std::string& text) { return std::vector<std::string>{"a to b: " + text}; };
  EXPECT_EQ(after({old}).named, named("reported as done, but after 0.05 s old"));
  EXPECT_EQ(after({wrong}).named, named("wrong: wrong"));
}

TEST(CaseTally, the_first_fault_of_each_class_is_named) {
  CaseTally tally;
  tally.fault(&CaseTally::stale, "stale");
  tally.fault(&CaseTally::lies, "no lie", 0);
  tally.fault(&CaseTally::failures, "refused");
  tally.fault(&CaseTally::stale, "stale again");
  tally.fault(&CaseTally::lies, "lies", 2);
  EXPECT_EQ(tally.named, (std::vector<std::string>{"stale", "refused", "lies"}));
  EXPECT_EQ(tally.stale, 2U);
  EXPECT_EQ(tally.lies, 2U);
  EXPECT_EQ(tally.failures, 1U);
}

}  // namespace
}  // namespace assay::cluster_storage
