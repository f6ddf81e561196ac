// nvlinks: a GPU's NVLinks, how many are up, the facts of each, and its links to the processor of its module.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "probes/nvml/nvml_gpu.h"

namespace assay::nvml {

/// The links of one GPU.
struct NvLinks {
  unsigned active = 0;
  unsigned inactive = 0;
  /// Errors of all links since the driver was loaded: replays, recoveries and CRC errors up to NVLink 4; malformed
  /// packets, overruns, receive and integrity errors and recoveries from NVLink 5. One event may count in several of
  /// them.
  std::optional<std::uint64_t> errors;
};

/// One link; unreported values are absent.
struct NvLinkFacts {
  unsigned number = 0;
  bool active = false, sleeping = false;    ///< a sleeping link is active and wakes with traffic
  std::optional<double> speed;              ///< B/s in one direction
  std::optional<std::uint64_t> recoveries;  ///< since the driver was loaded, successful or not
  std::optional<double> effective_ber;      ///< errors a bit that error correction left; 1.5e-254 is the least
  std::optional<double> symbol_ber;         ///< symbols with errors, likewise
};

/// All links of one GPU of one kind.
struct LinkFacts {
  std::vector<NvLinkFacts> links;           ///< by number
  std::string states;                       ///< "active: 0-16; sleeping: 17"
  std::string remote_ends;                  ///< "switch 0000:05:00.0: 0-17"; empty if none is reported
  std::vector<std::string> contradictions;  ///< answers that cannot all be right, in words; both are kept
};

/// A bit error rate as NVML packs it: the exponent to ten, negative, in bits 0 to 7, the mantissa in bits 8 to 11
/// (nvml.h 12.6). Nothing if `packed` has other bits, or if the rate is above 1.
std::optional<double> bit_error_rate(double packed);

/// "0-2 5 7-8": ascending numbers with neighbours joined.
std::string ranges_of(const std::vector<unsigned>& numbers);

/// Every NVLink of `gpu`. Absent if it has none.
Answer<LinkFacts> read_nvlink_facts(const NvmlGpu& gpu);

/// Its NVLink-C2C links, of whose figures only the speed is known, and their errors.
struct C2cLinks {
  LinkFacts facts;
  std::optional<std::uint64_t> errors;  ///< CRC errors and replays since the driver was loaded; from driver 575
};

/// Absent if it has none.
Answer<C2cLinks> read_c2c_links(const NvmlGpu& gpu);

/// The links of `gpu`: as many as the driver says it has, else all that it answers for. Absent if it has none.
Answer<NvLinks> read_nvlinks(const NvmlGpu& gpu);

}  // namespace assay::nvml
