// log: NCCL's log with NCCL_DEBUG=INFO and the subsystems INIT and TUNING. Written for the lines of NCCL 2.26 to 2.30;
// a line that is not exactly as known is passed over, so that unknown facts stay absent.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace assay::nccl {

/// How NCCL ran one size of a collective; rank 0 says so.
struct Choice {
  std::string function;    ///< "AllReduce"
  std::int64_t bytes = 0;  ///< NCCL's count times the size of the type; per rank for AllGather and ReduceScatter
  std::string algorithm;   ///< "RING", "TREE", "NVLS", …
  std::string protocol;    ///< "LL", "LL128", "SIMPLE"
  std::int64_t channels = 0;
  friend auto operator<=>(const Choice&, const Choice&) = default;
};

/// Facts of one rank's log.
struct NcclLog {
  std::vector<Choice> choices;         ///< each once, in the order first seen
  std::set<std::string> transports;    ///< "P2P/CUMEM", "SHM", "NET/IB/GDRDMA", "NET/Socket", "COLLNET/SHARP", "NVLS"
  std::optional<std::string> network;  ///< "IB", "Socket", or a plug-in's name
  std::optional<bool> multicast;       ///< whether NVLink multicast, which NVLS needs, is available
  std::map<std::int64_t, std::set<std::int64_t>> sends;  ///< by channel, adapters of NET/IB over which this rank sends
  std::map<std::int64_t, std::string> adapters;          ///< "mlx5_0:1", as NET/IB numbers them
  std::vector<std::string> warnings;                     ///< texts of NCCL WARN, at most 20
};

/// Reads a whole log.
NcclLog read_nccl_log(std::string_view text);

}  // namespace assay::nccl
