// health_drive: logs built from the field tables of the specifications, and the probe as a process on made-up machines.
#include <algorithm>
#include <cstdint>

#include <gtest/gtest.h>

#include "probes/core/machine_tree.h"
#include "probes/health/drive_log.h"
#include "probes/health/drives.h"
#include "tests/unit/fake_tree.h"
#include "tests/unit/paths.h"
#include "tests/unit/probe_process.h"

namespace assay::health {
namespace {

void put(std::string& page, std::size_t offset, std::uint64_t value, std::size_t size) {
  for (std::size_t i = 0; i < std::min(size, sizeof value); ++i)
    page[offset + i] = static_cast<char>(value >> (8 * i) & 0xffU);
}

/// Fields of log page 02h that a test sets: NVM Express Base Specification 2.0, 5.16.1.3.
struct Smart {
  unsigned warning = 0, spare = 100, threshold = 10, used = 3;
  std::uint64_t unsafe = 7, media = 0, entries = 12;
};

std::string nvme_health(const Smart& smart) {
  std::string page(512, '\0');
  put(page, 0, smart.warning, 1);
  put(page, 1, 311, 2);  // K
  put(page, 3, smart.spare, 1);
  put(page, 4, smart.threshold, 1);
  put(page, 5, smart.used, 1);
  put(page, 48, 2'000'000, 16);
  put(page, 112, 41, 16);
  put(page, 128, 5000, 16);
  put(page, 144, smart.unsafe, 16);
  put(page, 160, smart.media, 16);
  put(page, 176, smart.entries, 16);
  put(page, 192, 3, 4);
  return page;
}

std::string error_entry(std::uint64_t count, unsigned type, unsigned code, std::uint64_t block) {
  std::string entry(64, '\0');
  put(entry, 0, count, 8);
  put(entry, 12, (type << 8U | code) << 1U | 1U, 2);  // bit 0 is the phase
  put(entry, 16, block, 8);
  put(entry, 24, 1, 4);
  return entry;
}

/// SMART data of ACS-3 with the attributes given as id and raw value, and its checksum.
std::string sata_attributes(const std::vector<std::pair<unsigned, std::uint64_t>>& attributes) {
  std::string page(512, '\0');
  std::size_t at = 2;
  for (const auto& [id, raw] : attributes) {
    put(page, at, id, 1);
    put(page, at + 5, raw, 6);
    at += 12;
  }
  unsigned sum = 0;
  for (const char c : page) sum += static_cast<unsigned char>(c);
  put(page, 511, 256 - sum % 256, 1);
  return page;
}

/// A page of the Device Statistics log with one statistic, supported and valid.
std::string statistics(unsigned page_number, std::size_t offset, std::uint64_t value, unsigned flags = 0xc0) {
  std::string page(512, '\0');
  put(page, 0, 1, 2);
  put(page, 2, page_number, 1);
  put(page, offset, value, 4);
  put(page, offset + 7, flags, 1);
  return page;
}

void add_nvme(const FakeTree& tree, const std::string& serial = "S6CLNE0T") {
  const std::string pci = "sys/devices/pci0000:c0/0000:c0:01.0/0000:c1:00.0/";
  const std::string controller = pci + "nvme/nvme0/";
  tree.link("sys/class/nvme/nvme0", controller);
  tree.link(controller + "device", pci);
  for (const auto& [name, text] : {std::pair("transport", "pcie"),
                                   {"address", "0000:c1:00.0"},
                                   {"state", "live"},
                                   {"model", "PM9A3"},
                                   {"firmware_rev", "GDC7302Q"}})
    tree.file(controller + name, std::string(text) + "\n");
  tree.file(controller + "serial", serial + "\n");
  tree.directory(controller + "nvme0n1");
  tree.link("sys/bus/pci/devices/0000:c1:00.0", pci);
  tree.file(pci + "class", "0x010802\n");
  tree.file(pci + "current_link_speed", "16.0 GT/s PCIe\n");
  tree.file(pci + "max_link_speed", "16.0 GT/s PCIe\n");
  tree.file(pci + "current_link_width", "2\n");
  tree.file(pci + "max_link_width", "4\n");
  tree.file(pci + "aer_dev_correctable", "RxErr 3\nBadTLP 1\nTOTAL_ERR_COR 4\n");
  tree.file(pci + "aer_dev_nonfatal", "Undefined 0\nTOTAL_ERR_NONFATAL 0\n");
  tree.file(pci + "aer_dev_fatal", "Undefined 0\nTOTAL_ERR_FATAL 1\n");
}

const Subject kNvme{"drive", "nvme0n1"};
const Subject kSata{"drive", "sda"};
using Samples = std::vector<double>;

TEST(health_drive, an_nvme_drive_tells_its_counters_warnings_and_link) {
  const FakeTree tree;
  add_nvme(tree);
  tree.file("dev/nvme0.nvme-health", nvme_health({.warning = 0b101, .spare = 8, .media = 2}));
  tree.file("dev/nvme0.nvme-errors",
            error_entry(12, 2, 0x81, 4711) + error_entry(11, 0, 0x02, 0) + std::string(64, '\0'));
  const Record record = record_of(probe_file("health_drive"), {"--root", tree.path()});
  ASSERT_EQ(record.end.status, Status::complete) << record.end.reason;
  EXPECT_EQ(samples_of(record, "critical_warnings", kNvme), Samples{2});
  EXPECT_EQ(value_of(record, "warnings", kNvme), Value{std::string("spare below its threshold, reliability degraded")});
  EXPECT_EQ(samples_of(record, "media_errors", kNvme), Samples{2});
  EXPECT_EQ(samples_of(record, "spare_used", kNvme), Samples{92});
  EXPECT_EQ(samples_of(record, "spare_below_threshold", kNvme), Samples{1});
  EXPECT_EQ(samples_of(record, "wear", kNvme), Samples{3});
  EXPECT_EQ(samples_of(record, "unsafe_shutdowns", kNvme), Samples{7});
  EXPECT_EQ(samples_of(record, "error_log_entries", kNvme), Samples{12});
  EXPECT_EQ(samples_of(record, "logged_media_errors", kNvme), Samples{1});
  EXPECT_EQ(value_of(record, "newest_error", kNvme),
            Value{std::string("status 2h/81h (type/code), namespace 1, block 4711")});
  EXPECT_EQ(value_of(record, "temperature_c", kNvme), Value{std::int64_t{38}});
  EXPECT_EQ(value_of(record, "data_written_b", kNvme), Value{1.024e12});
  EXPECT_EQ(value_of(record, "power_on_s", kNvme), Value{1.8e7});
  EXPECT_EQ(value_of(record, "hot_s", kNvme), Value{180.0});
  EXPECT_EQ(value_of(record, "serial", kNvme), Value{std::string("S6CLNE0T")});
  EXPECT_EQ(value_of(record, "firmware", kNvme), Value{std::string("GDC7302Q")});
  EXPECT_EQ(samples_of(record, "pcie_width", kNvme), Samples{2});
  EXPECT_EQ(samples_of(record, "pcie_width_max", kNvme), Samples{4});
  EXPECT_EQ(samples_of(record, "pcie_errors_corrected", kNvme), Samples{4});
  EXPECT_EQ(samples_of(record, "pcie_errors_uncorrected", kNvme), Samples{1});
  EXPECT_EQ(samples_of(record, "namespaces", kNvme), Samples{1});
  EXPECT_EQ(samples_of(record, "paths", kNvme), Samples{});  // one controller on PCIe has no other way
}

TEST(health_drive, a_sata_drive_tells_its_statistics_and_else_its_vendors_attributes) {
  const FakeTree tree;
  tree.file("sys/block/sda/size", "1000\n");
  tree.file("sys/block/sda/device/vendor", "ATA     \n");
  tree.file("sys/block/sda/device/model", "MTFDDAK960TDS\n");
  tree.file("dev/sda.sata-attributes", sata_attributes({{5, 0x300000002}, {187, 9}, {197, 1}, {199, 4}}));
  tree.file("dev/sda.sata-status", "\xf4\x2c");
  tree.file("dev/sda.sata-errors", statistics(4, 8, 6));
  tree.file("dev/sda.sata-transport", statistics(6, 24, 5, 0x80));  // supported, without a value
  tree.file("dev/sda.sata-endurance", statistics(7, 8, 104));
  const Record record = record_of(probe_file("health_drive"), {"--root", tree.path()});
  ASSERT_EQ(record.end.status, Status::complete) << record.end.reason;
  EXPECT_EQ(samples_of(record, "critical_warnings", kSata), Samples{1});
  EXPECT_EQ(samples_of(record, "media_errors", kSata), Samples{6});         // the statistic, not attribute 187
  EXPECT_EQ(samples_of(record, "reallocated_sectors", kSata), Samples{2});  // upper bytes are the vendor's
  EXPECT_EQ(samples_of(record, "pending_sectors", kSata), Samples{1});
  EXPECT_EQ(samples_of(record, "link_crc_errors", kSata), Samples{4});
  EXPECT_EQ(samples_of(record, "wear", kSata), Samples{104});
  EXPECT_EQ(samples_of(record, "spare_used", kSata), Samples{});
}

TEST(health_drive, a_namespace_over_a_fabric_tells_its_paths_and_their_ana_states) {
  const FakeTree tree;
  const auto add = [&](const std::string& controller, const std::string& state, const std::string& ana) {
    const std::string directory = "sys/class/nvme/" + controller + "/";
    tree.file(directory + "transport", "tcp\n");
    tree.file(directory + "address", "traddr=10.0.0." + controller.substr(4) + ",trsvcid=4420\n");
    tree.file(directory + "state", state + "\n");
    tree.file(directory + "nvme0c" + controller.substr(4) + "n1/ana_state", ana + "\n");
    tree.directory("sys/class/nvme-subsystem/nvme-subsys0/" + controller);
  };
  add("nvme1", "live", "optimized");
  add("nvme2", "live", "inaccessible");
  add("nvme3", "connecting", "optimized");
  add("nvme4", "live", "non-optimized");
  tree.directory("sys/class/nvme-subsystem/nvme-subsys0/nvme0n1");
  tree.file("dev/nvme2.nvme-health", nvme_health({}));
  const Record record = record_of(probe_file("health_drive"), {"--root", tree.path()});
  ASSERT_EQ(record.end.status, Status::complete) << record.end.reason;
  EXPECT_EQ(samples_of(record, "paths", kNvme), Samples{4});
  EXPECT_EQ(samples_of(record, "paths_usable", kNvme), Samples{2});
  EXPECT_EQ(samples_of(record, "paths_optimized", kNvme), Samples{1});
  EXPECT_EQ(samples_of(record, "namespaces", kNvme), Samples{1});
  EXPECT_EQ(samples_of(record, "wear", kNvme), Samples{3});  // through the one controller that answers
  EXPECT_EQ(std::get<std::string>(*value_of(record, "path_states", kNvme)).substr(0, 53),
            "nvme1 tcp traddr=10.0.0.1,trsvcid=4420 live optimized");
}

TEST(health_drive, a_drive_that_does_not_answer_is_counted_beside_one_that_does) {
  const FakeTree tree;
  add_nvme(tree);
  tree.file("dev/nvme0.nvme-health", nvme_health({}));
  tree.file("sys/block/sda/size", "1000\n");
  tree.file("sys/block/sda/device/vendor", "ATA\n");
  tree.file("dev/sda.sata-attributes", std::string(511, '\0') + "x");
  const Record record = record_of(probe_file("health_drive"), {"--root", tree.path()});
  const Subject node{"node", std::get<std::string>(record.start.host.at("name"))};
  EXPECT_EQ(samples_of(record, "drives", node), Samples{2});
  EXPECT_EQ(samples_of(record, "drives_silent", node), Samples{1});
  EXPECT_EQ(value_of(record, "health_log", kSata),
            Value{std::string("absent: sda: its SMART data has no valid checksum")});
}

TEST(health_drive, a_short_log_is_no_health) {
  const DriveState state = read_nvme_state(
      [](const std::string&, DriveLog) { return DriveAnswer{.bytes = std::string(100, '\0'), .absence = ""}; },
      "nvme0");
  EXPECT_EQ(state.absence, "nvme0: the health log has 100 bytes in place of 512");
  EXPECT_TRUE(state.metrics.empty());
}

TEST(health_drive, no_drive_and_no_permission_are_skips_with_their_cause) {
  const FakeTree tree;
  tree.directory("sys/block");
  EXPECT_EQ(record_of(probe_file("health_drive"), {"--root", tree.path()}).end.reason,
            "the machine has no NVMe or SATA drive: neither sys/class/nvme nor sys/block lists one");
  add_nvme(tree);
  const Record record = record_of(probe_file("health_drive"), {"--root", tree.path()});
  EXPECT_EQ(record.end.status, Status::skip);
  EXPECT_EQ(record.end.reason, "no drive's health can be read: " + tree.path() +
                                   "/dev/nvme0.nvme-health is not there; only root may query drives");
}

TEST(health_drive, a_device_that_is_no_drive_refuses_each_command_with_its_cause) {
  EXPECT_EQ(read_device_log("assay-no-such-drive", DriveLog::nvme_health).absence,
            "/dev/assay-no-such-drive cannot be opened: No such file or directory");
  EXPECT_EQ(read_device_log("null", DriveLog::nvme_health).absence,
            "null: log page 02h was not given: Inappropriate ioctl for device");
  EXPECT_EQ(read_device_log("null", DriveLog::sata_attributes).absence,
            "null: ATA command b0h/d0h was not answered: Inappropriate ioctl for device");
}

/// What health_drive says of cuFile on a machine with the library, a configuration and maybe the driver.
struct GpudirectCase {
  const char *configuration, *state;
  bool driver;
  std::optional<double> direct;
};

class Gpudirect : public ::testing::TestWithParam<GpudirectCase> {};

TEST_P(Gpudirect, the_way_is_told_with_its_reason) {
  const FakeTree tree;
  tree.file("usr/local/cuda-13.0/targets/x86_64-linux/lib/libcufile.so.0", "");
  if (GetParam().configuration != nullptr) tree.file("etc/cufile.json", GetParam().configuration);
  if (GetParam().driver) tree.file("sys/module/nvidia_fs/version", "2.26.6\n");
  const Record record = record_of(probe_file("health_drive"), {"--root", tree.path()});
  EXPECT_EQ(record.end.status, Status::complete) << record.end.reason;
  const Subject node{"node", std::get<std::string>(record.start.host.at("name"))};
  EXPECT_EQ(value_of(record, "gpudirect_storage_state", node), Value{std::string(GetParam().state)});
  EXPECT_EQ(value_of(record, "gpudirect_storage_library", node),
            Value{std::string("/usr/local/cuda-13.0/targets/x86_64-linux/lib/libcufile.so.0")});
  EXPECT_EQ(samples_of(record, "gpudirect_storage", node), GetParam().direct ? Samples{*GetParam().direct} : Samples{});
}

INSTANTIATE_TEST_SUITE_P(
    Configurations, Gpudirect,
    ::testing::Values(
        GpudirectCase{
            nullptr, "nvidia-fs 2.26.6; a file system that does not take it goes through host memory or gives an error",
            true, 1},
        GpudirectCase{R"({"properties": {
  // to fall back
  "allow_compat_mode": true}})",
                      "nvidia-fs 2.26.6; a file system that does not take it goes through host memory without an error",
                      true, 1},
        GpudirectCase{R"({"properties": {"allow_compat_mode": false}})",
                      "nvidia-fs 2.26.6; a file system that does not take it gives an error", true, 1},
        GpudirectCase{R"({"properties": {"force_compat_mode": true}})",
                      "compatibility mode, through host memory: force_compat_mode in /etc/cufile.json", true, 0},
        GpudirectCase{
            nullptr,
            "compatibility mode: nvidia-fs is not loaded, so that it goes through host memory or gives an error", false,
            0},
        GpudirectCase{
            R"({"properties": {"allow_compat_mode": true}})",
            "compatibility mode: nvidia-fs is not loaded, so that it goes through host memory without an error", false,
            0},
        GpudirectCase{R"({"properties": {"use_pci_p2pdma": true}})",
                      "not known: PCI P2PDMA is asked for, and only a load shows whether it is used", false,
                      std::nullopt},
        GpudirectCase{R"({"properties": {"allow_compat_mode": "yes"}})",
                      "not known: /etc/cufile.json cannot be understood", true, std::nullopt},
        GpudirectCase{R"({"properties": )", "not known: /etc/cufile.json cannot be understood", true, std::nullopt}));

TEST(health_drive, without_libcufile_nothing_is_said_of_it) {
  const FakeTree tree;
  add_nvme(tree);
  tree.file("dev/nvme0.nvme-health", nvme_health({}));
  tree.file("sys/module/nvidia_fs/version", "2.26.6\n");
  const Record record = record_of(probe_file("health_drive"), {"--root", tree.path()});
  const Subject node{"node", std::get<std::string>(record.start.host.at("name"))};
  EXPECT_EQ(samples_of(record, "drives", node), Samples{1});
  EXPECT_EQ(samples_of(record, "gpudirect_storage", node), Samples{});
}

}  // namespace
}  // namespace assay::health
