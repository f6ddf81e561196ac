// dpus: adapters with processors of their own (NVIDIA BlueField), as the PCI bus and the tool of their firmware show
// them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay {
class MachineTree;
}  // namespace assay

namespace assay::health {

/// One adapter.
struct Dpu {
  std::string address;  ///< its first network function, "0000:17:00.0"
  std::string model;    ///< "BlueField-3"
  bool rshim = false;   ///< whether the machine has a function by which it reaches the registers of the adapter's own
                        ///< processors (RShim), on the same bus
};

/// All of them, by address.
std::vector<Dpu> read_dpus(const MachineTree& tree);

/// Whether the machine is itself such an adapter, by the platform devices of its kernel.
bool is_dpu(const MachineTree& tree);

/// The mode in force in the output of `mlxconfig -e q`, whose columns are default, current and next boot: dpu (its own
/// processors forward), nic (they do not), separated (each side has ports of its own). Nothing where the output does
/// not name it in this form.
std::optional<std::string> mode_in(std::string_view text);

}  // namespace assay::health
