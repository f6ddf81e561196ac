// Carrying drains out: the order of steps, and what a process that dies between any two of them leaves.
#include "orchestrator/drain/apply.h"

#include <filesystem>
#include <functional>

#include <gtest/gtest.h>

#include "tests/unit/drain/fleet.h"

namespace assay::drain {
namespace {

namespace fs = std::filesystem;
using Nodes = std::map<std::string, NodeNow>;

struct Killed {};

/// A scheduler in memory; `before` is called before each of its calls and may throw.
struct Scheduler final : Actor {
  std::expected<Nodes, InputError> read(const std::vector<std::string>& names) override {
    step();
    if (names.empty()) return nodes;
    Nodes some;
    for (const auto& name : names) {
      if (nodes.contains(name)) some[name] = nodes[name];
    }
    return some;
  }
  std::optional<InputError> drain(const std::string& node, const std::string& reason) override {
    step();
    if (refuses) return InputError{"scontrol", "ended with exit code 1", ""};
    ++updates[node];
    nodes[node] = {.drained = true, .reason = reason};
    step();
    return std::nullopt;
  }
  std::optional<InputError> release(const std::string& node, const std::string&) override {
    step();
    ++updates[node];
    nodes[node] = {};
    step();
    return std::nullopt;
  }
  void step() {
    if (steps_left-- == 0) throw Killed{};
  }

  Nodes nodes = {{"n01", {}}, {"n02", {}}};
  std::map<std::string, int> updates;
  int steps_left = -1;
  bool refuses = false;
};

class Apply : public ::testing::Test {
 protected:
  void TearDown() override { fs::remove(path_); }
  [[nodiscard]] static Decision decision(const std::string& node, Ruling ruling = Ruling::drain) {
    return {.node = node, .flag = "f", .ruling = ruling, .reason = "assay:m:f:20241004", .why = ""};
  }
  /// One call of the command: settle, then what is left to do of draining n01 and n02.
  void call(Scheduler& scheduler) const {
    auto books = Books::open(path_);
    ASSERT_TRUE(books) << books.error().text();
    ASSERT_FALSE(settle(*books, scheduler.read({}).value(), time_));
    Decisions decisions;
    for (const char* node : {"n01", "n02"}) {
      if (!books->account().drained().contains(node)) decisions.nodes.push_back(decision(node));
    }
    ASSERT_TRUE(apply(decisions, day(0), scheduler, *books, time_));
  }
  [[nodiscard]] Account account() const { return Books::open(path_)->account(); }

