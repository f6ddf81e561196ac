// peer_access: what the answers of the runtime and of NVML mean together.
#include "probes/cuda/peer_link.h"

namespace assay::cuda {

std::string_view to_string(PeerAccess access) {
  switch (access) {
    case PeerAccess::nvlink:
      return "nvlink";
    case PeerAccess::xgmi:
      return "xgmi";
    case PeerAccess::pcie:
      return "pcie";
    case PeerAccess::none:
      return "none";
  }
  return "none";
}

PeerAccess peer_access(bool access, std::optional<bool> nvml_says_nvlink, bool native_atomics) {
  if (!access) return PeerAccess::none;
  return nvml_says_nvlink.value_or(native_atomics) ? PeerAccess::nvlink : PeerAccess::pcie;
}

}  // namespace assay::cuda
