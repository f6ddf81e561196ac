// durability_ledger: acknowledged writes of a rank, kept by another rank, and their state after a fault.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "probes/core/units.h"
#include "workloads/durability/durable_block.h"

namespace assay::durability {

/// The last acknowledged generation of each place that a stream of one writer wrote to.
using Ledger = std::map<DurableItem, std::uint64_t>;

/// Paths of a stream's files.
std::string slots_path(const std::string& folder, std::uint64_t writer, std::uint32_t stream);
std::string log_path(const std::string& folder, std::uint64_t writer, std::uint32_t stream);
std::string name_path(const std::string& folder, std::uint64_t writer, std::uint32_t stream, std::uint32_t index);

/// State of one operation's acknowledged writes.
struct DurableTally {
  std::uint64_t acknowledged = 0, lost = 0, rolled_back = 0, torn = 0;
  std::string first_bad;
  void add(const DurableTally& other);
};

/// Reads every place of `ledger`, which the stream of `writer` wrote to in `folder`, and adds to `tallies`. Where the
/// storage refuses it asks again. Throws std::runtime_error when it has refused for `patience`, or has to stop.
void check_ledger(const Ledger& ledger, const std::string& folder, const DurableWrite& writer, Seconds patience,
                  std::map<DurableOperation, DurableTally>& tallies);

}  // namespace assay::durability
