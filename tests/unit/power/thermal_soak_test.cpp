// thermal_soak as a process on made-up machines, one of which is a first-order plant that the test plays.
#include <atomic>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <string>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/unit/fake_nvml.h"
#include "tests/unit/fake_tree.h"
#include "tests/unit/paths.h"
#include "tests/unit/probe_process.h"

namespace assay::power {
namespace {

const char* const kTemperature = "sys/class/hwmon/hwmon3/temp1_input";
const Subject kPackage{"cpu", "package-0"};

void add_package(const FakeTree& tree, const std::string& millidegrees) {
  tree.file("sys/class/hwmon/hwmon3/name", "coretemp\n");
  tree.file("sys/class/hwmon/hwmon3/temp1_label", "Package id 0\n");
  tree.file(kTemperature, millidegrees + "\n");
  const std::string cpu = "sys/devices/system/cpu/cpu0/";
  tree.file(cpu + "topology/physical_package_id", "0\n");
  tree.file(cpu + "cpufreq/scaling_cur_freq", "2400000\n");
  tree.file(cpu + "cpufreq/base_frequency", "2000000\n");
  tree.file(cpu + "thermal_throttle/package_throttle_total_time_ms", "17\n");
}

std::vector<std::string> short_soak(const std::string& root, const std::string& library) {
  return {"--root", root, "--nvml-library", library, "--engine",   "none", "--window", "1s",
          "--hold", "1s", "--time-cap",     "10s",   "--interval", "50ms"};
}

double number(const Record& record, const char* name) {
  const auto value = value_of(record, name, {"node", std::get<std::string>(record.start.host.at("name"))});
  return value ? number_in(*value).value_or(-1) : -1;
}

/// Writes the temperature of a first-order plant every 5 ms, as a sensor does: a reader never sees half a number.
class PlayedPlant {
 public:
  static constexpr double kRise_k = 0.5, kTime_s = 0.2;

  explicit PlayedPlant(const FakeTree& tree) : tree_(tree), thread_([this] { live(); }) {}
  PlayedPlant(const PlayedPlant&) = delete;
  PlayedPlant& operator=(const PlayedPlant&) = delete;
  ~PlayedPlant() {
    over_ = true;
    thread_.join();
  }
  /// When its own slope falls to 0.1 K a minute, in s since 1970.
  [[nodiscard]] double steady_s() const { return begin_s_ + kTime_s * std::log(kRise_k / kTime_s / (0.1 / 60)); }

