// filesystem_facts: the file system below a directory, and whether a storage probe may measure there.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "probes/core/probe.h"
#include "probes/core/recorder.h"
#include "probes/core/units.h"

namespace assay {

/// One line of /proc/self/mountinfo.
struct Mount {
  std::string device_number;  ///< "254:0"; major 0 is an anonymous device
  std::string type;           ///< "ext4"
  std::string source;         ///< "/dev/vda", "server:/export"
  std::string options = {};   ///< of the mount, then of the filesystem: "rw,noatime,vers=4.2"; empty if unknown
};

/// The mount with this id in the text of /proc/self/mountinfo (proc(5)); nothing if no well-formed line has it.
std::optional<Mount> find_mount(std::string_view mountinfo, std::uint64_t mount_id);

/// The same from the filesystem's magic number, for a mount that mountinfo does not show: the root of a chroot, whose
/// mount point is outside. Nothing for a magic number that is not in the list (statfs(2)).
std::optional<Mount> mount_without_path(const std::string& directory, const std::string& device_number);

/// The file system and device of a directory.
struct FilesystemFacts {
  std::string type;                ///< as mountinfo names it
  std::string source;              ///< the mount's, as mountinfo names it: "server:/export"; empty if unknown
  std::string options;             ///< of the mount, as in Mount
  std::string device;              ///< device number and name: "254:0 vda"; the mount's source if it has no device
  std::string device_class;        ///< device_class_of() that device; empty if there is none
  bool emulated = false;           ///< is_emulated() of that device
  bool block_device = false;       ///< whether the kernel knows a block device under it
  std::optional<bool> rotational;  ///< the block device's own word; nothing if there is none
  std::optional<Bytes> free;       ///< space that this user may take; nothing if the file system reports no size
  std::string not_storage;         ///< why the directory is memory or a cache and no storage; empty if it is storage
  std::string no_direct;           ///< why no direct I/O can be done there; empty if it can
  std::string unfit;  ///< why no storage number by direct I/O can be taken here: one of the two; empty if one can
};

/// The bus, the model and the PCI function of the block device at `place` in /sys/devices, by the devices above it:
/// "nvme MODEL, PCI 15b3:6001", "virtio, PCI 1af4:1001"; unknown parts are left out. An adapter that emulates drives
/// is known by its ids.
std::string device_class_of(const std::string& place);

/// Whether a hypervisor makes up the drive of this class that `guest`, a virtual machine, sees: by virtio, by a PCI
/// vendor of virtual devices, or QEMU's model. A drive that the hypervisor hands over as it is, or whose adapter
/// emulates it, is none.
bool is_emulated(std::string_view device_class, bool guest);

/// The facts of `directory`. Writes and removes one 4 KiB file there to try O_DIRECT. Throws std::system_error when the
/// directory is not there or not writable. `unfit` names tmpfs and the like (memory), ZFS (its own cache is before the
/// device in spite of O_DIRECT), and a filesystem that refuses O_DIRECT.
FilesystemFacts filesystem_facts(const std::string& directory);

/// The condition of probes that measure a file system, by device_class_of().
inline constexpr ConditionSpec kDeviceClass =
    if_present("device_class",
               "bus, model and PCI ids of the block device by sysfs: virtio, or the ids of an adapter that emulates "
               "NVMe; recorded where there is a block device with a bus");

/// The condition of the same probes by is_emulated().
inline constexpr ConditionSpec kEmulatedDrive = if_present(
    "emulated_drive",
    "whether a hypervisor makes up the block device (virtio, or ids of QEMU, VMware, Hyper-V, Xen or "
    "VirtualBox, in a virtual machine), so that a cache of its host may serve it; recorded with device_class");

/// Records filesystem, and device_class and emulated_drive if they are known.
void record_filesystem(const FilesystemFacts& facts, Recorder& record);

/// Throws Skip with the reason when `facts` are unfit or fewer than `needed` bytes (and a tenth more) are free.
void demand_storage(const FilesystemFacts& facts, const std::string& directory, Bytes needed);

/// Pages of the file that are in the page cache now (mincore). Throws std::system_error when it cannot be asked.
std::uint64_t resident_pages(const std::string& path);

/// Asks the kernel to forget the clean pages of the file (posix_fadvise DONTNEED). Throws std::system_error.
void drop_pages(const std::string& path);

/// Bytes that this process and its reaped children moved to and from block devices and network filesystems.
struct DeviceTraffic {
  Bytes read;
  Bytes written;
};

/// The counts of /proc/self/io; nothing if the kernel does not account.
std::optional<DeviceTraffic> device_traffic();

/// A new directory of our own that is removed with all it holds when this goes out of scope, also on errors.
class ScratchDirectory {
 public:
  /// Makes `parent`/assay-XXXXXX. Throws std::system_error.
  explicit ScratchDirectory(const std::string& parent);
  ~ScratchDirectory();
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;
  /// The absolute path.
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace assay
