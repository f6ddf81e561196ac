// The driver against a fio that misbehaves: every wait ends, every reason is fio's own.
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <sstream>
#include <tuple>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probes/core/child.h"
#include "probes/storage/fio.h"
#include "tests/unit/fake_tree.h"
#include "tests/unit/paths.h"

namespace assay::storage {
namespace {

constexpr Seconds kEnough{30};  // never reached by a child that answers

const FioPlan kPlan{.directory = ".",
                    .engine = "io_uring",
                    .file_size = {4096},
                    .ramp = {0},
                    .runtime = {0.01},
                    .samples = 10,
                    .grace = kEnough};

/// The fake first on PATH, misbehaving as told; no file of ours may be left behind.
class fake_fio : public testing::Test {
 protected:
  void SetUp() override {
    if (!filesystem_facts(".").unfit.empty()) GTEST_SKIP() << filesystem_facts(".").unfit;
    setenv("PATH", build_file("tests/fakes/fio").c_str(), 1);
    ASSERT_EQ(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
  }
  void TearDown() override {
    for (const auto& entry : std::filesystem::directory_iterator(".")) {
      EXPECT_FALSE(entry.path().filename().string().starts_with("assay-")) << entry.path() << " was left behind";
    }
  }
  static void misbehave(const char* mode) { setenv("FAKE_FIO", mode, 1); }
};

template <typename Thrown>
std::string reason(const std::function<void()>& action) {
  try {
    action();
  } catch (const Thrown& thrown) {
    return thrown.what();
  } catch (const std::exception& other) {
    return std::string("another kind of exception: ") + other.what();
  }
  return "nothing was thrown";
}

/// Reaps one more child of this process; the signal that killed it, 0 for another end, -1 when there is none.
int killing_signal() {
  int status = 0;
  if (waitpid(-1, &status, 0) <= 0) return -1;
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

}  // namespace

TEST_F(fake_fio, that_hangs_is_killed_with_all_that_it_started) {
  misbehave("hang");
  const ScratchDirectory scratch(".");
  const auto outcome =
      run_child(*find_program("fio"), {}, {3}, {.directory = scratch.path(), .log = scratch.path() + "/log"});
  EXPECT_EQ(outcome.end, ChildEnd::overdue);
  EXPECT_EQ(outcome.code, 128 + SIGKILL);
  EXPECT_EQ(killing_signal(), SIGKILL);  // the child that it forked, handed to us as subreaper
  EXPECT_EQ(killing_signal(), -1);
}

TEST_F(fake_fio, whose_rate_is_not_of_its_bytes_is_seen_and_named_by_its_digest) {
  for (const auto& [mode, least, most] : {std::tuple("whole", 0.0, 1.0), std::tuple("doctored", 99.9, 100.1)}) {
    misbehave(mode);
    Fio fio(kPlan);
    (void)fio.run({.direction = Direction::read});
    EXPECT_GE(fio.rate_ratio(), least) << mode;
    EXPECT_LE(fio.rate_ratio(), most) << mode;
  }
}

TEST_F(fake_fio, that_hangs_in_a_run_is_an_error_that_says_so) {
  misbehave("hang_alone");
  FioPlan hasty = kPlan;
  hasty.grace = {2};
  hasty.engine = "libaio";
  EXPECT_NE(reason<std::runtime_error>([&] { Fio fio(hasty); }).find("was killed with its process group"),
            std::string::npos);
}

TEST_F(fake_fio, dies_with_the_probe) {
  misbehave("hang_alone");
  const ScratchDirectory scratch(".");
  const std::string ready = scratch.path() + "/ready";
  ASSERT_EQ(mkfifo(ready.c_str(), 0600), 0);
  setenv("FAKE_FIO_READY", ready.c_str(), 1);
  const pid_t probe = fork();
  if (probe == 0) {
    (void)run_child(*find_program("fio"), {}, kEnough, {.directory = scratch.path(), .log = scratch.path() + "/log"});
    _exit(0);
  }
  close(open(ready.c_str(), O_RDONLY));  // returns when the fake runs
  unsetenv("FAKE_FIO_READY");
  kill(probe, SIGKILL);
  EXPECT_EQ(killing_signal(), SIGKILL);
  EXPECT_EQ(killing_signal(), SIGKILL);  // the probe and its fio, in either order
  EXPECT_EQ(killing_signal(), -1);
}

TEST_F(fake_fio, is_killed_and_its_files_removed_when_the_probe_is_told_to_stop) {
  misbehave("hang_alone");
  const ScratchDirectory scratch(".");
  const std::string ready = scratch.path() + "/ready", printed = scratch.path() + "/record";
  ASSERT_EQ(mkfifo(ready.c_str(), 0600), 0);
  setenv("FAKE_FIO_READY", ready.c_str(), 1);
  const pid_t probe = fork();
  if (probe == 0) {
    (void)dup2(open(printed.c_str(), O_WRONLY | O_CREAT, 0600), STDOUT_FILENO);  // a failure shows as an empty record
    const auto program = probe_file("storage_bandwidth");
    execl(program.c_str(), program.c_str(), "--quick", "--directory", scratch.path().c_str(), nullptr);
    _exit(127);
  }
  close(open(ready.c_str(), O_RDONLY));  // returns when the fake runs
  unsetenv("FAKE_FIO_READY");
  kill(probe, SIGTERM);
  int status = 0;
  ASSERT_EQ(waitpid(probe, &status, 0), probe);
  EXPECT_EQ(WEXITSTATUS(status), kExitError);
  EXPECT_EQ(killing_signal(), -1);  // the probe reaped its fio, nothing was handed to us
  EXPECT_NE(read_file(printed)->find("stopped by a signal while fio ran"), std::string::npos);
  const auto left = std::filesystem::directory_iterator(scratch.path());
  EXPECT_EQ(std::distance(begin(left), end(left)), 2);  // the pipe and the record, which are the test's
}

TEST_F(fake_fio, and_its_data_are_removed_by_the_next_probe_where_the_first_was_killed) {
  misbehave("hang_alone");
  const ScratchDirectory scratch(".");
  const std::string ready = scratch.path() + "/ready";
  ASSERT_EQ(mkfifo(ready.c_str(), 0600), 0);
  setenv("FAKE_FIO_READY", ready.c_str(), 1);
  const pid_t probe = fork();
  if (probe == 0) {
    (void)dup2(open("/dev/null", O_WRONLY), STDOUT_FILENO);
    const auto program = probe_file("storage_bandwidth");
    execl(program.c_str(), program.c_str(), "--quick", "--directory", scratch.path().c_str(), nullptr);
    _exit(127);
  }
  close(open(ready.c_str(), O_RDONLY));  // returns when the fake runs
  unsetenv("FAKE_FIO_READY");
  kill(probe, SIGKILL);
  EXPECT_EQ(killing_signal(), SIGKILL);
  EXPECT_EQ(killing_signal(), SIGKILL);  // the probe and its fio, in either order
  const auto names = [&] {
    const auto left = std::filesystem::directory_iterator(scratch.path());
    return std::distance(begin(left), end(left));
  };
  EXPECT_EQ(names(), 2);  // the pipe, which is the test's, and the folder of the probe
  { const OwnFolder next(scratch.path()); }
  EXPECT_EQ(names(), 1);
}

TEST_F(fake_fio, that_fails_is_an_error_with_its_own_words) {
  misbehave("nonzero");
  const std::string why = reason<std::runtime_error>([] { Fio fio(kPlan); });
  EXPECT_NE(why.find("exit code 1; it said: fio: data: Input/output error"), std::string::npos) << why;
}

TEST_F(fake_fio, that_writes_garbage_is_an_error) {
  misbehave("garbage");
  const std::string why = reason<std::runtime_error>([] { Fio fio(kPlan); });
  EXPECT_NE(why.find("no JSON object"), std::string::npos) << why;
}

TEST_F(fake_fio, of_another_major_version_is_a_skip_that_names_it) {
  misbehave("old");
  const std::string why = reason<Skip>([] { Fio fio(kPlan); });
  EXPECT_NE(why.find("'fio-2.21', not fio 3"), std::string::npos) << why;
}

TEST_F(fake_fio, that_is_missing_is_a_skip) {
  setenv("PATH", "/nowhere", 1);
  EXPECT_EQ(reason<Skip>([] { Fio fio(kPlan); }), "fio is not on PATH; install fio 3");
}

TEST_F(fake_fio, without_io_uring_falls_back_to_libaio_and_the_record_says_so) {
  misbehave("no_io_uring");
  Fio fio(kPlan);
  EXPECT_EQ(fio.run({.direction = Direction::read}).engine, "libaio");
  const ProbeSpec spec{.name = "fake", .measures = "", .method = "", .source = "", .conditions = kFioConditions};
  std::ostringstream out;
  Recorder record(out, spec, Start{.probe = "fake", .parameters = {}, .host = {{"name", std::string("here")}}});
  fio.record_conditions(record);
  EXPECT_NE(out.str().find(R"("name":"engine","subject":{"node":"here"},"value":"libaio")"), std::string::npos)
      << out.str();
  EXPECT_NE(out.str().find("libaio is used instead"), std::string::npos) << out.str();
  // The fake moves nothing through a device and leaves its file in the page cache: that is not direct I/O.
  EXPECT_NE(out.str().find(R"("name":"direct_io","subject":{"node":"here"},"value":false)"), std::string::npos)
      << out.str();
}

TEST_F(fake_fio, gives_every_sample_from_a_run_of_its_own) {
  misbehave("whole");
  Fio fio(kPlan);
  const auto results =
      fio.run_in_turn(std::array{FioJob{.direction = Direction::read}, FioJob{.direction = Direction::write}});
  ASSERT_EQ(results.size(), 2U);
  const auto sampling = samples_of(results[1], &FioResult::iops);
  EXPECT_EQ(sampling.samples, std::vector<double>(10, 2.5));
  EXPECT_EQ(sampling.stopped, "fixed");
}

TEST_F(fake_fio, is_not_started_where_the_space_is_short) {
  misbehave("whole");
  FioPlan huge = kPlan;
  huge.file_size = {std::uint64_t{1} << 60};
  EXPECT_NE(reason<Skip>([&] { Fio fio(huge); }).find("B are needed"), std::string::npos);
}

TEST(storage_parameters, of_zero_are_refused_before_fio_takes_its_defaults) {
  const Parameters given({{"queue_depth", std::int64_t{0}}, {"runtime", 0.0}, {"jobs", std::int64_t{1}}});
  EXPECT_EQ(reason<BadParameter>([&] {
              demand_positive(given, {"jobs", "queue_depth"});
            }),
            "queue_depth: must be more than 0");
  EXPECT_EQ(reason<BadParameter>([&] { demand_positive(given, {"runtime"}); }), "runtime: must be more than 0");
  EXPECT_NO_THROW(demand_positive(given, {"jobs"}));
}

TEST(storage_directory, that_is_memory_is_a_skip) {
  if (filesystem_facts("/dev/shm").type != "tmpfs") GTEST_SKIP() << "/dev/shm is no tmpfs here";
  EXPECT_EQ(reason<Skip>([] { demand_storage(filesystem_facts("/dev/shm"), "/dev/shm", {1}); }),
            "/dev/shm: tmpfs is memory, not storage");
}

TEST(storage_directory, that_is_not_there_is_an_error_that_names_it) {
  EXPECT_NE(reason<std::system_error>([] { (void)filesystem_facts("/no/such"); }).find("/no/such"), std::string::npos);
}

TEST(mountinfo, is_searched_by_mount_id_and_read_behind_the_optional_fields) {
  const char* const text =
      "22 27 0:21 / /proc rw,relatime - proc proc rw\n"
      "27 1 254:0 / / rw,relatime shared:1 master:2 - ext4 /dev/vda rw,discard\n"
      "28 27 0:30 / /broken rw\n";
  const auto mount = find_mount(text, 27);
  ASSERT_TRUE(mount.has_value());
  EXPECT_EQ(mount->device_number, "254:0");
  EXPECT_EQ(mount->type, "ext4");
  EXPECT_EQ(mount->source, "/dev/vda");
  EXPECT_EQ(mount->options, "rw,relatime,rw,discard");
  EXPECT_FALSE(find_mount(text, 28).has_value());
  EXPECT_FALSE(find_mount(text, 99).has_value());
}

TEST(filesystem_facts, a_block_device_has_the_bus_the_model_and_the_pci_function_above_it) {
  struct Case {
    const char *bus, *above, *model, *vendor, *device, *words;
  };
  for (const Case& one :
       {Case{"virtio", "virtio2", "", "0x1af4", "0x1001", "virtio, PCI 1af4:1001"},
        {"nvme", "nvme/nvme0", "Emulated drive", "0x15b3", "0x6001", "nvme Emulated drive, PCI 15b3:6001"},
        {"", "platform", "", "0x8086", "0x0001", "PCI 8086:0001"}}) {
    const FakeTree tree;
    const std::string function = "sys/devices/pci0000:00/0000:00:05.0", above = function + "/" + one.above;
    tree.file(function + "/vendor", std::string(one.vendor) + "\n");
    tree.file(function + "/device", std::string(one.device) + "\n");
    tree.link(function + "/subsystem", "sys/bus/pci");
    tree.file(above + "/block/disk/size", "1\n");
    if (*one.model != 0) tree.file(above + "/model", std::string(one.model) + "\n");
    if (*one.bus != 0) tree.link(above + "/subsystem", std::string("sys/bus/") + one.bus);
    EXPECT_EQ(device_class_of(tree.path(above + "/block/disk")), one.words);
  }
  EXPECT_EQ(device_class_of("/no/such/place"), "");
}

TEST(filesystem_facts, a_drive_is_emulated_where_a_hypervisor_makes_it_up_and_not_where_it_hands_one_over) {
  for (const char* const made_up :
       {"virtio", "virtio, PCI 1af4:1001", "nvme QEMU NVMe Ctrl, PCI 1b36:0010", "scsi QEMU HARDDISK, PCI 8086:2922",
        "nvme VMware Virtual NVMe Disk, PCI 15ad:07f0"}) {
    EXPECT_TRUE(is_emulated(made_up, true)) << made_up;
    EXPECT_FALSE(is_emulated(made_up, false)) << made_up;  // by an adapter
  }
  for (const char* const real : {"nvme Emulated drive, PCI 15b3:6001", "nvme SAMSUNG MZQL2, PCI 144d:a80a", "scsi", ""})
    EXPECT_FALSE(is_emulated(real, true)) << real;
}

TEST(filesystem_facts, a_mount_that_mountinfo_does_not_show_is_known_by_its_magic_number) {
  const auto memory = mount_without_path("/dev/shm", "0:1");
  ASSERT_TRUE(memory.has_value());
  EXPECT_EQ(memory->type, "tmpfs");
  EXPECT_EQ(memory->device_number, "0:1");
  EXPECT_FALSE(mount_without_path("/proc", "0:2").has_value());
}

}  // namespace assay::storage
