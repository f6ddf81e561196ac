// kernel_settings: settings of the kernel, the processors and the memory that tuning guides ask for.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "probes/core/record.h"

namespace assay {
class MachineTree;
}  // namespace assay

namespace assay::health {

/// A file of one line of printable ASCII of at most `longest` bytes: anything else is no setting.
std::optional<std::string> line_of(const MachineTree& tree, const std::string& path, std::size_t longest = 255);

/// The numbers of the files in `directory` that are named by a number and hold 1, in ascending order: "0 3"; "none";
/// nothing if a file holds anything but 0 or 1, or none is there.
std::optional<std::string> numbers_on(const MachineTree& tree, const std::string& directory);

/// Kernel, memory, clock source, mitigations, and the limits of this process: the conditions of host_configuration by
/// name. A value that is unreadable or out of its range is absent.
Values kernel_settings(const MachineTree& tree);

/// Clock policy, deepest state that may be entered while idle, and whether cores run two threads.
Values processor_settings(const MachineTree& tree);

/// Versions and parameters of the kernel modules that GPUs and RDMA use.
Values module_settings(const MachineTree& tree);

/// "off", "passthrough", "translated", "unmanaged" or "blocked" for the domain of one IOMMU group, or by the
/// command line; "mixed: a, b" where the functions at `addresses` differ, of all groups if there is no
/// address. Nothing if the kernel shows neither.
std::optional<std::string> iommu_mode(const MachineTree& tree, const std::vector<std::string>& addresses);

/// Bytes of the huge pages that are reserved; nothing if the kernel has none.
std::optional<double> huge_pages_reserved(const MachineTree& tree);

}  // namespace assay::health
