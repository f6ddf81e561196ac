// A serial number that several parts have, or that a guest shows, names no unit: places do.
#include <algorithm>
#include <sstream>

#include <gtest/gtest.h>

#include "orchestrator/files/digest.h"
#include "orchestrator/history/history.h"
#include "orchestrator/history/sweep_of_run.h"
#include "tests/unit/fixture.h"
#include "tests/unit/run_fixture.h"

namespace assay::history {
namespace {

using Names = std::vector<std::string>;

/// A drive with the serial number `serial` in the slot `slot` of `node`.
struct Shown {
  std::string node, slot, serial;
};

/// A history that grows by runs of drives.
class Drives {
 public:
  Drives() : history_(*History::open(path_, Access::create)) {}

  /// Adds a run in which each of these drives has the figure 1.
  void add(int night, const std::vector<Shown>& drives) {
    Sweep sweep = empty_sweep(night);
    for (const auto& [node, slot, serial] : drives) {
      sweep.visits.push_back(
          {.unit = {.id = "drive:" + serial, .kind = "drive", .serial = true, .node = node, .slot = slot},
           .cohort = "drive",
           .figures = {{.metric = {.name = "p.rate", .probe = "p", .revision = 1, .unit = "1/s"}, .value = 1}}});
      sweep.asked[node]["p"].insert("drive:" + serial);
    }
    add(sweep);
  }

  /// Adds a visit of a node in this state, with a serial number or without.
  void add_node(int night, const std::string& node, const std::string& serial, drift::VisitState state) {
    Sweep sweep = empty_sweep(night);
    sweep.visits.push_back({.unit = {.id = "node:" + (serial.empty() ? node : serial),
                                     .kind = "node",
                                     .serial = !serial.empty(),
                                     .node = node},
                            .cohort = "node",
                            .state = state});
    add(sweep);
  }

  /// The unit, node and state of each visit of a night, in the order of adding.
  [[nodiscard]] Names visits(int night) const { return visits_in(history_, night); }
  [[nodiscard]] std::size_t baseline(int night, const std::vector<Shown>& drives) {
    Sweep sweep = empty_sweep(night);
    for (const auto& [node, slot, serial] : drives)
      sweep.visits.push_back(
          {.unit = {.id = "drive:" + serial, .kind = "drive", .serial = true, .node = node, .slot = slot},
           .cohort = "drive",
           .figures = {{.metric = {.name = "p.rate", .probe = "p", .revision = 1, .unit = "1/s"}, .value = 1}}});
    return *history_.set_baseline(sweep, "me");
  }
  [[nodiscard]] const std::string& path() const { return path_; }

  static Names visits_in(const History& history, int night) {
    Names names;
    const auto units = history.fleet()->units;
    (void)history.nights(date(night), date(night), [&](const drift::Night& one) {
      for (const auto& visit : one.visits)
        names.push_back(units[visit.unit].id + " " + visit.node + " " + std::string(word_of(visit.state)));
    });
    return names;
  }

