// RAPL: which zones are measured, how a counter becomes power, and the sampler on a made-up machine.
#include <atomic>
#include <filesystem>
#include <thread>

#include <gtest/gtest.h>

#include "probes/core/probe.h"
#include "probes/power/energy_series.h"
#include "probes/power/meter.h"
#include "probes/power/rapl.h"
#include "tests/unit/fake_tree.h"
#include "tests/unit/paths.h"
#include "tests/unit/probe_process.h"

namespace assay::power {
namespace {

void add_zone(const FakeTree& tree, const std::string& zone, const std::string& name,
              const std::string& energy_uj = "1000") {
  tree.file(zone + "/name", name + "\n");
  tree.file(zone + "/energy_uj", energy_uj + "\n");
  tree.file(zone + "/max_energy_range_uj", "262143328850\n");
}

/// Two packages, the first with core and dram inside, a platform zone over both, and the mmio view of a package.
void add_two_packages(const FakeTree& tree) {
  tree.file("intel-rapl/enabled", "1\n");
  add_zone(tree, "intel-rapl:0", "package-0");
  add_zone(tree, "intel-rapl:0:0", "core");
  add_zone(tree, "intel-rapl:0:1", "dram");
  add_zone(tree, "intel-rapl:1", "package-1");
  add_zone(tree, "intel-rapl:2", "psys");
  add_zone(tree, "intel-rapl-mmio:0", "package-0");
}

std::string skip_of(const FakeTree& tree) {
  try {
    (void)find_rapl_zones(tree.path());  // only the reason matters
  } catch (const Skip& skip) {
    return skip.what();
  }
  return "no skip";
}

}  // namespace

TEST(energy_series, the_sampler_counts_one_wrap_at_the_range_of_the_zone) {
  EXPECT_EQ(energy_between_uj(262'143'328'000, 150, 262'143'328'850), 1000U);
  EXPECT_EQ(energy_between_uj(0, 262'143'328'850, 262'143'328'850), 262'143'328'850U);
}

TEST(energy_series, power_is_energy_over_the_true_time_of_each_interval) {
  EnergySeries series;
  series.add(50'000'000, 0.5);
  series.add(60'000'000, 0.75);
  series.close(1'000'000, 0.125);
  EXPECT_EQ(series.power_w(), (std::vector<double>{100, 80}));
  EXPECT_DOUBLE_EQ(series.energy_j(), 111);
  EXPECT_DOUBLE_EQ(series.time_s(), 1.375);
}

TEST(energy_series, a_window_shorter_than_an_interval_is_one_sample) {
  EnergySeries series;
  series.close(30'000'000, 0.25);
  EXPECT_EQ(series.power_w(), std::vector<double>{120});
}

TEST(energy_series, at_the_bound_neighbours_are_joined_and_no_energy_is_lost) {
  EnergySeries series(4);
  for (const std::uint64_t energy_uj : {10'000'000U, 30'000'000U, 50'000'000U, 70'000'000U, 5'000'000U, 15'000'000U}) {
    series.add(energy_uj, 1);
  }
  EXPECT_EQ(series.intervals_per_sample(), 2);
  EXPECT_EQ(series.power_w(), (std::vector<double>{20, 60, 10}));
  EXPECT_DOUBLE_EQ(series.energy_j(), 180);
}

TEST(power_meter, a_counter_that_never_wraps_and_goes_back_is_read_no_more) {
  std::uint64_t counter_uj = 5'000'000;
  EnergyMeter meter({.name = "gpu", .read_uj = [&] { return std::optional(counter_uj); }});
  counter_uj = 9'000'000;
  meter.read(true);
  counter_uj = 1'000;
  meter.read(true);
  counter_uj = 20'000'000;
  meter.read(false);
  EXPECT_TRUE(meter.broken());
  EXPECT_DOUBLE_EQ(meter.series().energy_j(), 4);
}

TEST(power_meter, a_reading_before_its_time_is_left_to_the_next) {
  std::uint64_t counter_uj = 0;
  EnergyMeter meter(
      {.name = "gpu", .shortest_s = 3600, .read_uj = [&] { return std::optional(counter_uj += 1'000'000); }});
  meter.read(true);
  meter.read(true);
  EXPECT_TRUE(meter.series().power_w().empty());
  meter.read(false);
  EXPECT_DOUBLE_EQ(meter.series().energy_j(), 1);
  EXPECT_EQ(meter.series().power_w().size(), 1U);
}

TEST(power_meter, readings_are_kept_as_they_are_and_joined_in_pairs_at_the_bound) {
  std::vector<std::optional<double>> answers = {700, 650.5, std::nullopt, 100, 200, 10, 20};
  std::size_t next = 0;
  GaugeMeter meter({.metric = "power_instant", .read_w = [&] { return answers[next++]; }}, 4);
  for (int i = 0; i < 3; ++i) meter.read();
  EXPECT_EQ(meter.power_w(), (std::vector<double>{700, 650.5}));
  for (int i = 0; i < 4; ++i) meter.read();
  EXPECT_EQ(meter.power_w(), (std::vector<double>{675.25, 150, 15}));
}

TEST(rapl, packages_and_dram_are_measured_and_nested_zones_are_not) {
  const FakeTree tree;
  add_two_packages(tree);
  const RaplZones zones = find_rapl_zones(tree.path());
  ASSERT_EQ(zones.measured.size(), 3U);
  EXPECT_EQ(zones.measured[0].package + "/" + zones.measured[0].domain, "package-0/package");
  EXPECT_EQ(zones.measured[1].package + "/" + zones.measured[1].domain, "package-0/dram");
  EXPECT_EQ(zones.measured[2].package + "/" + zones.measured[2].domain, "package-1/package");
  EXPECT_EQ(zones.measured[0].range_uj, 262'143'328'850U);
  EXPECT_EQ(zones.left_out, (std::vector<std::string>{"package-0/core", "psys"}));
}

TEST(rapl, a_die_of_an_amd_package_is_a_package_of_its_own) {
  const FakeTree tree;
  add_zone(tree, "intel-rapl:0", "package-0-die-0");
  add_zone(tree, "intel-rapl:0:0", "core");
  add_zone(tree, "intel-rapl:1", "package-0-die-1");
  const RaplZones zones = find_rapl_zones(tree.path());
  ASSERT_EQ(zones.measured.size(), 2U);
  EXPECT_EQ(zones.measured[1].package, "package-0-die-1");
}

TEST(rapl, a_machine_without_counters_is_a_skip_that_names_the_path) {
  const FakeTree tree;
  EXPECT_EQ(skip_of(tree),
            tree.path() + " has no intel-rapl:N zone named package-N; this machine shows no RAPL counters");
  try {
    (void)find_rapl_zones(tree.path("powercap"));  // only the reason matters
    FAIL() << "no skip";
  } catch (const Skip& skip) {
    EXPECT_EQ(skip.what(),
              tree.path("powercap") +
                  " cannot be read: No such file or directory; this machine or its hypervisor shows no RAPL counters");
  }
}

TEST(rapl, a_counter_that_cannot_be_read_is_a_skip_that_names_the_file) {
  const FakeTree tree;
  add_two_packages(tree);
  std::filesystem::remove(tree.path("intel-rapl:1/energy_uj"));
  EXPECT_EQ(skip_of(tree), tree.path("intel-rapl:1/energy_uj") + " cannot be read: No such file or directory");
  tree.file("intel-rapl:1/energy_uj", "-5\n");
  EXPECT_EQ(skip_of(tree), tree.path("intel-rapl:1/energy_uj") + " holds '-5', which is not a number of microjoules");
}

TEST(power_sampler, counters_that_stand_still_are_a_skip) {
  const FakeTree tree;
  add_two_packages(tree);
  const Record record =
      record_of(probe_file("power_sampler"),
                {"--powercap", tree.path(), "--nvml-library", "absent.so", "--duration", "50ms", "--interval", "10ms"});
  EXPECT_EQ(record.end.status, Status::skip);
  EXPECT_NE(record.end.reason.find("intel-rapl:0/energy_uj did not move"), std::string::npos) << record.end.reason;
  EXPECT_TRUE(record.measurements.empty());
}

TEST(power_sampler, an_interval_that_could_miss_a_wrap_is_refused) {
  const Record record = record_of(probe_file("power_sampler"), {"--interval", "2s", "--duration", "1s"});
  EXPECT_EQ(record.end.status, Status::error);
  EXPECT_EQ(record.end.reason, "interval: 2 s is not between 0.01 s and 1 s");
}

TEST(power_sampler, a_moving_counter_becomes_power_and_energy_of_its_package_only) {
  const FakeTree tree;
  add_two_packages(tree);
  std::atomic<std::uint64_t> written_uj = 1000;
  std::jthread counter([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) {  // a rename is atomic, so the sampler never reads half a number
      tree.file("next", std::to_string(written_uj += 1000) + "\n");
      std::filesystem::rename(tree.path("next"), tree.path("intel-rapl:0/energy_uj"));
    }
  });
  const Record record = record_of(
      probe_file("power_sampler"),
      {"--powercap", tree.path(), "--nvml-library", "absent.so", "--duration", "500ms", "--interval", "50ms"});
  counter.request_stop();
  counter.join();

  const Subject moving{"cpu", "package-0"};
  const Subject standing{"cpu", "package-1"};
  EXPECT_EQ(record.end.status, Status::complete) << record.end.reason;
  const auto energy = samples_of(record, "energy", moving);
  ASSERT_EQ(energy.size(), 1U);
  EXPECT_GT(energy[0], 0);
  EXPECT_LE(energy[0], static_cast<double>(written_uj) * 1e-6);
  EXPECT_FALSE(samples_of(record, "power", moving).empty());
  EXPECT_TRUE(samples_of(record, "power", standing).empty());
  EXPECT_TRUE(samples_of(record, "power_dram", moving).empty());
  EXPECT_EQ(record.notes, (std::vector<std::string>{"package-0/dram did not move and is not recorded",
                                                    "package-1/package did not move and is not recorded"}));
  const Subject node{"node", std::get<std::string>(record.start.host.at("name"))};
  EXPECT_EQ(value_of(record, "domains", node), Value{std::string("package-0/package")});
  EXPECT_EQ(value_of(record, "domains_left_out", node), Value{std::string("package-0/core psys")});
  EXPECT_EQ(value_of(record, "instrument", node), Value{std::string("rapl")});
}

}  // namespace assay::power
