// repeats: of the machines of the dossier, after the last seed and not in the future.
#include <algorithm>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "probes/core/utc_time.h"
#include "reports/spot_check/challenge.h"
#include "reports/spot_check/repeat.h"
#include "tests/unit/run_fixture.h"

namespace assay::spot_check {
namespace {

class Repeated : public testing::Test {
 protected:
  void SetUp() override {
    fixture::make_run(folder_.path() + "/run", fixture::Kind::inventory);
    dossier_ = dossier::open_run(folder_.path() + "/run", {}).value();
    repeat_ = dossier::open_run(folder_.path() + "/run", {}).value();
    const auto& content = dossier_.content;
    const auto cells = draw_cells(content.run.plan, content.verdict, challenge_.seed, challenge_.cells);
    repeat_.content.run.plan = drawn_plan(content.run.plan, cells, challenge_.seed).value();
    repeat_.content.run.journal.run_id = "another";
    challenge_.parties.resize(2);
    for (auto& party : challenge_.parties) party.commitment.issued_at = repeat_.content.run.journal.begin;
    for (auto& [node, facts] : dossier_.content.run.journal.node_facts) {
      facts["boot_id"] = "boot of " + node;
      repeat_.content.run.journal.node_facts.at(node)["boot_id"] = "boot of " + node;
    }
  }
  /// Empty if the repeats are taken.
  [[nodiscard]] std::string refused() const {
    const auto repeats = check_repeats(dossier_, repeat_, challenge_, {}, now_);
    return repeats ? "" : repeats.error().text();
  }
  nlohmann::json& facts() { return repeat_.content.run.journal.node_facts.at("n01"); }

  fixture::TemporaryFolder folder_;
  dossier::OpenedRun dossier_, repeat_;
  Challenge challenge_{.parties = {}, .cells = 2, .seed = std::string(64, 'a')};
  dossier::Moment now_ = utc_time("2026-02-01T00:00:00.000Z").value();
};

TEST_F(Repeated, those_of_the_same_machines_are_taken_and_a_new_boot_is_shown) {
  EXPECT_EQ(refused(), "");
  facts()["boot_id"] = "another";
  EXPECT_EQ(refused(), "");
  const auto repeats = check_repeats(dossier_, repeat_, challenge_, {}, now_).value();
  EXPECT_EQ(repeats.booted, std::vector<std::string>{"n01"});
  EXPECT_TRUE(repeats.unproven.empty());
  EXPECT_NE(repeats_table(repeats).find("booted since the dossier: n01\n"), std::string::npos);
}

TEST_F(Repeated, a_device_is_held_against_that_of_the_same_node) {
  for (auto* run : {&dossier_, &repeat_}) {
    for (auto& result : run->content.verdict.results) result.subject = {"nic", "eth1"};
  }
  challenge_.cells = 2;
  const auto repeats = check_repeats(dossier_, repeat_, challenge_, {}, now_).value();
  std::set<std::string> nodes;
  for (const auto& requirement : repeats.requirements) {
    for (const auto& cell : requirement.cells) {
      ASSERT_NE(cell.repeat, nullptr);
      EXPECT_EQ(cell.repeat->node, cell.dossier->node);
      EXPECT_NE(repeats_table(repeats).find("  " + cell.dossier->node + " nic eth1: "), std::string::npos)
          << repeats_table(repeats);
      nodes.insert(cell.dossier->node);
    }
  }
  EXPECT_GT(nodes.size(), 1U);
}

TEST_F(Repeated, those_of_another_machine_are_refused) {
  for (const char* name : {"name", "machine", "cpu_model", "sockets", "cores", "hypervisor"}) {
    const nlohmann::json before = facts();
    facts()[name] = "another";
    EXPECT_NE(refused().find(std::string("rule draw_machines: the ") + name + " of n01 is 'another'"),
              std::string::npos)
        << refused();
    facts() = before;
  }
  facts()["boot_id"] = "boot of n02";
  EXPECT_NE(refused().find("rule draw_machines: the boot of n01"), std::string::npos) << refused();
}

TEST_F(Repeated, another_serial_number_is_refused_and_a_missing_one_is_said) {
  ASSERT_TRUE(repeat_.serials.contains("n01"));
  repeat_.serials.at("n01") = {"SN-another"};
  EXPECT_NE(refused().find("the serial number of n01 is 'SN-another', in the dossier 'SN-n01'"), std::string::npos);
  repeat_.serials.erase("n01");
  EXPECT_EQ(check_repeats(dossier_, repeat_, challenge_, {}, now_).value().unproven, std::vector<std::string>{"n01"});
}

TEST_F(Repeated, those_from_before_the_last_seed_or_of_the_future_are_refused) {
  challenge_.parties.back().commitment.issued_at = "2026-01-05T09:00:00.000Z";
  EXPECT_NE(refused().find("rule draw_time: the repeats began"), std::string::npos) << refused();
  challenge_.parties.back().commitment.issued_at = repeat_.content.run.journal.begin;
  now_ = utc_time("2026-01-04T00:00:00.000Z").value();
  EXPECT_NE(refused().find("rule draw_time: the repeats began"), std::string::npos) << refused();
}

}  // namespace
}  // namespace assay::spot_check
