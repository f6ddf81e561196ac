// peer_link: pairs of GPUs of a node: what the vendor's libraries know of them, and copies from one to the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "probes/core/units.h"
#include "probes/core/words.h"
#include "probes/cuda/device.h"

namespace assay::cuda {

/// How one GPU reaches the memory of another.
enum class PeerAccess { nvlink, xgmi, pcie, none };

constexpr auto words_of(PeerAccess) { return names_as_words<PeerAccess>(); }

/// PeerAccess of two NVIDIA GPUs: none unless each may `access` the other; NVLink when NVML says so or, where it says
/// nothing, when the link carries native atomics, which PCIe does not.
PeerAccess peer_access(bool access, std::optional<bool> nvml_says_nvlink, bool native_atomics);

/// What is known of an ordered pair.
struct PeerFacts {
  PeerAccess access = PeerAccess::none;
  std::optional<int> performance_rank;  ///< the CUDA runtime's relative value of the link; lower is better
  std::optional<std::int64_t> hops;     ///< links from one to the other, where the vendor's library counts them
};

/// PeerFacts of every pair, n x n, row = source; each side may access the other, or access is none.
std::vector<PeerFacts> peer_facts(const std::vector<Device>& devices);

/// Opens the memory of `peer` to `device`, which is then current.
void open_peer(const Device& device, const Device& peer);

/// Enqueues a copy by a copy engine from memory of one GPU to that of another.
void copy_between(std::byte* target, const Device& target_device, const std::byte* source, const Device& source_device,
                  Bytes size, const Stream& stream);

}  // namespace assay::cuda
