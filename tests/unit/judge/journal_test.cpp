// The journal and evidence on disk: what is written, what is read back, and what is refused.
#include <filesystem>
#include <fstream>
#include <system_error>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "orchestrator/files/atomic_file.h"
#include "orchestrator/judge/evidence/journal.h"

namespace assay::judge {
namespace {

/// A directory of the test's own, gone with it.
struct Scratch {
  std::string path = testing::TempDir() + "assay-journal-test-" + std::to_string(::getpid());
  Scratch() { std::filesystem::create_directories(path); }
  ~Scratch() { std::filesystem::remove_all(path); }
};

/// What the reader says of a journal whose lines after the first are these, in order.
std::string journal_error(const std::vector<std::string>& lines) {
  std::string text =
      R"({"schema":"assay.journal/1","time":"2026-01-05T06:30:00.000Z","kind":"run_begin","run_id":"i","plan_sha256":"d"})"
      "\n";
  for (const auto& line : lines) text += R"({"time":"2026-01-05T06:30:00.000Z",)" + line + "}\n";
  const auto journal = read_journal(text, "j");
  return journal ? "accepted" : journal.error().what;
}

}  // namespace

TEST(journal, a_question_to_a_tpm_names_the_journal_up_to_it) {
  const Scratch scratch;
  const std::string path = scratch.path + "/journal.jsonl", secret(64, 'e');
  std::vector<std::string> heads;
  for (const char* step : {"s1", "s2"}) {  // the second writer goes on with the lines of the first
    JournalWriter writer(path);
    writer.write(heads.empty() ? JournalEntry::run_begin("id", "digest") : JournalEntry::run_resume());
    writer.write(JournalEntry::question_begin(step, 1, "n1", heads.empty() ? secret : ""));
    heads.push_back(writer.head());
    EXPECT_EQ(heads.back(), files::sha256(*read_file(path)));
  }
  const auto journal = read_journal(*read_file(path), path);
  ASSERT_TRUE(journal) << journal.error().text();
  EXPECT_EQ(journal->attempts.of("s1").at(0).asked, heads[0] + ":" + secret);
  EXPECT_EQ(journal->attempts.of("s2").at(0).asked, heads[1] + ":");
  EXPECT_NE(journal_error({R"("kind":"attempt_begin","step":"s","attempt":1,"node":"n","asked":"x")"})
                .find("'asked' of s is no SHA-256"),
            std::string::npos);
}

TEST(journal, what_is_written_is_read_back_and_a_torn_line_is_passed_over) {
  const Scratch scratch;
  const std::string path = scratch.path + "/journal.jsonl";
  {
    JournalWriter writer(path);
    writer.write(JournalEntry::run_begin("id", "digest"));
    writer.write(JournalEntry::node_up("n1", {{"name", "n1"}}));
    writer.write(JournalEntry::attempt_begin("s1", 1, "n1"));
    writer.write(JournalEntry::attempt_end({.step = "s1",
                                            .number = 1,
                                            .node = "n1",
                                            .outcome = AttemptOutcome::exited,
                                            .reason = "",
                                            .begin = "",
                                            .end = "",
                                            .evidence = {{.path = "p", .sha256 = "x", .bytes = 3}}}));
    writer.write(JournalEntry::attempt_begin("s2", 1, "n1"));
  }
  std::ofstream(path, std::ios::app) << R"({"time": "2026)";
  const auto journal = read_journal(*read_file(path), path);
  ASSERT_TRUE(journal) << journal.error().text();
  EXPECT_TRUE(journal->torn);
  EXPECT_EQ(journal->attempts.of("s1").at(0).evidence.at(0).bytes, 3U);
  EXPECT_EQ(journal->attempts.of("s2").at(0).outcome, AttemptOutcome::interrupted);
  EXPECT_FALSE(journal->finished);
  {
    JournalWriter writer(path);
    writer.write(JournalEntry::run_resume());
    writer.write(JournalEntry::run_end());
  }
  const auto resumed = read_journal(*read_file(path), path);
  ASSERT_TRUE(resumed) << resumed.error().text();
  EXPECT_FALSE(resumed->torn);
  EXPECT_EQ(resumed->resumed, 1);
  EXPECT_TRUE(resumed->finished);
}

