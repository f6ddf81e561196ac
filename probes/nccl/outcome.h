// outcome: the record of the ranks' answers.
#pragma once

#include <array>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "probes/collective/conductor.h"
#include "probes/collective/operation.h"
#include "probes/core/probe.h"
#include "probes/nccl/communicator.h"

namespace assay {
class Recorder;
}  // namespace assay

namespace assay::nccl {

/// Conditions that record_facts writes.
inline constexpr ConditionSpec kFactConditions[] = {
    {.name = "nccl_version", .meaning = "version of the NCCL library that was opened"},
    {.name = "nccl_library", .meaning = "path of that library"},
    {.name = "environment", .meaning = "NCCL_* variables in force, without those for logging, or none"},
    if_reported("transport",
                "ways between ranks that NCCL reports of all ranks, such as NET/IB/GDRDMA, NET/Socket, P2P/CUMEM, SHM, "
                "NVLS, sorted; where it reports any"),
    if_reported("fabric",
                "those of them that cross a network, such as NET/IB/GDRDMA or NET/Socket, where it reports any"),
    if_reported(
        "gpudirect",
        "whether every one of those reads and writes the GPUs' memory itself (GDRDMA), by whatever plug-in; true also "
        "where NVLink between nodes (P2P/MNNVL) is used and no network, absent where there is neither"),
    if_reported("network", "network that NCCL uses between nodes, where it names one"),
    if_reported("nvls", "whether NVLink multicast is available on every GPU, where NCCL says so"),
    if_reported("algorithm",
                "algorithms of the sizes measured, smallest size first, where NCCL names them (not for operations made "
                "of send and receive)"),
    if_reported("protocol", "protocols of the sizes measured, where NCCL names them"),
    if_reported("channels", "channels of the largest size, where NCCL names them"),
    {.name = "buffers", .meaning = "where buffers come from, ncclMemAlloc or cudaMalloc"},
    {.name = "launch_excluded",
     .meaning = "whether all work of a batch was enqueued before it began on each GPU, so that no launch is in a time"},
};

/// The same of RCCL, which knows no NVLS.
inline constexpr auto kRcclFactConditions = [] {
  std::array<ConditionSpec, std::size(kFactConditions) - 1> all = {};
  auto* to = all.data();
  for (const ConditionSpec& one : kFactConditions) {
    if (one.name != "nvls") *to++ = one;
    if (one.name == "buffers") to[-1].meaning = "where buffers come from, ncclMemAlloc or hipMalloc";
  }
  all[0] = {.name = kRccl.version_condition, .meaning = "version of NCCL that the RCCL that was opened is made from"};
  all[1].name = kRccl.library_condition;
  all[2].meaning = "NCCL_*, RCCL_* and HSA_* variables in force, without those for logging, or none";
  return all;
}();

/// Whether all of `transports` that cross a network are from GPU memory to GPU memory; nothing if none crosses one.
std::optional<bool> gpudirect_of(const std::set<std::string>& transports);

/// Records kFactConditions from the ranks' answers to "facts", and notes on the choice of each size and on warnings.
/// Facts that no rank reports are absent.
void record_facts(Recorder& record, const std::vector<nlohmann::json>& facts, const Product& product = kNccl);

/// The sizes of a measurement, until the ranks report at its end how NCCL ran them.
struct MeasuredSizes {
  struct Size {
    Sampling busbw;
    Subject subject;
    Values at;
  };
  collective::Operation operation = collective::Operation::all_reduce;
  collective::Element element = collective::Element::fp32;
  std::size_t ranks_per_node = 1;
  std::vector<Size> sizes = {};
};

/// Memory limit of one rank, from the answers of all ranks to "hello": memory_for_buffers() of the least. Throws
/// std::runtime_error when ranks have different versions of the library.
Bytes admitted(const std::vector<nlohmann::json>& hellos);

/// The library's part of a measurement: every rank has the same version, and at the end record_facts() of all ranks,
/// and wire_share and wire_rate of `measured` where wire.h has them. All outlive the result.
collective::LibraryRules nccl_rules(Recorder& record, MeasuredSizes& measured, const Product& product = kNccl);

/// The part of `free` device memory for buffers: NCCL's channels, its NVLS buffers and the kernels need the rest.
Bytes memory_for_buffers(Bytes free);

}  // namespace assay::nccl
