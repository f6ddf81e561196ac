// A part that a run looked for on its node and did not find is missed in the first night; one that a night left out is
// not.
#include <gtest/gtest.h>

#include "orchestrator/drift/detector.h"
#include "orchestrator/files/digest.h"
#include "orchestrator/history/history.h"
#include "tests/unit/run_fixture.h"

namespace assay::history {
namespace {

using Names = std::vector<std::string>;

/// A history that grows by one run a night, and what the detector says of it.
class Nights {
 public:
  Nights() : history_(*History::open(path_, Access::create)) {}

  /// Adds a run in which each of these parts, "n1/gpu:0", is read by the probe of its kind, "gpu": named by its slot,
  /// or by "gpu:8@0" in slot 0; `asked` are the probes that ended on each node. Nodes are measured, unless `state` is
  /// another: then there is no figure, and a node without a serial number has that state with all of its units.
  void add(const Names& parts, const std::set<std::string>& asked = {"gpu", "drive"}, bool same_night = false,
           drift::VisitState state = drift::VisitState::measured) {
    if (!same_night) ++night_;
    Sweep sweep{.run_sha256 = files::sha256(std::to_string(++runs_)),
                .started = "2026-03-01T01:00:00.000Z",
                .night = drift::Date{std::chrono::days{20'000 + night_}},
                .verdict = "accepted",
                .label = "test"};
    for (const std::string& part : parts) {
      const std::string node = part.substr(0, 2), id = part.substr(3), kind = id.substr(0, id.find(':'));
      const bool replaced = id.find('@') != std::string::npos;
      sweep.visits.push_back({.unit = {.id = id.substr(0, id.find('@')),
                                       .kind = kind,
                                       .serial = kind != "node",
                                       .node = node,
                                       .slot = replaced ? id.substr(id.find('@') + 1) : id.substr(id.find(':') + 1)},
                              .cohort = kind,
                              .state = state});
      const Figure figure{.metric = {.name = kind + ".rate", .probe = kind, .revision = 1, .unit = "1/s"}, .value = 1};
      if (state == drift::VisitState::measured) sweep.visits.back().figures = {figure};
      for (const auto& probe : asked) sweep.asked[node][probe];
      if (asked.contains(kind)) sweep.asked[node][kind].insert(sweep.visits.back().unit.id);
    }
    const auto added = history_.add(sweep);
    if (!added) throw std::runtime_error(added.error().error.text());
  }

  void add_event(const std::string& scope, drift::EventKind kind) {
    (void)history_.add_event({.night = drift::Date{std::chrono::days{20'000 + night_ + 1}},
                              .time = "2024-10-05T00:00:00.000Z",
                              .scope = scope,
                              .kind = kind});
  }

  [[nodiscard]] drift::DriftReport report() const {
    const drift::Fleet fleet = *history_.fleet();
    drift::Detector detector(fleet, {});
    (void)history_.nights(kFirstNight, kLastNight, [&](const drift::Night& night) { detector.add(night); });
    return detector.report();
  }

  [[nodiscard]] Names missing() const {
    Names units;
    for (const auto& one : report().coverage.overdue) units.push_back(one.unit + " " + one.last_state);
    return units;
  }

  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  fixture::TemporaryFolder folder_;
  std::string path_ = folder_.path() + "/h.db";
  History history_;
  int night_ = 0, runs_ = 0;
};

const Names kAll = {"n1/node:1", "n1/gpu:0", "n1/gpu:1", "n1/drive:4",
                    "n2/node:2", "n2/gpu:2", "n2/gpu:3", "n2/drive:5"};

TEST(MissingPart, a_gpu_that_is_in_no_record_beside_its_neighbour_is_overdue_at_once_and_until_it_is_measured) {
  Nights nights;
  nights.add(kAll);
  EXPECT_EQ(exit_code(nights.report()), 0);
  nights.add({"n1/node:1", "n1/gpu:0", "n1/drive:4"});
  EXPECT_EQ(nights.missing(), Names{"gpu:1 missing"});
  EXPECT_EQ(exit_code(nights.report()), 3);
  EXPECT_NE(summary_text(nights.report()).find("gpu:1 on n1: 1 night, missing"), std::string::npos);
  nights.add({"n1/node:1", "n1/drive:4"}, {"drive"});
  EXPECT_EQ(nights.missing(), Names{"gpu:1 missing"});
  nights.add(kAll);
  EXPECT_EQ(nights.missing(), Names{});
}

TEST(MissingPart, all_gpus_of_a_node_are_missed_where_it_is_measured_alone) {
  Nights nights;
  nights.add(kAll);
  nights.add({"n1/node:1", "n1/drive:4"});
  EXPECT_EQ(nights.missing(), (Names{"gpu:0 missing", "gpu:1 missing"}));
}

TEST(MissingPart, a_gpu_is_missed_where_its_node_is_not_measured_because_of_it) {
  Nights nights;
  nights.add(kAll);
  for (int night = 1; night <= 2; ++night) {
    nights.add({"n1/node:1", "n1/gpu:0", "n1/drive:4"}, {"gpu", "drive"}, false, drift::VisitState::not_measured);
    EXPECT_EQ(nights.missing(), Names{"gpu:1 missing"}) << night;
  }
}

TEST(MissingPart, figures_that_a_night_leaves_out_broken_probes_and_nodes_that_are_not_due_are_not_missed) {
  Nights nights;
  nights.add(kAll);
  nights.add({"n1/node:1", "n1/drive:4", "n2/gpu:2", "n2/gpu:3"}, {});
  nights.add({"n2/node:2", "n2/gpu:2", "n2/gpu:3", "n2/drive:5"});
  EXPECT_EQ(nights.missing(), Names{});
}

TEST(MissingPart, a_drive_is_not_missed_where_each_run_reads_that_of_one_directory) {
  Nights nights;
  nights.add({"n1/node:1", "n1/drive:4"});
  nights.add({"n1/node:1", "n1/drive:5"});
  nights.add({"n1/node:1", "n1/drive:4"});
  EXPECT_EQ(nights.missing(), Names{});
}

TEST(MissingPart, a_part_that_a_later_run_of_the_night_measures_is_not_missed) {
  Nights nights;
  nights.add(kAll);
  nights.add({"n1/node:1", "n1/gpu:0", "n1/drive:4"});
  nights.add({"n1/gpu:1"}, {"gpu"}, true);
  EXPECT_EQ(nights.missing(), Names{});
}

TEST(MissingPart, a_part_with_another_in_its_place_or_retired_is_not_missed) {
  Nights nights;
  nights.add(kAll);
  nights.add_event("gpu:3", drift::EventKind::retired);
  nights.add({"n1/node:1", "n1/gpu:0", "n1/gpu:8@1", "n1/drive:4", "n2/node:2", "n2/gpu:2", "n2/drive:5"});
  EXPECT_EQ(nights.missing(), Names{});
  nights.add({"n1/node:1", "n1/gpu:0", "n1/gpu:8@1", "n1/drive:4", "n2/node:2", "n2/gpu:2", "n2/drive:5"});
  EXPECT_EQ(nights.missing(), Names{});
}

TEST(MissingPart, a_pair_of_gpus_is_no_part_and_ends_with_them) {
  Nights nights;
  nights.add({"n1/pair:0>1", "n1/pair:1>0", "n1/gpu:0"}, {"gpu", "pair"});
  nights.add({"n1/pair:0>1", "n1/gpu:0"}, {"gpu", "pair"});
  EXPECT_EQ(nights.missing(), Names{});
}

TEST(MissingPart, is_the_same_in_a_database_that_is_made_again) {
  Nights nights;
  nights.add(kAll);
  nights.add({"n1/node:1", "n1/gpu:0", "n1/drive:4"});
  ASSERT_TRUE(remake(nights.path()).has_value());
  const auto history = History::open(nights.path(), Access::read);
  std::size_t found = 0;
  (void)history->nights(kFirstNight, kLastNight, [&](const drift::Night& night) {
    found +=
        static_cast<std::size_t>(std::ranges::count(night.visits, drift::VisitState::missing, &drift::Visit::state));
  });
  EXPECT_EQ(found, 1U);
}

TEST(MissingPart, a_history_without_a_figure_is_not_called_healthy) {
  const drift::Fleet fleet;
  const drift::Detector detector(fleet, {});
  EXPECT_EQ(exit_code(detector.report()), 3);
  EXPECT_NE(summary_text(detector.report()).find("nothing was judged"), std::string::npos);
}

}  // namespace
}  // namespace assay::history