  std::string path_ = (fs::temp_directory_path() / ("assay-drain-" + std::to_string(::getpid()))).string();
  std::chrono::system_clock::time_point time_{std::chrono::days(20'000)};
};

}  // namespace

TEST_F(Apply, a_drain_is_written_down_before_and_after) {
  Scheduler scheduler;
  call(scheduler);
  EXPECT_EQ(scheduler.nodes["n01"].reason, "assay:m:f:20241004");
  EXPECT_EQ(account().drained().size(), 2U);
  EXPECT_EQ(account().drains_of(day(0), time_), 2);
}

TEST_F(Apply, a_process_that_dies_at_any_step_neither_loses_nor_doubles_a_drain) {
  constexpr int kMostSteps = 30;
  int died = 0;
  for (int step = 0; step < kMostSteps; ++step) {
    fs::remove(path_);
    Scheduler scheduler;
    scheduler.steps_left = step;
    try {
      call(scheduler);
    } catch (const Killed&) {
      ++died;
    }
    scheduler.steps_left = -1;
    call(scheduler);
    EXPECT_EQ(scheduler.updates, (std::map<std::string, int>{{"n01", 1}, {"n02", 1}})) << "after step " << step;
    EXPECT_EQ(account().drained().size(), 2U) << "after step " << step;
    EXPECT_EQ(account().drains_of(day(0), time_), 2) << "after step " << step;
    EXPECT_TRUE(account().open().empty());
  }
  EXPECT_GE(died, 9);
}

TEST_F(Apply, what_the_scheduler_does_not_show_is_not_done) {
  Scheduler scheduler;
  scheduler.refuses = true;
  auto books = Books::open(path_).value();
  const auto done = apply({.nodes = {decision("n01")}}, day(0), scheduler, books, time_);
  ASSERT_TRUE(done);
  ASSERT_EQ(done->failed.size(), 1U);
  EXPECT_NE(done->failed[0].why.find("ended with exit code 1"), std::string::npos);
  EXPECT_TRUE(books.account().drained().empty());
  EXPECT_EQ(books.account().drains_of(day(0), time_), 0);
}

TEST_F(Apply, a_node_drained_by_another_user_meanwhile_keeps_its_reason) {
  Scheduler scheduler;
  scheduler.nodes["n01"] = {.drained = true, .reason = "fan"};
  auto books = Books::open(path_).value();
  const auto done = apply({.nodes = {decision("n01")}}, day(0), scheduler, books, time_);
  EXPECT_EQ(done->failed.at(0).why, "another user drained it meanwhile: fan");
  EXPECT_EQ(scheduler.nodes["n01"].reason, "fan");
  EXPECT_TRUE(scheduler.updates.empty());
}

TEST_F(Apply, a_drain_that_another_user_ended_or_took_over_is_not_ours_any_more) {
  Scheduler scheduler;
  call(scheduler);
  scheduler.nodes["n01"] = {};
  scheduler.nodes["n02"].reason = "fan, and assay:m:f:20241004";
  auto books = Books::open(path_).value();
  ASSERT_FALSE(settle(books, scheduler.nodes, time_));
  EXPECT_TRUE(books.account().drained().empty());
  EXPECT_TRUE(books.account().is_lifted("n01", "f"));
}

TEST_F(Apply, a_release_is_refused_where_the_reason_is_not_ours_and_done_where_it_is) {
  Scheduler scheduler;
  call(scheduler);
  auto books = Books::open(path_).value();
  scheduler.nodes["n01"].reason = "fan";
  const auto done = apply({.nodes = {decision("n01", Ruling::release), decision("n02", Ruling::release)}}, day(1),
                          scheduler, books, time_);
  EXPECT_EQ(done->failed.at(0).why, "it does not carry our reason any more");
  EXPECT_EQ(done->done.at(0).node, "n02");
  EXPECT_FALSE(scheduler.nodes["n02"].drained);
}

TEST_F(Apply, two_processes_do_not_write_to_one_journal) {
  const auto books = Books::open(path_);
  EXPECT_EQ(Books::open(path_).error().what, "is in use by another process");
}

TEST(States, slurm_tells_drained_busy_and_down_nodes_as_lines) {
  const auto nodes = nodes_from_slurm(
      "NodeName=n01 Arch=x86_64 CPUTot=2 State=IDLE ThreadsPerCore=1 OS=Linux 6.1 #1 SMP\n"
      "NodeName=n02 State=MIXED+DRAIN Weight=1 Reason=fan [broken] badly [root@2026-01-05T01:00:00]\n"
      "NodeName=n03 State=DOWN*+DRAIN Reason=assay:m:f:20241004 [root@2026-01-05T01:00:00]\n",
      "scontrol");
  ASSERT_TRUE(nodes) << nodes.error().text();
  EXPECT_EQ(nodes->at("n01"), NodeNow{});
  EXPECT_EQ(nodes->at("n02"), (NodeNow{.drained = true, .busy = true, .reason = "fan [broken] badly"}));
  EXPECT_EQ(nodes->at("n03"), (NodeNow{.drained = true, .down = true, .reason = "assay:m:f:20241004"}));
}

/// A node of Slurm with `rest` behind its other fields: on one line, or as scontrol prints it without --oneliner.
std::string slurm_node(const std::string& rest, bool one_line = true) {
  std::string node =
      "NodeName=n03 Arch=x86_64 CPUTot=2\n   Gres=gpu:8(S:0-1)\n   OS=Linux 6.1 #1 SMP a=b\n   State=IDLE+DRAIN "
      "ThreadsPerCore=1\n   AllocTRES=\n   " +
      rest + "\n\n";
  if (!one_line) return node;
  for (auto at = node.find("\n   "); at != std::string::npos; at = node.find("\n   ")) node.replace(at, 4, " ");
  return node;
}

// A drain of ours that is not recognised is never put back; one of another user's that is taken for ours is.
TEST(States, slurms_reason_is_what_was_set_whatever_stands_around_it) {
  const std::string ours = "assay:m:f:20241004", by = " [root@2026-01-05T01:00:00]";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"Reason=" + ours + by, ours},
      {"Reason=" + ours, ours},
      {"Reason=" + ours + " [svc@corp.example@2026-01-05T01:00:00]", ours},
      {"Reason=" + ours + " [root@Unknown]", ours},
      {"Reason=" + ours + by + "\n   ReservationName=maint", ours},
      {"Reason=" + ours + by + "\n   Topology=default:s1", ours},
      {"Reason=" + ours + "\n   Topology=default:s1", ours},
      {"Reason=" + ours + by + "\n   Comment=rack 3 [hot] x=y Reason=no\n   Extra={\"a\": [1]}", ours},
      {"Reason=" + ours + by + "\n   InstanceId=i-1 InstanceType=p5", ours},
      {"Reason=" + ours + by + "\n   FieldOf2030=x", ours},
      {"Comment=two words State=DOWN\n   Reason=" + ours + by, ours},
      {"Reason=fan [rack=3] slow" + by + "\n   Topology=default:s1", "fan [rack=3] slow"},
      {"Reason=BIOS=1.2 [ops@mail] Comment" + by, "BIOS=1.2 [ops@mail] Comment"},
      {"Reason=" + ours + " and the fan" + by, ours + " and the fan"},
      {"Reason=" + ours + ";fan" + by + "\n   Comment=x", ours + ";fan"},
      {"Reason=" + ours + by + " and the fan [bob@2026-01-06T01:00:00]", ours + by + " and the fan"},
      {"Reason=" + ours + by + " Ticket=12 [bob@2026-01-06T01:00:00]", ours + by + " Ticket=12"},
      {"", ""},
  };
  for (const auto& [rest, reason] : cases) {
    for (const bool one_line : {true, false}) {
      const auto nodes = nodes_from_slurm(slurm_node(rest, one_line), "scontrol");
      ASSERT_TRUE(nodes) << nodes.error().text();
      EXPECT_EQ(nodes->at("n03"), (NodeNow{.drained = true, .reason = reason})) << rest << (one_line ? "" : " (lines)");
    }
  }
  // A second line of a reason stands behind the user and time of the first.
  for (const bool one_line : {true, false}) {
    const auto nodes = nodes_from_slurm(slurm_node("Reason=" + ours + by + "\n          and the fan", one_line), "s");
    EXPECT_NE(nodes->at("n03").reason, ours);
  }
}

TEST(States, a_reason_that_could_end_elsewhere_is_told_so_that_json_is_asked_for) {
  const auto sure = [](const std::string& rest) {
    bool known = false;
    (void)nodes_from_slurm(slurm_node(rest), "scontrol", &known);
    return known;
  };
  const std::string by = " [root@2026-01-05T01:00:00]";
  EXPECT_TRUE(sure("Reason=assay:m:f:20241004" + by + "\n   Topology=default:s1"));
  EXPECT_TRUE(sure(""));
  EXPECT_FALSE(sure("Reason=assay:m:f:20241004" + by + " Comment=fan" + by));
  EXPECT_FALSE(sure("Reason=fan"));
}

TEST(States, slurm_tells_the_same_in_both_forms_of_json) {
  const NodeNow drained{.drained = true, .busy = true, .reason = "fan"};
  const auto old_form = nodes_from_slurm(
      R"({"nodes": [{"name": "n01", "state": "allocated", "state_flags": ["DRAIN"], "reason": "fan"}]})", "j");
  const auto new_form =
      nodes_from_slurm(R"({"nodes": [{"name": "n01", "state": ["ALLOCATED", "DRAIN"], "reason": "fan"}]})", "j");
  ASSERT_TRUE(old_form && new_form);
  EXPECT_EQ(old_form->at("n01"), drained);
  EXPECT_EQ(new_form->at("n01"), drained);
}

TEST(States, kubernetes_tells_our_taint_from_a_cordon_of_others) {
  const auto nodes = nodes_from_kubernetes(R"({"items": [
    {"metadata": {"name": "n01"}, "spec": {}},
    {"metadata": {"name": "n02"}, "spec": {"unschedulable": true}},
    {"metadata": {"name": "n03", "annotations": {"assay.dev/reason": "assay:m:f:20241004"}}, "spec": {"taints": [{"key": "assay.dev/drift", "effect": "NoSchedule"}]}},
    {"metadata": {"name": "n04"}, "spec": {}, "status": {"conditions": [{"type": "DiskPressure", "status": "Unknown"}, {"type": "Ready", "status": "Unknown"}]}},
    {"metadata": {"name": "n05"}, "spec": {}, "status": {"conditions": [{"type": "DiskPressure", "status": "False"}, {"type": "Ready", "status": "True"}]}}]})",
                                           "k");
  ASSERT_TRUE(nodes) << nodes.error().text();
  EXPECT_EQ(nodes->at("n01"), NodeNow{});
  EXPECT_EQ(nodes->at("n02"), (NodeNow{.drained = true, .reason = "cordoned"}));
  EXPECT_EQ(nodes->at("n03"), (NodeNow{.drained = true, .reason = "assay:m:f:20241004"}));
  EXPECT_EQ(nodes->at("n04"), NodeNow{.down = true});
  EXPECT_EQ(nodes->at("n05"), NodeNow{});
}

TEST(States, what_is_no_list_of_nodes_is_refused_with_its_place) {
  EXPECT_EQ(nodes_from_slurm("slurm_load_node error\n", "scontrol").error().where, "scontrol: line 1");
  EXPECT_EQ(nodes_from_slurm("{\"nodes\": [3]}", "scontrol").error().where, "scontrol: nodes[0]");
  EXPECT_EQ(nodes_from_kubernetes("{}", "kubectl").error().where, "kubectl");
  EXPECT_NE(nodes_from_hook("{\"node\": \"n01\"}\n", "hook").error().where.find("line 1"), std::string::npos);
}

}  // namespace assay::drain
