// Pinned threads, calibration, and how work is shared out.
#include <chrono>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sched.h>

#include "probes/core/host_facts.h"
#include "probes/core/machine_tree.h"
#include "probes/host/pinned_threads.h"
#include "probes/host/timing.h"
#include "tests/unit/fake_tree.h"

namespace assay::host {

TEST(crew, every_thread_runs_once_on_the_cpu_it_was_given) {
  PinnedThreads crew(cpus_for(0));
  std::vector<int> seen(crew.size(), -1);
  const Seconds time = crew.run([&](std::size_t thread) { seen[thread] = sched_getcpu(); });
  EXPECT_EQ(seen, crew.cpus());
  EXPECT_GE(time.count, 0);
  EXPECT_TRUE(crew.pinned());
}

TEST(crew, what_a_thread_throws_arrives_and_the_crew_works_on) {
  PinnedThreads crew(cpus_for(0));
  EXPECT_THROW(crew.run([](std::size_t) { throw std::domain_error("on purpose"); }), std::domain_error);
  std::vector<int> ran(crew.size());
  crew.run([&](std::size_t thread) { ran[thread] = 1; });
  EXPECT_EQ(ran, std::vector<int>(crew.size(), 1));
}

TEST(crew, a_cpu_that_does_not_exist_is_named) {
  try {
    PinnedThreads crew({CPU_SETSIZE - 1});
    GTEST_SKIP() << "this machine has " << CPU_SETSIZE << " CPUs";
  } catch (const std::runtime_error& error) {
    EXPECT_NE(std::string(error.what()).find("CPU 1023"), std::string::npos) << error.what();
  }
}

TEST(crew, more_threads_than_cores_are_refused_with_the_number_there_is) {
  const auto cores = one_cpu_per_core().size();
  try {
    cpus_for(static_cast<std::int64_t>(cores) + 1);
    FAIL() << "too many threads were granted";
  } catch (const std::runtime_error& error) {
    EXPECT_NE(std::string(error.what()).find(std::to_string(cores) + " physical cores"), std::string::npos)
        << error.what();
  }
  EXPECT_THROW(cpus_for(-1), std::runtime_error);
}

TEST(crew, cores_of_one_core_id_are_each_given_a_thread) {
  cpu_set_t allowed;
  ASSERT_EQ(sched_getaffinity(0, sizeof allowed, &allowed), 0);
  const FakeTree fake;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    const std::string topology = fmt::format("sys/devices/system/cpu/cpu{}/topology/", cpu);
    if (!CPU_ISSET(cpu, &allowed)) continue;
    fake.file(topology + "core_id", "0\n");
    fake.file(topology + "physical_package_id", "0\n");
    fake.file(topology + "thread_siblings_list", fmt::format("{}\n", cpu));
  }
  EXPECT_EQ(one_cpu_per_core(MachineTree(fake.path())).size(), static_cast<std::size_t>(CPU_COUNT(&allowed)));
}

TEST(crew, zero_threads_mean_every_physical_core) { EXPECT_EQ(cpus_for(0), one_cpu_per_core()); }

TEST(crew, time_in_which_a_thread_did_not_run_is_told) {
  PinnedThreads crew(cpus_for(1));
  EXPECT_GE(crew.off_cpu_share(), 0);
  crew.run([](std::size_t) { std::this_thread::sleep_for(std::chrono::milliseconds(200)); });
  EXPECT_GT(crew.off_cpu_share(), 0.5);  // asleep is off the CPU, whatever else this machine does
  EXPECT_LE(crew.off_cpu_share(), 1);
}

TEST(crew, cpu_lists_read_as_the_kernel_writes_them) {
  EXPECT_EQ(cpu_list({0, 1, 2, 3, 8, 10, 11}), "0-3,8,10-11");
  EXPECT_EQ(cpu_list({5}), "5");
  EXPECT_EQ(cpu_list({}), "");
}

TEST(timing, rounds_are_scaled_to_the_goal) {
  EXPECT_EQ(rounds_for({1e-3}, [](std::uint64_t rounds) { return Seconds{static_cast<double>(rounds) * 1e-6}; }),
            1000U);
}

TEST(timing, work_longer_than_the_goal_is_done_once) {
  EXPECT_EQ(rounds_for({1e-3}, [](std::uint64_t) { return Seconds{5}; }), 1U);
}

TEST(timing, work_that_takes_no_time_ends_at_the_bound) {
  EXPECT_EQ(rounds_for({1e-3}, [](std::uint64_t) { return Seconds{0}; }), std::uint64_t{1} << 40);
}

}  // namespace assay::host
