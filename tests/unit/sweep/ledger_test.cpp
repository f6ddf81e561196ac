// A long ledger is shortened, and decides as before.
#include "orchestrator/sweep/ledger.h"

#include <algorithm>
#include <filesystem>
#include <random>

#include <unistd.h>

#include <gtest/gtest.h>

#include "orchestrator/files/line_log.h"

namespace assay::sweep::ledger_test {
namespace {

namespace fs = std::filesystem;
using drift::VisitState;

constexpr int kNights = 200;

Night nth(int number) { return Night(std::chrono::days(20'000 + number)); }

std::string node(int number) { return "n" + std::to_string(10 + number); }

/// A sweep of 12 nodes a night, of which the last one is never measured and others now and then are not; each night
/// measures one of five requirements. Some sweeps are entered nights later than they were made.
Ledger made_up(unsigned seed) {
  std::mt19937 random(seed);
  Ledger ledger;
  for (int i = 0; i < kNights; ++i) {
    SweepEntry entry{.night = nth(i), .sweep = "s" + std::to_string(i), .requirements = {"r" + std::to_string(i % 5)}};
    for (int k = 0; k < 12; ++k) {
      const auto draw = random() % 8;
      const bool measured = k < 11 && draw > 1;
      entry.visits.push_back({.node = node(k),
                              .state = measured    ? VisitState::measured
                                       : draw == 0 ? VisitState::busy
                                                   : VisitState::not_measured,
                              .reason = measured ? "" : "a job"});
    }
    ledger.sweeps.push_back(std::move(entry));
    if (i > 7 && random() % 10 == 0) std::swap(ledger.sweeps.back(), *(ledger.sweeps.end() - 6));
  }
  return ledger;
}

site::Site site() {
  site::Site all{.name = "s"};
  for (int k = 0; k < 13; ++k) all.nodes.push_back({.name = node(k), .leaf = "l1"});
  return all;
}

/// What `ledger` decides in a night: last visit and misses of each node, and the age of each requirement.
std::string decided(const Ledger& ledger, Night tonight) {
  std::string text;
  for (const auto& one : due_nodes(site(), ledger, tonight, {}, {}))
    text += one.name + " " + (one.last_visit ? drift::date_text(*one.last_visit) : "never") + " " +
            std::to_string(one.missed) + "\n";
  std::vector<Candidate> candidates;
  for (int i = 0; i < 6; ++i) candidates.push_back({.requirements = {"r" + std::to_string(i)}});
  for (const auto& one : aged(std::move(candidates), ledger, tonight))
    text += one.requirements.front() + " " + std::to_string(one.nights_since) + "\n";
  return text;
}

std::size_t visits_in(const Ledger& ledger) {
  std::size_t count = 0;
  for (const auto& sweep : ledger.sweeps) count += sweep.visits.size();
  return count;
}

/// The file of a ledger, in a folder that goes after the test.
struct LedgerFile : ::testing::Test {
  fs::path folder = fs::temp_directory_path() / ("assay-ledger-" + std::to_string(::getpid()));
  std::string path = (folder / "visits.jsonl").string();
  void SetUp() override { fs::create_directories(folder); }
  void TearDown() override { fs::remove_all(folder); }

  void enter_all(const Ledger& ledger, std::size_t most_bytes) const {
    for (const auto& entry : ledger.sweeps) {
      const auto problem = enter(path, entry, most_bytes);
      ASSERT_FALSE(problem) << problem->text();
    }
  }
  [[nodiscard]] Ledger read() const { return read_ledger(files::read_lines(path).value(), path).value(); }
};

}  // namespace

TEST(ShortLedger, decides_in_every_night_from_thirty_before_the_newest_on_as_the_long_one_did) {
  for (const unsigned seed : {1U, 2U, 3U}) {
    const Ledger ledger = made_up(seed), rest = shortened(ledger);
    for (int tonight = kNights - 1 - 30; tonight < kNights + 100; ++tonight)
      ASSERT_EQ(decided(rest, nth(tonight)), decided(ledger, nth(tonight))) << seed << " " << tonight;
  }
}

TEST(ShortLedger, keeps_the_last_sixty_nights_whole_and_of_older_ones_what_decides) {
  const Ledger ledger = made_up(1), rest = shortened(ledger);
  EXPECT_LT(visits_in(rest), visits_in(ledger) / 2);
  std::size_t never = 0;
  for (const auto& sweep : ledger.sweeps) {
    if (sweep.night <= nth(kNights - 1 - kWholeNights)) continue;
    const auto kept = std::ranges::find(rest.sweeps, sweep.sweep, &SweepEntry::sweep);
    ASSERT_NE(kept, rest.sweeps.end());
    EXPECT_EQ(kept->visits, sweep.visits);
  }
  for (const auto& sweep : rest.sweeps) {
    EXPECT_FALSE(sweep.visits.empty());
    never += std::ranges::count(sweep.visits, node(11), &NodeVisit::node);
  }
  EXPECT_EQ(never, static_cast<std::size_t>(kNights));  // each night of it is a miss
}

TEST(ShortLedger, has_no_night_of_which_nothing_decides_any_more) {
  Ledger ledger = made_up(1);
  for (auto& sweep : ledger.sweeps) sweep.visits.pop_back();  // the node that is never measured
  EXPECT_LT(shortened(ledger).sweeps.size(), static_cast<std::size_t>(kWholeNights) + 30);
}

TEST(ShortLedger, is_not_shortened_further_and_one_of_few_nights_stays_as_it_is) {
  const Ledger rest = shortened(made_up(1));
  EXPECT_EQ(visits_in(shortened(rest)), visits_in(rest));
  Ledger young = made_up(2);
  young.sweeps.erase(young.sweeps.begin(), young.sweeps.end() - 40);
  EXPECT_EQ(visits_in(shortened(young)), visits_in(young));
  EXPECT_TRUE(shortened({}).sweeps.empty());
}

TEST(ShortLedger, loses_no_last_visit_to_a_sweep_of_a_wrong_clock) {
  Ledger ledger = made_up(1);
  ledger.sweeps.push_back({.night = nth(27'000), .sweep = "wrong", .visits = ledger.sweeps.back().visits});
  const Ledger rest = shortened(ledger);
  const auto here = site();
  const auto before = due_nodes(here, ledger, nth(kNights), {}, {}),
             after = due_nodes(here, rest, nth(kNights), {}, {});
  for (std::size_t k = 0; k < before.size(); ++k) {
    EXPECT_EQ(after[k].last_visit, before[k].last_visit) << before[k].name;
    EXPECT_EQ(after[k].missed, before[k].missed) << before[k].name;
  }
}

TEST_F(LedgerFile, beyond_its_size_is_made_anew_shortened_and_below_it_keeps_every_line) {
  const Ledger ledger = made_up(1);
  enter_all(ledger, kLongLedger);
  EXPECT_EQ(read().sweeps.size(), ledger.sweeps.size());
  fs::remove(path);
  enter_all(ledger, 4096);
  const Ledger rest = read();
  EXPECT_LT(visits_in(rest), visits_in(ledger) / 2);
  EXPECT_EQ(decided(rest, nth(kNights)), decided(ledger, nth(kNights)));
  ASSERT_FALSE(enter(path, ledger.sweeps.back(), 4096));
  EXPECT_EQ(visits_in(read()), visits_in(rest));  // that sweep is there
  EXPECT_EQ(std::distance(fs::directory_iterator(folder), fs::directory_iterator()), 1);
}

TEST_F(LedgerFile, that_is_made_anew_has_the_new_lines_and_a_part_of_a_killed_process_is_no_hindrance) {
  auto log = files::LineLog::open(path);
  ASSERT_TRUE(log);
  ASSERT_FALSE(log->append("old"));
  ASSERT_TRUE(files::LineLog::open(path + ".tmp"));  // as if it were left
  ASSERT_FALSE(log->replace({"a", "b"}));
  EXPECT_EQ(files::read_lines(path), (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(files::LineLog::open(path)) << "the former file is locked, and the new one is free";
}

TEST_F(LedgerFile, that_cannot_be_made_anew_has_its_lines_as_before) {
  auto log = files::LineLog::open(path);
  ASSERT_TRUE(log);
  ASSERT_FALSE(log->append("old"));
  fs::create_directories(path + ".tmp");
  const auto problem = log->replace({"a"});
  ASSERT_TRUE(problem);
  EXPECT_EQ(problem->what, "cannot be written: Is a directory");
  EXPECT_EQ(files::read_lines(path), std::vector<std::string>{"old"});
}

}  // namespace assay::sweep::ledger_test
