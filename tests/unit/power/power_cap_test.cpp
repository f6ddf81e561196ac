// power_cap as a process on artificial RAPL zones: limits kept, limits over, and a limit that always goes back.
#include <chrono>
#include <csignal>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/fake_tree.h"
#include "tests/unit/paths.h"
#include "tests/unit/probe_process.h"

namespace assay::power {
namespace {

const Subject kCapped{"cpu", "package-0"};
const std::string kZoneFolder = "intel-rapl:0/";
const std::string kLimit = kZoneFolder + "constraint_0_power_limit_uw";

/// A package with a limit of 200 W; its counter does not move.
void add_zone(const FakeTree& tree) {
  tree.file(kZoneFolder + "name", "package-0\n");
  tree.file(kZoneFolder + "energy_uj", "5000000\n");
  tree.file(kZoneFolder + "max_energy_range_uj", "262143328850\n");
  tree.file(kZoneFolder + "constraint_0_name", "long_term\n");
  tree.file(kZoneFolder + "constraint_0_time_window_us", "999424\n");
  tree.file(kLimit, "200000000\n");
}

std::vector<std::string> arguments_of(const FakeTree& tree, std::vector<std::string> more = {}) {
  std::vector<std::string> all = {"--powercap", tree.path(),    "--nvml-library", "/no-such-nvml",
                                  "--device",   "/no-such-bmc", "--hold",         "1s",
                                  "--ramp",     "100ms",        "--threads",      "1"};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

std::string limit_of(const FakeTree& tree) {
  std::ifstream file(tree.path(kLimit));
  std::string text;
  std::getline(file, text);
  return text;
}

/// Waits until `is` holds, for five seconds.
bool comes_true(const std::function<bool()>& is) {
  for (int i = 0; i < 500; ++i) {
    if (is()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

TEST(power_cap, what_is_read_alone_changes_nothing_and_a_load_that_does_not_reach_the_limit_shows_nothing) {
  const FakeTree tree;
  add_zone(tree);
  const Record record = record_of(probe_file("power_cap"), arguments_of(tree));
  ASSERT_EQ(record.end.status, Status::complete) << record.end.reason;
  EXPECT_EQ(value_of(record, "cap_w", kCapped), Value{200.0});
  EXPECT_EQ(value_of(record, "cap_reached", kCapped), Value{false});
  EXPECT_EQ(samples_of(record, "cap_share", kCapped), std::vector<double>{0});
  EXPECT_EQ(limit_of(tree), "200000000");
}

TEST(power_cap, a_package_over_its_limit_is_over_it) {
  const FakeTree tree;
  add_zone(tree);
  std::jthread meter([&](const std::stop_token& stop) {  // 300 W by the clock, however late its turn comes
    const auto begin = std::chrono::steady_clock::now();
    while (!stop.stop_requested()) {
      const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - begin;
      tree.file("next", fmt::format("{:.0f}\n", 5'000'000 + 300 * time.count()));
      std::filesystem::rename(tree.path("next"), tree.path(kZoneFolder + "energy_uj"));
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  });
  const Record record = record_of(probe_file("power_cap"), arguments_of(tree));
  ASSERT_EQ(record.end.status, Status::complete) << record.end.reason;
  EXPECT_EQ(value_of(record, "cap_reached", kCapped), Value{true});
  for (const double share : samples_of(record, "cap_share", kCapped)) EXPECT_GT(share, 1.02);
}

TEST(power_cap, lowering_a_limit_needs_the_word_that_allows_it) {
  const FakeTree tree;
  add_zone(tree);
  const auto all = arguments_of(tree, {"--lower-to", "80"});
  std::vector<std::string> command = {probe_file("power_cap")};
  command.insert(command.end(), all.begin(), all.end());
  EXPECT_NE(run_probe(command).exit_code, 0);
  EXPECT_EQ(limit_of(tree), "200000000");
}

TEST(power_cap, a_lowered_limit_is_seen_lowered_and_is_back_at_the_end) {
  const FakeTree tree;
  add_zone(tree);
  bool seen = false;
  std::jthread look([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      seen = seen || limit_of(tree) == "160000000";
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  });
  const Record record =
      record_of(probe_file("power_cap"), arguments_of(tree, {"--lower-to", "80", "--allow-settings", "yes"}));
  look.request_stop();
  look.join();
  ASSERT_EQ(record.end.status, Status::complete) << record.end.reason;
  EXPECT_TRUE(seen);
  EXPECT_EQ(limit_of(tree), "200000000");
  EXPECT_EQ(samples_of(record, "cap_settling_time", kCapped), std::vector<double>{0});
}

TEST(power_cap, a_lowered_limit_is_back_after_kill_9_and_after_sigterm) {
  for (const int signal : {SIGKILL, SIGTERM}) {
    const FakeTree tree;
    add_zone(tree);
    auto all = arguments_of(tree, {"--lower-to", "80", "--allow-settings", "yes"});
    all.insert(all.begin(), probe_file("power_cap"));
    std::vector<char*> argv;
    for (auto& one : all) argv.push_back(one.data());
    argv.push_back(nullptr);
    pid_t probe = 0;
    ASSERT_EQ(posix_spawn(&probe, argv[0], nullptr, nullptr, argv.data(), environ), 0);
    EXPECT_TRUE(comes_true([&] { return limit_of(tree) == "160000000"; }));
    kill(probe, signal);
    int status = 0;
    waitpid(probe, &status, 0);
    EXPECT_TRUE(comes_true([&] { return limit_of(tree) == "200000000"; })) << signal;
  }
}

TEST(power_cap, a_machine_without_a_limit_is_a_skip_that_says_what_was_looked_for) {
  const FakeTree tree;
  const Record record = record_of(probe_file("power_cap"), {"--powercap", tree.path(), "--nvml-library",
                                                            "/no-such-nvml", "--device", "/no-such-bmc"});
  EXPECT_EQ(record.end.status, Status::skip);
  EXPECT_TRUE(record.end.reason.starts_with("no limit of power is in force: ")) << record.end.reason;
  EXPECT_NE(record.end.reason.find("/no-such-bmc"), std::string::npos);
}

}  // namespace
}  // namespace assay::power
