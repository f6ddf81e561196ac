// The database: everything or nothing, once, on a local disk, and the figures as they were given.
#include "orchestrator/history/history.h"

#include <filesystem>
#include <fstream>

#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>
#include <sqlite3.h>

#include "orchestrator/drift/detector.h"
#include "orchestrator/files/digest.h"
#include "orchestrator/history/sqlite.h"
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

TEST_F(HistoryTest, a_list_of_sweeps_counts_visits_and_figures) {
  auto history = History::open(path_, Access::create);
  ASSERT_TRUE(history.has_value());
  ASSERT_TRUE(history->add(sweep(1, 3)).has_value());
  Sweep twice = sweep(2, 2);
  twice.visits[0].figures.push_back(twice.visits[0].figures[0]);  // the same figure again is the figure
  twice.visits[0].figures[1].value = 7;
  ASSERT_EQ(history->add(twice)->values, 2U);
  const auto listed = history->sweeps();
  ASSERT_EQ(listed->size(), 2U);
  EXPECT_EQ((std::pair{listed->at(0).visits, listed->at(0).values}), (std::pair<std::size_t, std::size_t>{3, 3}));
  EXPECT_EQ((std::pair{listed->at(1).visits, listed->at(1).values}), (std::pair<std::size_t, std::size_t>{2, 2}));
  EXPECT_EQ(readings(*history), 5U);
}

TEST_F(HistoryTest, figures_that_are_damaged_or_of_no_series_are_named_and_an_older_database_can_be_made_again) {
  ASSERT_TRUE(History::open(path_, Access::create)->add(sweep(1)).has_value());
  const auto refused = [&](const char* words) {
    Database(path_, true, false).run(words);
    const auto opened = History::open(path_, Access::read);
    if (!opened) return opened.error().error.what + ": " + opened.error().error.hint;
    const auto done = opened->nights(kFirstNight, kLastNight, [](const drift::Night&) {});
    return done ? std::string("accepted") : done.error().error.what;
  };
  EXPECT_EQ(refused("UPDATE visit SET packed=x'02' WHERE id=1"), "has figures of a visit that cannot be read");
  EXPECT_EQ(refused("UPDATE visit SET packed=x'10000000000000000000' WHERE id=1"),
            "has a figure of a series that there is not");
  EXPECT_EQ(refused("UPDATE visit SET unit=9 WHERE id=1"), "has a visit of a unit or cohort that there is not");
  EXPECT_NE(refused("PRAGMA user_version=1").find("rebuild --from-records"), std::string::npos);
  ASSERT_TRUE(remake(path_).has_value());
  EXPECT_EQ(readings(*History::open(path_, Access::read)), 3U);
}

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