 private:
  static double now_s() {
    return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  }
  void live() {
    while (!over_) {
      const double kelvin = kRise_k * (1 - std::exp(-(now_s() - begin_s_) / kTime_s));
      tree_.file("next", fmt::format("{}\n", std::lround(40000 + 1000 * kelvin)));
      std::filesystem::rename(tree_.path("next"), tree_.path(kTemperature));
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }

  const FakeTree& tree_;
  double begin_s_ = now_s();
  std::atomic<bool> over_{false};
  std::thread thread_;
};

TEST(thermal_soak, a_throttled_gpu_is_named_after_the_mark_and_what_was_before_it_is_warm_up) {
  const FakeTree tree;
  add_package(tree, "61000");
  const FakeNvml gpus("thermal_throttle");
  const Record record = record_of(probe_file("thermal_soak"), short_soak(tree.path(), gpus.library()));
  ASSERT_EQ(record.end.status, Status::complete) << record.end.reason;
  const Subject node{"node", std::get<std::string>(record.start.host.at("name"))};
  EXPECT_EQ(value_of(record, "steady", node), Value{true});
  EXPECT_GE(samples_of(record, "time_to_steady", node).at(0), 1.0);
  EXPECT_GT(samples_of(record, "gpu_throttled_time", {"gpu", uuid_of(2)}).at(0), 0.2);  // 0.3 s in every second
  EXPECT_EQ(samples_of(record, "gpu_throttled_time", {"gpu", uuid_of(0)}), std::vector<double>{0});
  EXPECT_EQ(samples_of(record, "throttled_time", kPackage), std::vector<double>{0});
  EXPECT_EQ(samples_of(record, "gpu_temperature_spread", node).at(0), 87 - 41);
  EXPECT_EQ(samples_of(record, "clock_over_base", kPackage).at(0), 1.2);
  EXPECT_EQ(samples_of(record, "clock", {"gpu", uuid_of(2)}).at(0), 1.275e9);
  EXPECT_EQ(number(record, "gpus_watched"), 8);
  for (const auto& one : record.measurements) {
    if (one.metric == "temperature") {
      EXPECT_GE(one.warmup.size(), 15U) << one.subject.id;
    }
  }
}

TEST(thermal_soak, the_mark_is_not_before_that_of_a_first_order_plant) {
  const FakeTree tree;
  add_package(tree, "40000");
  const PlayedPlant plant(tree);
  const Record record = record_of(probe_file("thermal_soak"), short_soak(tree.path(), "/no-such-nvml"));
  ASSERT_EQ(record.end.status, Status::complete) << record.end.reason;
  const Subject node{"node", std::get<std::string>(record.start.host.at("name"))};
  ASSERT_EQ(value_of(record, "steady", node), Value{true});
  const double mark_s = number(record, "soak_begin_s") + samples_of(record, "time_to_steady", node).at(0);
  EXPECT_GE(mark_s, plant.steady_s());
  EXPECT_NEAR(samples_of(record, "temperature", kPackage).back(), 40.5, 0.01);
}

TEST(thermal_soak, a_gpu_that_warms_up_until_the_end_has_no_mark_and_counts_as_a_whole) {
  const FakeTree tree;
  add_package(tree, "61000");
  const FakeNvml gpus("healthy", R"({"gpus": {"5": {"temperature_c": {"start": 40, "rate": 4}}}})");
  const Record record = record_of(probe_file("thermal_soak"),
                                  {"--root", tree.path(), "--nvml-library", gpus.library(), "--engine", "none",
                                   "--window", "2s", "--hold", "1s", "--time-cap", "3s", "--interval", "50ms"});
  ASSERT_EQ(record.end.status, Status::complete) << record.end.reason;
  const Subject node{"node", std::get<std::string>(record.start.host.at("name"))};
  EXPECT_EQ(value_of(record, "steady", node), Value{false});
  EXPECT_TRUE(samples_of(record, "time_to_steady", node).empty());
  // A soak without a mark tells all the same, so that nobody takes a hot machine for one that does not count.
  EXPECT_EQ(samples_of(record, "gpu_throttled_time", {"gpu", uuid_of(5)}).size(), 1U);
  const auto why = value_of(record, "unsteady_because", node);
  ASSERT_TRUE(why);
  EXPECT_NE(std::get<std::string>(*why).find("temperature of " + uuid_of(5)), std::string::npos)
      << std::get<std::string>(*why);
}

TEST(thermal_soak, amd_packages_are_numbered_by_their_pci_functions) {
  const FakeTree tree;
  const auto add = [&](const std::string& device, const std::string& address, const std::string& millidegrees) {
    const std::string directory = "sys/class/hwmon/" + device + "/";
    tree.file(directory + "name", "k10temp\n");
    tree.file(directory + "temp1_label", "Tctl\n");
    tree.file(directory + "temp1_input", millidegrees + "\n");
    tree.link(directory + "device", "sys/devices/pci0000:00/" + address);
  };
  add("hwmon2", "0000:00:18.3", "50000");
  add("hwmon10", "0000:00:19.3", "60000");
  add("hwmon9", "0000:00:1a.3", "70000");  // neither the order of names nor of numbers
  const Record record = record_of(probe_file("thermal_soak"), short_soak(tree.path(), "/no-such-nvml"));
  ASSERT_EQ(record.end.status, Status::complete) << record.end.reason;
  for (const auto& [package, degrees] : {std::pair("package-0", 50.0), {"package-1", 60.0}, {"package-2", 70.0}})
    EXPECT_EQ(samples_of(record, "temperature", {"cpu", package}).at(0), degrees) << package;
}

TEST(thermal_soak, without_a_temperature_there_is_nothing_to_watch_with_any_default_either) {
  const FakeTree tree;
  const Record record =
      record_of(probe_file("thermal_soak"), {"--root", tree.path(), "--nvml-library", "/no-such-nvml"});
  EXPECT_EQ(record.end.status, Status::skip);
  EXPECT_TRUE(record.end.reason.starts_with("no temperature to watch: neither hwmon")) << record.end.reason;
}

TEST(thermal_soak, a_window_of_less_than_twenty_readings_is_refused) {
  const FakeTree tree;
  auto arguments = short_soak(tree.path(), "/no-such-nvml");
  arguments.back() = "51ms";
  const auto output = run_probe([&] {
    std::vector<std::string> all = {probe_file("thermal_soak")};
    all.insert(all.end(), arguments.begin(), arguments.end());
    return all;
  }());
  EXPECT_NE(output.exit_code, 0);
  EXPECT_EQ(output.out.find("measurement"), std::string::npos);
}

}  // namespace
}  // namespace assay::power
