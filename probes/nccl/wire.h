// wire: the traffic of network adapters behind a bus bandwidth, for the algorithm of which a log shows it.
//
// A ring of n ranks goes through every node once: in each channel one rank sends to the next node. Of a size S, as
// nccl-tests counts it, every link of the ring carries S/n in each of 2(n-1) steps for all_reduce, and of n-1 steps for
// all_gather and reduce_scatter (Patarasuk & Yuan, J. Parallel Distrib. Comput. 69, 2009). That is S times the factor
// of busbw (nccl-tests, doc/PERFORMANCE.md), so every node sends at the rate of busbw, with any number of nodes and
// of GPUs on each. Channels have equal parts; an adapter by which c of C channels leave the node sends at busbw c / C.
// Example: 8 adapters of 50 GB/s, 16 channels, two on each adapter: all are full at a busbw of 400 GB/s; 4 adapters
// with four channels each are at 200 GB/s.
//
// Of no other algorithm busbw is the traffic of a link: a tree of two nodes sends S once, NVLS and CollNet reduce in
// switches. LL and LL128 send flags with the data. Of all these, and of an adapter of unknown rate, there is none.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "probes/nccl/log.h"

namespace assay::nccl {

/// How one node sends to others.
struct NodeWays {
  std::map<std::int64_t, std::set<std::int64_t>> adapters;  ///< by which each channel leaves the node
  std::map<std::int64_t, double> rates;                     ///< line rate of an adapter in one direction, in B/s
};

/// The busbw in B/s at which the first adapter of `nodes` is at its line rate. `choices` is how NCCL ran the size.
/// Nothing unless all are a ring by SIMPLE over two nodes or more, and every channel leaves each node by one adapter of
/// known rate.
std::optional<double> wire_rate(const std::vector<NodeWays>& nodes, const std::vector<Choice>& choices);

/// B/s of the file `rate` of a port below /sys/class/infiniband, "400 Gb/sec (4X NDR)"; nothing for another text.
std::optional<double> line_rate(std::string_view text);

}  // namespace assay::nccl
