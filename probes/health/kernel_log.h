// kernel_log: the errors that the NVIDIA driver has logged since boot: Xid events in the kernel's log.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay::health {

/// The kernel's log, or why there is none.
struct KernelLog {
  std::string text;           ///< lines, oldest first
  std::optional<bool> whole;  ///< whether it begins at boot; nothing if there is no log
  std::string absence;        ///< why it cannot be read; empty if it can
};

/// Reads the kernel's log: /dev/kmsg to its present end, or a file that a person saved (`dmesg`, `journalctl -k`). At
/// most 256 MiB of a file are taken; a longer one is not whole.
KernelLog read_kernel_log(const std::string& path);

/// One complaint of the driver.
struct XidEvent {
  std::string pci_address;  ///< of the GPU, without the function: "0000:ba:00"
  int number = 0;           ///< number in NVIDIA's list of Xid errors
  friend bool operator==(const XidEvent&, const XidEvent&) = default;
};

/// Every "NVRM: Xid (PCI:0000:ba:00): 79, …" in `text`, in its order; with or without "PCI:" and with or without a
/// function.
std::vector<XidEvent> find_xid_events(std::string_view text);

/// "48, 63 (3 times)": the numbers of events, ascending.
std::string words_of(const std::vector<int>& numbers);

}  // namespace assay::health
