// peer_access: what the answers of the runtime and of NVML mean together.
#include "probes/cuda/peer_link.h"

namespace assay::cuda {

PeerAccess peer_access(bool access, std::optional<bool> nvml_says_nvlink, bool native_atomics) {
  if (!access) return PeerAccess::none;
  return nvml_says_nvlink.value_or(native_atomics) ? PeerAccess::nvlink : PeerAccess::pcie;
}

}  // namespace assay::cuda
