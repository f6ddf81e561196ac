// gpudirect_storage: the library, its kernel driver and its configuration.
// Sources: NVIDIA GPUDirect Storage Installation and Troubleshooting Guide, JSON Config Parameters (allow_compat_mode,
// force_compat_mode), Cheat Sheet for Diagnosing Problems, NVMe P2PDMA Troubleshooting (use_pci_p2pdma).
#include "probes/health/gpudirect_storage.h"

#include <cstddef>

#include <fmt/format.h>

#include "probes/core/json_io.h"
#include "probes/core/machine_tree.h"

namespace assay::health {
namespace {

namespace gpudirect {

constexpr const char* kConfiguration = "etc/cufile.json";

/// The folders into which NVIDIA's and the distributions' packages put the library.
std::optional<std::string> library_in(const MachineTree& tree) {
  std::vector<std::string> folders = {"usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu", "usr/lib64"};
  for (const auto& name : tree.names("usr/local")) {
    if (!name.starts_with("cuda")) continue;
    for (const auto* below : {"lib64", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib"})
      folders.push_back(fmt::format("usr/local/{}/{}", name, below));
  }
  for (const auto& folder : folders) {
    if (tree.exists(folder + "/libcufile.so.0")) return folder + "/libcufile.so.0";
  }
  return std::nullopt;
}

/// The properties that the configuration states.
struct Properties {
  std::optional<bool> forces_compatibility, allows_compatibility, uses_p2pdma;
};

/// The fallback where data cannot go directly; releases of the library differ in their default.
std::string otherwise(const Properties& properties) {
  if (!properties.allows_compatibility) return "goes through host memory or gives an error";
  return *properties.allows_compatibility ? "goes through host memory without an error" : "gives an error";
}

/// Nothing if the file is there and cannot be understood.
std::optional<Properties> properties_in(const MachineTree& tree) {
  constexpr std::size_t kLargest = std::size_t{1} << 20;
  Properties found;
  if (!tree.exists(kConfiguration)) return found;
  const auto text = tree.bytes(kConfiguration, kLargest);
  if (!text) return std::nullopt;
  const auto read = parse_json(*text, kConfiguration, {.comments = true});
  if (!read || !read->is_object()) return std::nullopt;
  const auto at = read->find("properties");
  if (at == read->end()) return found;
  if (!at->is_object()) return std::nullopt;
  const auto take = [&](const char* name, std::optional<bool>& value) {
    const auto one = at->find(name);
    if (one == at->end()) return true;
    if (one->is_boolean()) value = one->get<bool>();
    return one->is_boolean();
  };
  const bool understood = take("force_compat_mode", found.forces_compatibility) &&
                          take("allow_compat_mode", found.allows_compatibility) &&
                          take("use_pci_p2pdma", found.uses_p2pdma);
  return understood ? std::optional(found) : std::nullopt;
}

}  // namespace gpudirect

}  // namespace

std::optional<GpudirectStorage> read_gpudirect_storage(const MachineTree& tree) {
  using namespace gpudirect;
  const auto library = library_in(tree);
  if (!library) return std::nullopt;
  GpudirectStorage found{.library = "/" + *library, .direct = std::nullopt, .state = ""};
  const auto properties = properties_in(tree);
  if (!properties) {
    found.state = fmt::format("not known: /{} cannot be understood", kConfiguration);
  } else if (properties->forces_compatibility.value_or(false)) {
    found.direct = false;
    found.state = fmt::format("compatibility mode, through host memory: force_compat_mode in /{}", kConfiguration);
  } else if (tree.exists("sys/module/nvidia_fs")) {
    found.direct = true;
    found.state =
        fmt::format("nvidia-fs {}; a file system that does not take it {}",
                    tree.text("sys/module/nvidia_fs/version").value_or("of unknown version"), otherwise(*properties));
  } else if (properties->uses_p2pdma.value_or(false)) {
    found.state = "not known: PCI P2PDMA is asked for, and only a load shows whether it is used";
  } else {
    found.direct = false;
    found.state = fmt::format("compatibility mode: nvidia-fs is not loaded, so that it {}", otherwise(*properties));
  }
  return found;
}

}  // namespace assay::health