 private:
  static drift::Date date(int night) { return drift::Date{std::chrono::days{20'000 + night}}; }

  Sweep empty_sweep(int night) {
    return {.run_sha256 = files::sha256(std::to_string(++runs_)),
            .started = "2026-03-01T01:00:00.000Z",
            .night = date(night),
            .verdict = "accepted",
            .label = "test"};
  }

  void add(const Sweep& sweep) {
    const auto added = history_.add(sweep);
    if (!added) throw std::runtime_error(added.error().error.text());
  }

  fixture::TemporaryFolder folder_;
  std::string path_ = folder_.path() + "/h.db";
  History history_;
  int runs_ = 0;
};

const Shown kQemuDrive = {"n0", "sda", "QM00001"}, kQemuDriveOfAnother = {"n1", "sda", "QM00001"};

TEST(SharedSerial, drives_of_two_nodes_in_one_run_are_units_of_their_places) {
  Drives drives;
  drives.add(1, {kQemuDrive, kQemuDriveOfAnother, {"n2", "sda", "S6CLNE0T"}});
  EXPECT_EQ(drives.visits(1),
            (Names{"drive:n0/sda n0 measured", "drive:n1/sda n1 measured", "drive:S6CLNE0T n2 measured"}));
  drives.add(2, {kQemuDriveOfAnother});
  EXPECT_EQ(drives.visits(2), Names{"drive:n1/sda n1 measured"}) << "also where a later run is of one node";
}

TEST(SharedSerial, drives_in_two_slots_of_one_node_are_units_of_their_places) {
  Drives drives;
  drives.add(1, {kQemuDrive, {"n0", "sdb", "QM00001"}});
  EXPECT_EQ(drives.visits(1), (Names{"drive:n0/sda n0 measured", "drive:n0/sdb n0 measured"}));
  drives.add(2, {kQemuDrive});
  EXPECT_EQ(drives.visits(2), (Names{"drive:n0/sda n0 measured", "drive:n0/sdb n0 missing"}));
}

TEST(SharedSerial, a_drive_that_was_measured_on_another_node_in_the_same_night_is_the_unit_of_its_place_for_good) {
  Drives drives;
  drives.add(1, {kQemuDrive});
  drives.add(1, {kQemuDriveOfAnother});
  EXPECT_EQ(drives.visits(1), (Names{"drive:QM00001 n0 measured", "drive:n1/sda n1 measured"}));
  drives.add(2, {kQemuDriveOfAnother});
  drives.add(2, {kQemuDrive});
  EXPECT_EQ(drives.visits(2), (Names{"drive:n1/sda n1 measured", "drive:QM00001 n0 measured"}));
}

TEST(SharedSerial, a_drive_that_is_on_another_node_in_another_night_was_moved_and_keeps_its_unit) {
  Drives drives;
  drives.add(1, {kQemuDrive});
  drives.add(2, {kQemuDriveOfAnother});
  EXPECT_EQ(drives.visits(2), Names{"drive:QM00001 n1 measured"});
}

TEST(SharedSerial, a_baseline_is_of_the_units_by_their_places) {
  Drives drives;
  drives.add(1, {kQemuDrive, kQemuDriveOfAnother});
  EXPECT_EQ(drives.baseline(1, {kQemuDrive, kQemuDriveOfAnother}), 2U);
}

TEST(SharedSerial, names_are_the_same_in_a_database_that_is_made_again) {
  Drives drives;
  drives.add(1, {kQemuDrive, kQemuDriveOfAnother});
  drives.add(2, {kQemuDriveOfAnother});
  ASSERT_TRUE(remake(drives.path()).has_value());
  const auto history = History::open(drives.path(), Access::read);
  EXPECT_EQ(Drives::visits_in(*history, 1), (Names{"drive:n0/sda n0 measured", "drive:n1/sda n1 measured"}));
  EXPECT_EQ(Drives::visits_in(*history, 2), Names{"drive:n1/sda n1 measured"});
}

TEST(UnmeasuredNode, has_no_visit_of_the_unit_from_before_its_serial_number_was_known) {
  Drives drives;
  drives.add_node(1, "n0", "", drift::VisitState::busy);
  drives.add_node(2, "n0", "SN-n00", drift::VisitState::measured);
  drives.add_node(3, "n0", "", drift::VisitState::busy);
  EXPECT_EQ(drives.visits(1), Names{"node:n0 n0 busy"});
  EXPECT_EQ(drives.visits(3), Names{"node:SN-n00 n0 busy"});
}

/// The unit of `subject` in the sweep of a run of n1 that shows `serial` for it, on a machine with this hypervisor.
drift::Unit unit_of(const Subject& subject, const std::string& serial, const std::string& hypervisor) {
  const fixture::TemporaryFolder folder;
  fixture::MemoryRun run({R"({"scope": "drive", "limit": {"at_least": 100, "unit": "B/s"}})"}, 1, {{"drive", 1}});
  constexpr ConditionSpec kSerial[] = {if_reported("serial", "of a part"), if_reported("product_serial", "of a node")};
  ProbeSpec spec = fixture::kSpec;
  spec.conditions = kSerial;
  run.plan.probes.at("disk").description = *read_description(describe(spec).dump(), "disk");
  std::ostringstream out;
  Recorder recorder(out, spec,
                    {.probe = "disk",
                     .revision = 1,
                     .parameters = run.plan.steps.front().parameters,
                     .host = {{"name", std::string("n1")}, {"hypervisor", hypervisor}}});
  recorder.measurement("bandwidth", 110.0, subject);
  recorder.condition(subject.kind == "node" ? "product_serial" : "serial", serial, subject);
  recorder.end({.status = Status::complete, .reason = ""});
  run.attempt(0, "exited", out.str());
  const std::string text = plan::plan_text(run.plan);
  fixture::write(folder.path() + "/plan.json", text);
  for (const auto& [path, bytes] : run.files) fixture::write(folder.path() + "/" + path, bytes);
  {
    judge::JournalWriter journal(folder.path() + "/journal.jsonl");
    journal.write(judge::JournalEntry::run_begin("run", files::sha256(text)));
    journal.write(judge::JournalEntry::node_up("n1", {{"name", "n1"}}));
    journal.write(judge::JournalEntry::attempt_begin(run.plan.steps.front().id, 1, "n1"));
    journal.write(judge::JournalEntry::attempt_end(run.journal.attempts.back()));
    journal.write(judge::JournalEntry::run_end());
  }
  const auto sweep = sweep_of_run(folder.path(), {});
  if (!sweep) throw std::runtime_error(sweep.error().error.text());
  const auto found = std::ranges::find(sweep->visits, subject.kind, [](const UnitVisit& one) { return one.unit.kind; });
  return found == sweep->visits.end() ? drift::Unit{} : found->unit;
}

const Subject kDrive{"drive", "nvme0n1"};

TEST(SerialNumber, of_a_drive_of_a_real_machine_is_its_identity) {
  EXPECT_EQ(unit_of(kDrive, "S6CLNE0T", "none").id, "drive:S6CLNE0T");
  EXPECT_TRUE(unit_of(kDrive, "S6CLNE0T", "none").serial);
}

TEST(SerialNumber, of_a_guest_is_no_identity_and_that_of_a_part_which_may_be_passed_through_is) {
  EXPECT_EQ(unit_of({"node", "n1"}, "SN-4711-A", "none").id, "node:SN-4711-A");
  EXPECT_EQ(unit_of({"node", "n1"}, "SN-4711-A", "KVMKVMKVM").id, "node:n1");
  EXPECT_EQ(unit_of({"dimm", "A1"}, "8CE04A12", "KVMKVMKVM").id, "dimm:n1/A1");
  EXPECT_EQ(unit_of({"gpu", "GPU-8f2"}, "1320922001234", "KVMKVMKVM").id, "gpu:1320922001234");
  EXPECT_EQ(unit_of(kDrive, "S6CLNE0T", "KVMKVMKVM").id, "drive:S6CLNE0T");
}

TEST(SerialNumber, that_a_maker_left_blank_is_no_identity) {
  for (const char* blank : {"00000000", "0123456789", "Not Specified", "Default string"})
    EXPECT_EQ(unit_of(kDrive, blank, "none").id, "drive:n1/nvme0n1") << blank;
}

}  // namespace
}  // namespace assay::history
