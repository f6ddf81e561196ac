// The database: everything or nothing, once, on a local disk, and the figures as they were given.
#include "orchestrator/history/history.h"

#include <filesystem>
#include <fstream>

#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "orchestrator/files/digest.h"
#include "probes/core/utc_time.h"

namespace assay::history {
namespace {

namespace fs = std::filesystem;

class HistoryTest : public testing::Test {
 protected:
  HistoryTest() : folder_(fs::temp_directory_path() / ("assay-history-" + std::to_string(::getpid()))) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    path_ = (folder_ / "h.db").string();
  }
  ~HistoryTest() override { fs::remove_all(folder_); }

  static Sweep sweep(int night, int units = 3, double value = 100) {
    Sweep one{.run_sha256 = files::sha256(std::to_string(night)),
              .started = "2026-03-01T01:00:00.000Z",
              .night = drift::Date{std::chrono::days{20'000 + night}},
              .verdict = "accepted",
              .label = "test",
              .raw = "{\"a\": 1}\n"};
    for (int i = 0; i < units; ++i)
      one.visits.push_back({.unit = {.id = "gpu:" + std::to_string(i),
                                     .kind = "gpu",
                                     .serial = true,
                                     .node = "n01",
                                     .slot = std::to_string(i)},
                            .cohort = "gpu",
                            .figures = {{.metric = {.name = "p.rate", .probe = "p", .revision = 1, .unit = "1/s"},
                                         .value = value + i}}});
    return one;
  }

  static std::size_t readings(const History& history) {
    std::size_t count = 0;
    const auto done = history.nights(drift::Date{}, drift::Date{std::chrono::days{90'000}},
                                     [&](const drift::Night& night) { count += night.readings.size(); });
    EXPECT_TRUE(done.has_value());
    return count;
  }

  fs::path folder_;
  std::string path_;
};

TEST_F(HistoryTest, figures_come_back_as_they_were_given) {
  auto history = History::open(path_, Access::create);
  ASSERT_TRUE(history.has_value()) << history.error().error.text();
  ASSERT_TRUE(history->add(sweep(1)).has_value());
  const auto fleet = history->fleet();
  ASSERT_TRUE(fleet.has_value());
  EXPECT_EQ(fleet->units.size(), 3U);
  EXPECT_EQ(fleet->series.size(), 3U);
  double sum = 0;
  (void)history->nights(drift::Date{}, drift::Date{std::chrono::days{90'000}}, [&](const drift::Night& night) {
    for (const auto& reading : night.readings) sum += reading.value;
  });
  EXPECT_EQ(sum, 303);
  EXPECT_TRUE(fs::exists(path_ + ".raw/" + sweep(1).run_sha256 + ".jsonl.zst"));
}

TEST_F(HistoryTest, the_same_run_added_twice_changes_nothing) {
  auto history = History::open(path_, Access::create);
  ASSERT_TRUE(history->add(sweep(1)).has_value());
  const auto again = history->add(sweep(1));
  ASSERT_TRUE(again.has_value());
  EXPECT_TRUE(again->already);
  EXPECT_EQ(readings(*history), 3U);
}

TEST_F(HistoryTest, a_writer_that_is_killed_leaves_all_or_nothing) {
  { ASSERT_TRUE(History::open(path_, Access::create)->add(sweep(1)).has_value()); }
  for (const int microseconds : {200, 1000, 3000, 8000, 20'000}) {
    const pid_t child = ::fork();
    if (child == 0) {
      auto history = History::open(path_, Access::write);
      if (history) (void)history->add(sweep(2 + microseconds, 2000));
      ::_exit(0);
    }
    ::usleep(static_cast<useconds_t>(microseconds));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    const auto history = History::open(path_, Access::write);
    ASSERT_TRUE(history.has_value()) << history.error().error.text();
    EXPECT_EQ(readings(*history) % 2000, 3U);
  }
}

TEST_F(HistoryTest, a_damaged_file_and_another_programs_database_are_evidence_errors) {
  std::ofstream(path_) << std::string(8192, 'x');
  const auto damaged = History::open(path_, Access::read);
  ASSERT_FALSE(damaged.has_value());
  EXPECT_EQ(damaged.error().exit_code, kDamaged);
}

TEST_F(HistoryTest, a_second_writer_is_told_so) {
  auto first = History::open(path_, Access::create);
  ASSERT_TRUE(first->add(sweep(1)).has_value());
  auto second = History::open(path_, Access::write);
  ASSERT_TRUE(second.has_value());
  ASSERT_TRUE(second->add(sweep(2)).has_value());
  ASSERT_TRUE(first->add(sweep(3)).has_value()) << "one after the other is no error";
  EXPECT_EQ(readings(*first), 9U);
}

TEST_F(HistoryTest, no_network_file_system_is_used) {
  for (const std::uint64_t magic : {0x6969ULL, 0x0bd00bd0ULL, 0xff534d42ULL, 0x47504653ULL})
    EXPECT_TRUE(unfit_file_system(magic).has_value());
  EXPECT_FALSE(unfit_file_system(0xef53).has_value());  // ext4
}

TEST_F(HistoryTest, simulated_and_imported_figures_stay_out) {
  auto history = History::open(path_, Access::create);
  for (const Origin origin : {Origin::simulated, Origin::imported}) {
    Sweep one = sweep(1);
    one.origin = origin;
    const auto added = history->add(one);
    ASSERT_FALSE(added.has_value());
    EXPECT_EQ(added.error().exit_code, kBadInput);
  }
  EXPECT_FALSE(History::open(path_, Access::create_simulation).has_value());
  const std::string other = (folder_ / "s.db").string();
  auto simulation = History::open(other, Access::create_simulation);
  ASSERT_TRUE(simulation.has_value());
  EXPECT_TRUE(simulation->simulated());
  EXPECT_TRUE(simulation->fleet()->simulated);
}

TEST_F(HistoryTest, a_node_that_was_not_measured_leaves_a_hole_for_each_of_its_units) {
  auto history = History::open(path_, Access::create);
  ASSERT_TRUE(history->add(sweep(1)).has_value());
  Sweep none = sweep(2, 0);
  none.visits.push_back(
      {.unit = {.id = "node:n01", .kind = "node", .node = "n01"}, .state = drift::VisitState::preempted});
  const auto added = history->add(none);
  ASSERT_TRUE(added.has_value());
  EXPECT_EQ(added->visits, 3U);
  EXPECT_EQ(added->new_units, 0U);
  const auto last = history->last_visits();
  ASSERT_EQ(last->size(), 3U);
  EXPECT_EQ(last->front().state, drift::VisitState::preempted);
  EXPECT_EQ(last->front().measured, sweep(1).night);
}

TEST_F(HistoryTest, a_new_revision_of_a_probe_is_an_event) {
  auto history = History::open(path_, Access::create);
  ASSERT_TRUE(history->add(sweep(1)).has_value());
  Sweep next = sweep(2);
  for (auto& visit : next.visits) visit.figures.front().metric.revision = 2;
  ASSERT_TRUE(history->add(next).has_value());
  const auto events = history->events();
  ASSERT_EQ(events->size(), 3U);
  EXPECT_EQ(events->front().kind, drift::EventKind::probe_revision);
}

TEST_F(HistoryTest, old_raw_records_go_and_figures_stay) {
  auto history = History::open(path_, Access::create);
  ASSERT_TRUE(history->add(sweep(1)).has_value());
  EXPECT_EQ(*history->prune(sweep(2).night), 1U);
  EXPECT_FALSE(fs::exists(path_ + ".raw/" + sweep(1).run_sha256 + ".jsonl.zst"));
  EXPECT_EQ(readings(*history), 3U);
}

TEST_F(HistoryTest, a_sweep_makes_later_saved_states_void) {
  auto history = History::open(path_, Access::create);
  ASSERT_TRUE(history->save("p", {.night = sweep(5).night, .bytes = "state"}).has_value());
  ASSERT_TRUE(history->saved("p")->has_value());
  ASSERT_TRUE(history->add(sweep(6)).has_value());
  EXPECT_TRUE(history->saved("p")->has_value());
  ASSERT_TRUE(history->add(sweep(4)).has_value());
  EXPECT_FALSE(history->saved("p")->has_value());
}

TEST(Night, is_the_evening_whatever_midnight_and_daylight_saving_do) {
  const auto at = [](const char* text, int offset) { return drift::date_text(night_of(*utc_time(text), offset)); };
  EXPECT_EQ(at("2026-03-28T22:30:00.000Z", 3600), "2026-03-28");  // 23:30 at home
  EXPECT_EQ(at("2026-03-29T00:30:00.000Z", 3600), "2026-03-28");  // 01:30, before the clock is put forward
  EXPECT_EQ(at("2026-03-29T03:30:00.000Z", 7200), "2026-03-28");  // 05:30, after it
  EXPECT_EQ(at("2026-03-29T10:30:00.000Z", 7200), "2026-03-29");  // half past twelve: the next night's
}

}  // namespace
}  // namespace assay::history
