// filesystem_facts: read from statx, mountinfo and sysfs; O_DIRECT is tried, not looked up.
#include "probes/core/filesystem_facts.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <fmt/format.h>

#include "probes/core/descriptor.h"
#include "probes/core/host_facts.h"
#include "probes/core/machine_tree.h"
#include "probes/core/memory_nodes.h"
#include "probes/core/text.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

constexpr std::uint32_t kZfsMagic = 0x2fc12fc1;  // OpenZFS, include/os/linux/spl/sys/vfs.h; not in linux/magic.h
constexpr std::size_t kDirectAlignment = 4096;   // no device of ours has larger logical blocks
constexpr std::size_t kLongestModel = 60;        // of NVMe 40

[[noreturn]] void fail(const std::string& attempted) {
  throw std::system_error(errno, std::generic_category(), attempted);
}

/// Writes and reads one block with O_DIRECT; the reason when that is refused.
std::string try_direct(const std::string& directory) {
  const ScratchDirectory scratch(directory);
  const std::string path = scratch.path() + "/direct";
  const Descriptor file(open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_DIRECT | O_CLOEXEC, 0600));
  if (!file) return fmt::format("open with O_DIRECT: {}", std::generic_category().message(errno));
  alignas(kDirectAlignment) std::array<char, kDirectAlignment> block{};
  if (pwrite(file.number(), block.data(), block.size(), 0) != std::ssize(block) ||
      pread(file.number(), block.data(), block.size(), 0) != std::ssize(block)) {
    return fmt::format("a 4 KiB block through O_DIRECT: {}", std::generic_category().message(errno));
  }
  return "";
}

/// The device number of the block device that `mount` names, if any.
std::string block_number(const Mount& mount) {
  if (!mount.device_number.starts_with("0:")) return mount.device_number;
  struct stat source = {};  // btrfs and its like have an anonymous device but a real source
  if (!mount.source.starts_with("/dev/") || stat(mount.source.c_str(), &source) != 0 || !S_ISBLK(source.st_mode))
    return "";
  return fmt::format("{}:{}", major(source.st_rdev), minor(source.st_rdev));
}

void read_device(const Mount& mount, FilesystemFacts& facts) {
  const std::string number = block_number(mount);
  std::error_code none;
  const fs::path device = number.empty() ? fs::path() : fs::canonical("/sys/dev/block/" + number, none);
  if (device.empty() || none) {
    facts.device = fmt::format("{} {}", mount.device_number, mount.source);
    return;
  }
  facts.block_device = true;
  facts.device_class = device_class_of(device.string());
  facts.emulated = is_emulated(facts.device_class, is_guest(MachineTree("/")));
  facts.device = fmt::format("{} {}", number, device.filename().string());
  auto rotational = read_fact(device / "queue/rotational");
  if (!rotational) rotational = read_fact(device.parent_path() / "queue/rotational");  // a partition asks its disk
  if (rotational) facts.rotational = *rotational == "1";
}

std::string not_storage(const FilesystemFacts& facts) {
  constexpr std::array kMemory = {"tmpfs", "ramfs", "devtmpfs", "hugetlbfs"};
  if (std::ranges::find(kMemory, facts.type) != kMemory.end()) {
    return fmt::format("{} is memory, not storage", facts.type);
  }
  if (facts.type == "zfs") return "zfs keeps a cache of its own before the device, which O_DIRECT does not rule out";
  return "";
}

std::string no_direct(const FilesystemFacts& facts, const std::string& directory) {
  const std::string refused = try_direct(directory);
  return refused.empty() ? "" : fmt::format("{} does not do direct I/O: {}", facts.type, refused);
}

}  // namespace

std::optional<Mount> find_mount(std::string_view mountinfo, std::uint64_t mount_id) {
  std::istringstream lines{std::string(mountinfo)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::uint64_t id = 0;
    std::string parent, number, root, point, word;
    if (!(words >> id >> parent >> number >> root >> point) || id != mount_id) continue;
    std::string own_options, options;
    words >> own_options;
    while (words >> word && word != "-") {  // optional fields end at the separator
    }
    Mount mount{.device_number = number, .type = "", .source = ""};
    if (!(words >> mount.type >> mount.source)) continue;
    words >> options;
    mount.options = options.empty() ? own_options : own_options + "," + options;
    return mount;
  }
  return std::nullopt;
}

std::optional<Mount> mount_without_path(const std::string& directory, const std::string& device_number) {
  constexpr std::pair<std::uint32_t, const char*> kMagics[] = {
      {EXT4_SUPER_MAGIC, "ext2/ext3/ext4"}, {XFS_SUPER_MAGIC, "xfs"}, {BTRFS_SUPER_MAGIC, "btrfs"},
      {F2FS_SUPER_MAGIC, "f2fs"},           {TMPFS_MAGIC, "tmpfs"},   {RAMFS_MAGIC, "ramfs"},
      {HUGETLBFS_MAGIC, "hugetlbfs"},       {kZfsMagic, "zfs"},
  };
  struct statfs kind = {};
  if (statfs(directory.c_str(), &kind) != 0) return std::nullopt;
  for (const auto& [magic, type] : kMagics) {
    if (static_cast<std::uint32_t>(kind.f_type) == magic)
      return Mount{.device_number = device_number, .type = type, .source = ""};
  }
  return std::nullopt;
}