TEST(journal, two_writers_on_one_run_are_refused) {
  const Scratch scratch;
  const JournalWriter first(scratch.path + "/journal.jsonl");
  EXPECT_THROW(JournalWriter(scratch.path + "/journal.jsonl"), JournalInUse);
}

TEST(journal, damage_in_the_middle_is_an_error_with_its_line) {
  const std::string begin =
      R"({"schema":"assay.journal/1","time":"2026-01-05T06:30:00.000Z","kind":"run_begin","run_id":"i","plan_sha256":"d"})"
      "\n";
  EXPECT_NE(read_journal(begin + "{]\n" + begin, "j").error().text().find("j: line 2"), std::string::npos);
  EXPECT_NE(read_journal(begin + R"({"time":"2026-01-05T06:30:00.000Z","kind":"party"})"
                                 "\n",
                         "j")
                .error()
                .text()
                .find("unknown kind 'party'"),
            std::string::npos);
  EXPECT_NE(read_journal("", "j").error().text().find("has no whole line"), std::string::npos);
}

TEST(journal, what_no_run_can_have_written_is_refused) {
  const auto begin = [](int number) {
    return fmt::format(R"("kind":"attempt_begin","step":"s","attempt":{},"node":"n")", number);
  };
  const auto end = [](int number, const std::string& path) {
    return fmt::format(
        R"("kind":"attempt_end","step":"s","attempt":{},"outcome":"exited","reason":"","evidence":[{{"path":"{}","sha256":"x","bytes":1}}])",
        number, path);
  };
  const std::string run_end = R"("kind":"run_end")";
  const std::string resume = R"("kind":"run_resume")";
  EXPECT_EQ(journal_error({begin(1), end(1, "a"), begin(2), resume, begin(3), end(3, "b"), run_end}), "accepted");
  EXPECT_NE(journal_error({begin(1), begin(2)}).find("while another runs"), std::string::npos);
  const auto watch = [](int number) {
    return fmt::format(R"("kind":"watch_begin","watch":{},"probe":"power_feed")", number);
  };
  const auto watched = [](int number, const std::string& path) {
    return fmt::format(
        R"("kind":"watch_end","watch":{},"outcome":"stopped","reason":"","evidence":[{{"path":"{}","sha256":"x","bytes":1}}])",
        number, path);
  };
  EXPECT_EQ(journal_error({watch(1), begin(1), watched(1, "w"), end(1, "a"), watch(2), resume, watch(3),
                           watched(3, "v"), run_end}),
            "accepted");
  EXPECT_NE(journal_error({watch(1), watch(2)}).find("begin to be read while they are"), std::string::npos);
  const std::string switches = R"("kind":"watch_begin","watch":2,"probe":"switch_counters")";
  EXPECT_EQ(journal_error({watch(1), switches, begin(1), watched(1, "w"), watched(2, "s"), end(1, "a"), run_end}),
            "accepted");
  EXPECT_NE(journal_error({watch(1), switches, watched(1, "w"), begin(1), end(1, "a"), run_end}).find("the run ends"),
            std::string::npos);
  EXPECT_NE(journal_error({watch(1), switches, watched(2, "s"), watched(2, "t")}).find("ends that never began"),
            std::string::npos);
  EXPECT_EQ(journal_error({watch(2)}), "watch 2 begins where 1 is due");
  EXPECT_NE(journal_error({watched(1, "w")}).find("a watch ends that never began"), std::string::npos);
  EXPECT_NE(journal_error({watch(1), begin(1), end(1, "w"), watched(1, "w")}).find("w is journalled twice"),
            std::string::npos);
  EXPECT_NE(journal_error({watch(1), run_end}).find("while an attempt runs or the meters are read"), std::string::npos);
  EXPECT_NE(journal_error({begin(2)}).find("attempt 2 of s begins where 1 is due"), std::string::npos);
  EXPECT_NE(journal_error({begin(1), end(1, "a"), begin(1)}).find("attempt 1 of s begins where 2 is due"),
            std::string::npos);
  EXPECT_NE(journal_error({begin(1), end(2, "a")}).find("ends that never began"), std::string::npos);
  EXPECT_NE(journal_error({begin(1), end(1, "a"), end(1, "b")}).find("ends that never began"), std::string::npos);
  EXPECT_NE(journal_error({begin(1), resume, end(1, "a")}).find("ends that never began"), std::string::npos);
  EXPECT_NE(journal_error({begin(1), end(1, "a"), begin(2), end(2, "a")}).find("a is journalled twice"),
            std::string::npos);
  std::string interrupted = end(1, "a");
  interrupted.replace(interrupted.find("exited"), 6, "interrupted");
  EXPECT_NE(journal_error({begin(1), interrupted}).find("which is never written"), std::string::npos);
  std::string pleased = end(1, "a");
  pleased.replace(pleased.find("exited"), 6, "pleased");
  EXPECT_NE(journal_error({begin(1), pleased}).find("unknown word \"pleased\"; known are: exited, crashed, "),
            std::string::npos)
      << journal_error({begin(1), pleased});
  EXPECT_NE(journal_error({begin(1), run_end}).find("ends while an attempt runs"), std::string::npos);
  EXPECT_NE(journal_error({run_end, begin(1)}).find("after run_end"), std::string::npos);
  EXPECT_NE(journal_error({R"("kind":"run_begin","run_id":"j","plan_sha256":"d")"}).find("a second run begins"),
            std::string::npos);
}