/// A database of others, by the library alone: none of this room's defences is on.
void plant(const std::string& path, const char* words) {
  sqlite3* handle = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &handle), SQLITE_OK);
  EXPECT_EQ(sqlite3_exec(handle, words, nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(handle);
  sqlite3_close(handle);
}

TEST_F(HistoryTest, a_database_that_defines_anything_else_is_refused_and_named) {
  const auto lacks = std::string("lacks a part of a history: ");
  const auto defines = std::string("defines what is not part of a history: ");
  for (const auto& [words, what] : {
           std::pair{"CREATE TRIGGER t AFTER INSERT ON visit BEGIN DELETE FROM visit; END", defines + "trigger t"},
           {"CREATE VIEW v AS SELECT 1", defines + "view v"},
           {"ALTER TABLE unit RENAME TO hidden; CREATE VIEW unit AS WITH RECURSIVE e(i) AS (SELECT 1 UNION ALL SELECT "
            "i+1 FROM e) SELECT i AS id,'a' AS name,'' AS kind,1 AS serial,'' AS node,'' AS slot,'' AS leaf,'' AS rack "
            "FROM e",
            defines + "view unit"},
           {"DROP TABLE saved; CREATE VIEW saved AS SELECT '' AS policy_sha256,1 AS night,x'' AS bytes",
            defines + "view saved"},
           {"CREATE INDEX visit_state ON visit(state)", defines + "index visit_state"},
           {"CREATE TABLE more(id INTEGER)", defines + "table more"},
           {"ALTER TABLE event ADD COLUMN more TEXT", defines + "table event"},
           {"DROP INDEX visit_unit", lacks + "index visit_unit"},
       }) {
    fs::remove(path_);
    ASSERT_TRUE(History::open(path_, Access::create).has_value());
    plant(path_, words);
    for (const auto access : {Access::read, Access::write, Access::create}) {
      const auto opened = History::open(path_, access);
      ASSERT_FALSE(opened.has_value()) << words;
      EXPECT_EQ(opened.error().error.what, what);
      EXPECT_EQ(opened.error().exit_code, kDamaged);
    }
  }
}

TEST_F(HistoryTest, a_statement_that_does_not_end_is_ended) {
  const Database database(path_, true, true, Seconds{0.05});
  Statement endless(database, "WITH RECURSIVE e(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM e) SELECT count(*) FROM e");
  try {
    endless.step();
    FAIL() << "it has no end";
  } catch (const Broken& broken) {
    EXPECT_EQ(broken.failure.error.what, "does not answer in time");
    EXPECT_EQ(broken.failure.exit_code, kDamaged);
  }
}

TEST_F(HistoryTest, triggers_and_views_do_not_run) {
  plant(path_,
        "CREATE TABLE a(i); CREATE TABLE b(i); CREATE VIEW v AS SELECT 1; "
        "CREATE TRIGGER t AFTER INSERT ON a BEGIN INSERT INTO b VALUES(1); END");
  const Database database(path_, true, false);
  database.run("INSERT INTO a VALUES(1)");
  Statement count(database, "SELECT count(*) FROM b");
  count.step();
  EXPECT_EQ(count.whole(0), 0);
  EXPECT_THROW(Statement(database, "SELECT * FROM v"), Broken);
}

TEST_F(HistoryTest, a_node_is_known_by_every_name_that_it_had) {
  auto history = History::open(path_, Access::create);
  ASSERT_TRUE(history->add(sweep(1)).has_value());
  Sweep renamed = sweep(2);
  for (auto& visit : renamed.visits) visit.unit.node = "n02";
  ASSERT_TRUE(history->add(renamed).has_value());
  for (const auto& [name, known] : {std::pair{"n01", true}, {"n02", true}, {"gpu:0", true}, {"n03", false}})
    EXPECT_EQ(*history->knows(name), known) << name;
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

// Row g of the acceptance tests, its second half.
TEST_F(HistoryTest, a_damaged_database_is_made_again_from_what_was_added_to_it) {
  std::string before, csv;
  const auto look = [&] {
    const auto history = History::open(path_, Access::read);
    EXPECT_TRUE(history.has_value());
    const auto fleet = history->fleet();
    drift::Detector detector(*fleet, {});
    (void)history->nights(drift::Date{}, drift::Date{std::chrono::days{90'000}},
                          [&](const drift::Night& night) { detector.add(night); });
    std::string figures;
    (void)history->export_csv([&](std::string_view piece) { figures += piece; });
    const auto sweeps = history->sweeps();
    const auto events = history->events();
    for (const auto& one : *sweeps) figures += one.run_sha256 + one.raw_sha256 + one.started + one.label;
    for (const auto& one : *events) figures += one.scope + one.text + one.who + one.time;
    return std::pair(drift::report_text(detector.report()), figures);
  };
  {
    auto history = History::open(path_, Access::create);
    for (int night = 0; night < 20; ++night) {
      Sweep one = sweep(night, night < 15 ? 3 : 2, 100 + 0.1 * (night % 3) + 1e-13 * night);
      if (night == 16) one.visits[0].figures[0].metric.revision = 2;
      if (night == 17)
        one.visits.push_back(
            {.unit = {.id = "node:n01", .kind = "node", .node = "n01"}, .state = drift::VisitState::busy});
      ASSERT_TRUE(history->add(one).has_value());
    }
    ASSERT_TRUE(
        history->add_event({.night = sweep(18).night, .scope = "gpu:1", .kind = drift::EventKind::moved, .who = "Kim"})
            .has_value());
    ASSERT_TRUE(history->set_baseline(sweep(2), "Kim").has_value());
    ASSERT_TRUE(history->prune(sweep(5).night).has_value());
  }
  std::tie(before, csv) = look();
  std::ofstream(path_, std::ios::trunc) << std::string(20'000, 'x');
  EXPECT_EQ(History::open(path_, Access::read).error().exit_code, kDamaged);

  const auto made = remake(path_);
  ASSERT_TRUE(made.has_value()) << made.error().error.text();
  EXPECT_EQ(made->sweeps, 20U);
  EXPECT_EQ(made->events, 1U);
  EXPECT_EQ(made->baselines, 1U);
  EXPECT_EQ(look(), std::pair(before, csv));
  EXPECT_TRUE(fs::exists(path_ + ".old"));
  EXPECT_FALSE(remake(path_).has_value()) << "the database from before is never overwritten";
}

TEST_F(HistoryTest, a_damaged_file_beside_the_database_is_named_and_nothing_is_changed) {
  { ASSERT_TRUE(History::open(path_, Access::create)->add(sweep(1)).has_value()); }
  const auto whole = *read_file(path_);
  std::string entry;
  for (const auto& file : fs::directory_iterator(path_ + ".raw"))
    if (file.path().string().find("-sweep.zst") != std::string::npos) entry = file.path().string();
  auto bytes = *read_file(entry);
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  std::ofstream(entry, std::ios::trunc) << bytes;
  const auto made = remake(path_);
  ASSERT_FALSE(made.has_value());
  EXPECT_EQ(made.error().exit_code, kDamaged);
  EXPECT_EQ(made.error().error.where, entry);
  EXPECT_EQ(*read_file(path_), whole);
  fs::remove_all(path_ + ".raw");
  EXPECT_EQ(remake(path_).error().exit_code, kBadInput);
}

TEST_F(HistoryTest, a_database_that_another_process_writes_to_is_not_made_again) {
  auto history = History::open(path_, Access::create);
  ASSERT_TRUE(history->add(sweep(1)).has_value());
  const Database other(path_, true, false);
  const Transaction writing(other);
  const auto made = remake(path_);
  ASSERT_FALSE(made.has_value());
  EXPECT_EQ(made.error().exit_code, kBadInput);
}

TEST_F(HistoryTest, what_two_nodes_measured_in_a_run_of_their_own_is_of_the_unit_that_is_known_as_the_node) {
  auto history = History::open(path_, Access::create);
  Sweep own = sweep(1, 0);
  own.visits.push_back({.unit = {.id = "node:S1", .kind = "node", .serial = true, .node = "n01"}, .cohort = "node"});
  ASSERT_TRUE(history->add(own).has_value());
  Sweep pair = sweep(2, 0);
  pair.night = own.night;
  for (const auto& [node, partner] : {std::pair("n01", "n02"), std::pair("n02", "n01")})
    pair.visits.push_back({.unit = {.id = std::string("node:") + node, .kind = "node", .node = node},
                           .cohort = "pair of nodes",
                           .partner = partner,
                           .figures = {{.metric = {.name = "net.rate", .probe = "net", .unit = "B/s"}, .value = 5}}});
  ASSERT_TRUE(history->add(pair).has_value());
  const auto fleet = history->fleet();
  ASSERT_EQ(fleet->units.size(), 2U);
  EXPECT_EQ(fleet->units[0].id, "node:S1");
  EXPECT_EQ(fleet->series.size(), 2U);
  EXPECT_EQ(fleet->series[0].unit, 0U);
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