std::string device_class_of(const std::string& place) {
  constexpr std::array kBuses = {"nvme", "virtio", "scsi", "mmc"};
  const auto id = [](const fs::path& file) {
    const std::string text = read_fact(file).value_or("");
    return text.starts_with("0x") ? text.substr(2) : text;
  };
  std::string words;
  for (fs::path at = place; at.has_relative_path(); at = at.parent_path()) {
    std::error_code none;
    const std::string bus = fs::read_symlink(at / "subsystem", none).filename().string();
    if (words.empty() && std::ranges::find(kBuses, bus) != kBuses.end()) {
      const std::string model = read_fact(at / "model").value_or("");
      words = model.empty() ? bus : bus + " " + printable(model, kLongestModel);
    }
    if (bus == "pci")
      return fmt::format("{}{}PCI {}:{}", words, words.empty() ? "" : ", ", id(at / "vendor"), id(at / "device"));
  }
  return words;
}

bool is_emulated(std::string_view device_class, bool guest) {
  // pci.ids: Red Hat (virtio), Red Hat (QEMU), VMware, Microsoft, XenSource, InnoTek.
  constexpr std::array kSigns = {
      "virtio", "QEMU ", "PCI 1af4:", "PCI 1b36:", "PCI 15ad:", "PCI 1414:", "PCI 5853:", "PCI 80ee:"};
  return guest && std::ranges::any_of(
                      kSigns, [&](std::string_view sign) { return device_class.find(sign) != std::string_view::npos; });
}

FilesystemFacts filesystem_facts(const std::string& directory) {
  struct statx status = {};
  if (statx(AT_FDCWD, directory.c_str(), 0, STATX_TYPE | STATX_MNT_ID, &status) != 0) fail(directory);
  if (!S_ISDIR(status.stx_mode)) {
    errno = ENOTDIR;
    fail(directory);
  }
  const auto mountinfo = read_fact("/proc/self/mountinfo");
  auto mount = find_mount(mountinfo.value_or(""), status.stx_mnt_id);
  if (!mount) mount = mount_without_path(directory, fmt::format("{}:{}", status.stx_dev_major, status.stx_dev_minor));
  if (!mount)
    throw std::runtime_error(
        fmt::format("{}: its mount is not in /proc/self/mountinfo, and its type is unknown", directory));
  struct statvfs space = {};
  if (statvfs(directory.c_str(), &space) != 0) fail(directory);

  FilesystemFacts facts{.type = mount->type,
                        .source = mount->source,
                        .options = mount->options,
                        .device = "",
                        .device_class = "",
                        .rotational = {},
                        .free = {},
                        .not_storage = "",
                        .no_direct = "",
                        .unfit = ""};
  if (space.f_blocks > 0) facts.free = Bytes{static_cast<std::uint64_t>(space.f_bavail) * space.f_frsize};
  read_device(*mount, facts);
  facts.not_storage = not_storage(facts);
  if (facts.not_storage.empty()) facts.no_direct = no_direct(facts, directory);
  facts.unfit = facts.not_storage.empty() ? facts.no_direct : facts.not_storage;
  return facts;
}

void record_filesystem(const FilesystemFacts& facts, Recorder& record) {
  record.condition("filesystem", facts.type);
  if (facts.device_class.empty()) return;
  record.condition("device_class", facts.device_class);
  record.condition("emulated_drive", facts.emulated);
}

void demand_storage(const FilesystemFacts& facts, const std::string& directory, Bytes needed) {
  if (!facts.unfit.empty()) throw Skip(fmt::format("{}: {}", directory, facts.unfit));
  const std::uint64_t with_slack = needed.count + needed.count / 10;  // metadata and a neighbour's writes
  if (facts.free && facts.free->count < with_slack) {
    throw Skip(fmt::format("{}: {} B are free, {} B are needed", directory, facts.free->count, with_slack));
  }
}

std::uint64_t resident_pages(const std::string& path) {
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status = {};
  if (!file || fstat(file.number(), &status) != 0) fail(path);
  constexpr std::uint64_t kWindow = std::uint64_t{1} << 30;  // a byte a page: 256 KiB, however long the file is
  const auto size = static_cast<std::uint64_t>(status.st_size);
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> pages;
  std::uint64_t resident = 0;
  for (std::uint64_t begin = 0; begin < size; begin += kWindow) {
    const auto length = static_cast<std::size_t>(std::min(kWindow, size - begin));
    void* const map = mmap(nullptr, length, PROT_READ, MAP_SHARED, file.number(), static_cast<off_t>(begin));
    if (map == MAP_FAILED) fail("mmap of " + path);
    pages.assign((length + page - 1) / page, 0);
    const int asked = mincore(map, length, pages.data());
    const int why = errno;
    munmap(map, length);
    errno = why;
    if (asked != 0) fail("mincore of " + path);
    resident +=
        static_cast<std::uint64_t>(std::ranges::count_if(pages, [](unsigned char state) { return (state & 1U) != 0; }));
  }
  return resident;
}

void drop_pages(const std::string& path) {
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) fail(path);
  errno = posix_fadvise(file.number(), 0, 0, POSIX_FADV_DONTNEED);
  if (errno != 0) fail("posix_fadvise of " + path);
}

std::optional<DeviceTraffic> device_traffic() {
  std::ifstream file("/proc/self/io");
  DeviceTraffic traffic;
  bool read = false, written = false;
  std::string name;
  for (std::uint64_t count = 0; file >> name >> count;) {
    if (name == "read_bytes:") traffic.read = {count}, read = true;
    if (name == "write_bytes:") traffic.written = {count}, written = true;
  }
  if (!read || !written) return std::nullopt;
  return traffic;
}

ScratchDirectory::ScratchDirectory(const std::string& parent) : path_(fs::absolute(parent).string() + "/assay-XXXXXX") {
  if (mkdtemp(path_.data()) == nullptr) fail("a directory in " + parent);
}

ScratchDirectory::~ScratchDirectory() {
  std::error_code ignored;  // nothing can be done in a destructor; the agent removes its scratch directory as a whole
  fs::remove_all(path_, ignored);
}

}  // namespace assay
