// machine_tree: the files under /proc and /sys in which a machine describes itself, real or made for a test.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

/// One tree. Paths are relative to its root ("sys/block"). A missing or unreadable file is nothing, never an error: an
/// inventory is as complete as the machine allows.
class MachineTree {
 public:
  /// `root` is "/" for this machine.
  explicit MachineTree(std::string root);

  /// Text of a small file without white space around it; nothing if it is empty or a placeholder (see told()).
  [[nodiscard]] std::optional<std::string> text(const std::string& path) const;
  /// A whole number in decimal that fills the file.
  [[nodiscard]] std::optional<std::int64_t> number(const std::string& path) const;
  /// Every byte of a file of at most `max_bytes`.
  [[nodiscard]] std::optional<std::string> bytes(const std::string& path, std::size_t max_bytes) const;
  /// Names in a directory, sorted; empty if it is not there.
  [[nodiscard]] std::vector<std::string> names(const std::string& path) const;
  /// Whether the path exists, links followed.
  [[nodiscard]] bool exists(const std::string& path) const;
  /// Last component of where the link at `path` leads ("driver" -> "mlx5_core").
  [[nodiscard]] std::optional<std::string> target_name(const std::string& path) const;
  /// The PCI function that `path` leads to or through, the innermost one ("0000:1b:00.0"); nothing for other buses.
  [[nodiscard]] std::optional<std::string> pci_address(const std::string& path) const;
  /// The way to that function from its host bridge, which comes first: {"pci0000:17", "0000:17:01.0", "0000:18:00.0"}.
  /// Empty for other buses.
  [[nodiscard]] std::vector<std::string> pci_route(const std::string& path) const;
  /// Whether this is the machine the probe runs on, so that its kernel can be asked beyond the tree.
  [[nodiscard]] bool is_this_machine() const { return root_.empty(); }

 private:
  [[nodiscard]] std::string full(const std::string& path) const { return root_ + "/" + path; }
  std::string root_;  // without a final slash
};

/// `text` without white space around it; nothing if it is empty or a placeholder of makers ("Not Specified", "To Be
/// Filled By O.E.M.").
std::optional<std::string> told(std::string_view text);

/// The physical core of a logical CPU: the list of its threads, or where the kernel has none its package, die, cluster
/// and core_id, which alone repeats within a package. Nothing if the kernel has neither.
std::optional<std::string> core_of(const MachineTree& tree, int cpu);

/// The CPU numbers in a kernel list such as "0-3,8"; nothing if the text is anything else or has over 65,536 CPUs.
std::optional<std::vector<int>> parse_cpu_list(std::string_view text);

}  // namespace assay