TEST(journal, a_second_writer_is_told_who_the_first_is) {
  const Scratch scratch;
  JournalWriter first(scratch.path + "/journal.jsonl");
  first.write(JournalEntry::run_begin("id", "digest", "process 4711 on head1"));
  try {
    const JournalWriter second(scratch.path + "/journal.jsonl");
    ADD_FAILURE() << "two writers on one journal";
  } catch (const JournalInUse& error) {
    EXPECT_STREQ(error.what(), "process 4711 on head1");
  }
}

TEST(journal, a_node_with_another_boot_than_before_was_rebooted) {
  const auto up = [](const char* boot) {
    return fmt::format(
        R"({{"time":"2026-01-05T06:30:00.000Z","kind":"node_up","node":"n1","facts":{{"name":"n1","boot_id":"{}"}}}})"
        "\n",
        boot);
  };
  const std::string begin =
      R"({"schema":"assay.journal/1","time":"2026-01-05T06:30:00.000Z","kind":"run_begin","run_id":"i","plan_sha256":"d"})"
      "\n";
  EXPECT_TRUE(read_journal(begin + up("a") + up("a"), "j")->node_events.empty());
  const auto rebooted = read_journal(begin + up("a") + up("b"), "j");
  ASSERT_EQ(rebooted->node_events.size(), 1U);
  EXPECT_EQ(rebooted->node_events[0].node, "n1");
  EXPECT_EQ(rebooted->node_events[0].reason, "it was rebooted in between: boot \"a\" before, \"b\" now");
}

TEST(journal, facts_of_a_wrong_type_are_refused) {
  const auto error = [](const std::string& facts) {
    return journal_error({R"("kind":"node_up","node":"n1","facts":)" + facts});
  };
  EXPECT_EQ(error(R"({"name":"n1"})"), "accepted");
  EXPECT_NE(error(R"({"name":7})").find("the facts of n1: name is not a text"), std::string::npos);
  EXPECT_NE(error(R"({"name":"n1","boot_id":7})").find("the facts of n1: boot_id is not a text"), std::string::npos);
  EXPECT_NE(error("null").find("the facts of n1 are not an object of scalars"), std::string::npos);
  EXPECT_NE(error("[7]").find("the facts of n1 are not an object of scalars"), std::string::npos);
}

TEST(journal, searches_begin_once_and_after_them_no_step_does) {
  const std::string step = R"("kind":"attempt_begin","step":"s","attempt":1,"node":"n")";
  const std::string test =
      R"("kind":"attempt_begin","step":"s.t001","attempt":1,"node":"n","nodes":["n","m"],"purpose":"screening")";
  const std::string localise = R"("kind":"localise_begin")";
  EXPECT_EQ(journal_error({localise, test}), "accepted");
  EXPECT_NE(journal_error({test}).find("before the searches do"), std::string::npos);
  EXPECT_NE(journal_error({localise, step}).find("a step begins after the searches did"), std::string::npos);
  EXPECT_NE(journal_error({localise, localise}).find("for the second time"), std::string::npos);
  EXPECT_NE(journal_error({step, localise}).find("while an attempt runs"), std::string::npos);
  EXPECT_NE(
      journal_error(
          {localise,
           R"("kind":"attempt_begin","step":"s.t001","attempt":1,"node":"n","nodes":["m","n"],"purpose":"screening")"})
          .find("has no nodes"),
      std::string::npos);
}

TEST(journal, steps_that_were_left_out_say_why_until_the_run_goes_on) {
  const Scratch scratch;
  const std::string path = scratch.path + "/journal.jsonl";
  JournalWriter writer(path);
  writer.write(JournalEntry::run_begin("id", "digest"));
  writer.write(JournalEntry::steps_left_out("the deadline", {"s1", "s2"}));
  EXPECT_EQ(read_journal(*read_file(path), path)->left_out,
            (std::map<std::string, std::string>{{"s1", "the deadline"}, {"s2", "the deadline"}}));
  writer.write(JournalEntry::run_resume());
  EXPECT_TRUE(read_journal(*read_file(path), path)->left_out.empty());
}

TEST(journal, a_wall_clock_that_jumps_is_on_record_and_one_that_runs_is_not) {
  static std::chrono::system_clock::time_point wall;
  static std::chrono::steady_clock::time_point steady;
  wall = std::chrono::system_clock::time_point(std::chrono::hours(500'000));
  steady = std::chrono::steady_clock::time_point(std::chrono::hours(5));
  const auto pass = [](std::chrono::seconds by_wall, std::chrono::seconds by_steady) {
    wall += by_wall;
    steady += by_steady;
  };
  const Scratch scratch;
  const std::string path = scratch.path + "/journal.jsonl";
  JournalWriter writer(path, {.wall = [] { return wall; }, .steady = [] { return steady; }});
  writer.write(JournalEntry::run_begin("id", "digest"));
  pass(std::chrono::seconds(3600), std::chrono::seconds(3600));
  writer.write(JournalEntry::node_down("n1", "away"));
  EXPECT_TRUE(read_journal(*read_file(path), path)->clock_jumps.empty());
  writer.write(JournalEntry::attempt_begin("s1", 1, "n1"));
  pass(std::chrono::seconds(-7190), std::chrono::seconds(10));
  writer.write(JournalEntry::node_down("n1", "away again"));
  const auto journal = read_journal(*read_file(path), path);
  ASSERT_TRUE(journal) << journal.error().text();
  ASSERT_EQ(journal->clock_jumps.size(), 1U);
  EXPECT_NEAR(journal->clock_jumps[0].by_s, -7200, 1e-6);
  EXPECT_EQ(journal->attempts[0].jumped_s, journal->clock_jumps[0].by_s);
  EXPECT_EQ(writer.jumped_s(), journal->clock_jumps[0].by_s);
  EXPECT_EQ(journal->node_events.size(), 2U);
}

TEST(durable, what_a_killed_process_left_half_written_is_cleared_and_nothing_else) {
  const Scratch scratch;
  files::write_new_durably(scratch.path + "/records/s/1/0.jsonl", "whole");
  std::ofstream(scratch.path + "/records/s/1/1.jsonl.tmp") << "ha";
  files::remove_partial_files(scratch.path + "/records");
  files::remove_partial_files(scratch.path + "/logs");
  EXPECT_FALSE(std::filesystem::exists(scratch.path + "/records/s/1/1.jsonl.tmp"));
  EXPECT_EQ(*read_file(scratch.path + "/records/s/1/0.jsonl"), "whole");
}

TEST(durable, evidence_that_is_there_is_never_replaced) {
  const Scratch scratch;
  const std::string path = scratch.path + "/records/s/1/0.jsonl";
  files::write_new_durably(path, "first");
  EXPECT_THROW(files::write_new_durably(path, "second"), std::system_error);
  EXPECT_EQ(*read_file(path), "first");
  files::write_durably(path, "third");
  EXPECT_EQ(*read_file(path), "third");
}

}  // namespace assay::judge
