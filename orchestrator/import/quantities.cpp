// quantities: which figure of a tool is which metric of a probe, and the settings in which they may differ.
#include "orchestrator/import/quantities.h"

#include <algorithm>

#include <fmt/format.h>

#include "orchestrator/import/reading.h"
#include "orchestrator/plan/lint.h"
#include "probes/core/text.h"

namespace assay::imports {
namespace {

/// A quantity of a tool, and the metric of a probe with the same definition. `where` and `is` restrict the tool's to
/// one value of a coordinate, `parameter` and `own_is` the probe's to one value of a parameter; empty: any. OSU's
/// bandwidth is in none: its transport is not known. Nor is its allgather, whose size is that of one rank.
struct QuantityMapping {
  const char *tool, *metric, *where, *is;
  const char *probe, *own_metric, *parameter, *own_is;
};
constexpr QuantityMapping kMappings[] = {
    {"nccl-tests", "busbw", "place", "out_of_place", "nccl_collective", "busbw", "", ""},
    {"nccl-tests", "algbw", "place", "out_of_place", "nccl_collective", "algbw", "", ""},
    {"nccl-tests", "time", "place", "out_of_place", "nccl_collective", "time", "", ""},
    {"nccl-tests", "mismatches", "place", "out_of_place", "nccl_collective", "mismatches", "", ""},
    {"rccl-tests", "busbw", "place", "out_of_place", "rccl_collective", "busbw", "", ""},
    {"rccl-tests", "algbw", "place", "out_of_place", "rccl_collective", "algbw", "", ""},
    {"rccl-tests", "time", "place", "out_of_place", "rccl_collective", "time", "", ""},
    {"rccl-tests", "mismatches", "place", "out_of_place", "rccl_collective", "mismatches", "", ""},
    {"hccl-test", "algbw", "", "", "hccl_collective", "algbw", "", ""},
    {"hccl-test", "time", "", "", "hccl_collective", "time", "", ""},
    {"perftest", "bandwidth", "verb", "RDMA_Write", "verbs_bandwidth", "bandwidth_forward", "operation", "write"},
    {"perftest", "bandwidth", "verb", "RDMA_Write", "verbs_bandwidth", "bandwidth_backward", "operation", "write"},
    {"perftest", "bandwidth", "verb", "RDMA_Read", "verbs_bandwidth", "bandwidth_forward", "operation", "read"},
    {"perftest", "bandwidth", "verb", "RDMA_Read", "verbs_bandwidth", "bandwidth_backward", "operation", "read"},
    {"perftest", "bandwidth", "verb", "Send", "verbs_bandwidth", "bandwidth_forward", "operation", "send"},
    {"perftest", "bandwidth", "verb", "Send", "verbs_bandwidth", "bandwidth_backward", "operation", "send"},
    {"perftest", "bandwidth_both_directions", "verb", "RDMA_Write", "verbs_bandwidth", "bandwidth_both", "operation",
     "write"},
    {"perftest", "bandwidth_both_directions", "verb", "RDMA_Read", "verbs_bandwidth", "bandwidth_both", "operation",
     "read"},
    {"perftest", "bandwidth_both_directions", "verb", "Send", "verbs_bandwidth", "bandwidth_both", "operation", "send"},
    {"perftest", "latency", "verb", "RDMA_Write", "verbs_latency", "latency", "operation", "write"},
    {"perftest", "latency", "verb", "RDMA_Read", "verbs_latency", "latency", "operation", "read"},
    {"perftest", "latency", "verb", "Send", "verbs_latency", "latency", "operation", "send"},
    {"nvbandwidth", "bandwidth", "test", "host_to_device_memcpy_ce", "cuda_host_link", "h2d_bandwidth", "schedule",
     "one_by_one"},
    {"nvbandwidth", "bandwidth", "test", "device_to_host_memcpy_ce", "cuda_host_link", "d2h_bandwidth", "schedule",
     "one_by_one"},
    {"nvbandwidth", "bandwidth", "test", "host_to_device_memcpy_sm", "cuda_host_link", "h2d_bandwidth_sm", "schedule",
     "one_by_one"},
    {"nvbandwidth", "bandwidth", "test", "device_to_host_memcpy_sm", "cuda_host_link", "d2h_bandwidth_sm", "schedule",
     "one_by_one"},
    {"nvbandwidth", "bandwidth", "test", "device_to_device_memcpy_write_ce", "cuda_peer_bandwidth", "write_bandwidth",
     "", ""},
    {"nvbandwidth", "bandwidth", "test", "device_to_device_memcpy_read_ce", "cuda_peer_bandwidth", "read_bandwidth", "",
     ""},
    {"nvbandwidth", "bandwidth", "test", "device_to_device_memcpy_write_sm", "cuda_peer_bandwidth",
     "write_bandwidth_sm", "", ""},
    {"nvbandwidth", "bandwidth", "test", "device_to_device_memcpy_read_sm", "cuda_peer_bandwidth", "read_bandwidth_sm",
     "", ""},
    {"fio", "bandwidth", "direction", "read", "storage_bandwidth", "read_bandwidth", "", ""},
    {"fio", "bandwidth", "direction", "write", "storage_bandwidth", "write_bandwidth", "", ""},
    {"fio", "iops", "direction", "read", "storage_iops", "read_iops", "", ""},
    {"fio", "iops", "direction", "write", "storage_iops", "write_iops", "", ""},
    {"osu", "latency", "test", "OSU MPI Allreduce Latency Test", "host_collective", "time", "operation", "all_reduce"},
};

/// A setting of a tool (a coordinate of its figures, or a fact of its output), and the parameter of a probe that is the
/// same; where the probe always does the same, `own_is`. "nodes" is how many the step has.
struct SettingMapping {
  const char *tool, *setting, *probe, *own_metric, *parameter, *own_is;
};
constexpr SettingMapping kSettingMappings[] = {
    {"fio", "rw", "storage_bandwidth", "read_bandwidth", "", "read"},
    {"fio", "rw", "storage_bandwidth", "write_bandwidth", "", "write"},
    {"fio", "rw", "storage_iops", "read_iops", "", "randread"},
    {"fio", "rw", "storage_iops", "write_iops", "", "randwrite"},
    {"fio", "bs", "storage_bandwidth", "", "block_size", ""},
    {"fio", "bs", "storage_iops", "", "block_size", ""},
    {"fio", "iodepth", "storage_bandwidth", "", "queue_depth", ""},
    {"fio", "iodepth", "storage_iops", "", "queue_depth", ""},
    {"fio", "numjobs", "storage_iops", "", "jobs", ""},
    {"fio", "numjobs", "storage_bandwidth", "", "", "1"},
    {"nccl-tests", "type", "nccl_collective", "", "type", ""},
    {"nccl-tests", "redop", "nccl_collective", "", "", "sum"},
    {"nccl-tests", "nodes", "nccl_collective", "", "nodes", ""},
    {"rccl-tests", "type", "rccl_collective", "", "type", ""},
    {"rccl-tests", "redop", "rccl_collective", "", "", "sum"},
    {"rccl-tests", "nodes", "rccl_collective", "", "nodes", ""},
    {"rccl-tests", "ranks", "rccl_collective", "", "ranks", ""},
    {"nccl-tests", "ranks", "nccl_collective", "", "ranks", ""},
    {"hccl-test", "type", "hccl_collective", "", "type", ""},
    {"hccl-test", "redop", "hccl_collective", "", "", "sum"},
    {"hccl-test", "npus_per_node", "hccl_collective", "", "npus_per_node", ""},
    {"perftest", "qps", "verbs_bandwidth", "", "qps", ""},
    {"perftest", "memory", "verbs_bandwidth", "", "memory", ""},
    {"perftest", "memory", "verbs_latency", "", "memory", ""},
};

/// A word of a tool in ours; a number as one.
Value in_our_words(const Value& theirs) {
  constexpr std::pair<std::string_view, std::string_view> kTypes[] = {
      {"float", "fp32"}, {"half", "fp16"}, {"double", "fp64"}, {"bfloat16", "bf16"}};
  const auto* word = std::get_if<std::string>(&theirs);
  if (word == nullptr) return theirs;
  const auto* type = std::ranges::find(kTypes, *word, [](const auto& one) { return one.first; });
  if (type != std::end(kTypes)) return std::string(type->second);
  const auto number = whole_from(*word);
  return number ? Value(*number) : theirs;
}

/// Whether a tool's statistic compares with the requirement's: a mean with a median, a count of faults with any, an
/// extreme or a percentile with its own.
bool same_statistic(const std::string& theirs, plan::Statistic own) {
  if (theirs == "count") return true;
  if (theirs == "mean" || theirs == "p50") return own == plan::Statistic::median;
  return theirs == word_of(own);
}

const Value* value_at(const Values& values, const std::string& name) {
  const auto found = values.find(name);
  return found == values.end() ? nullptr : &found->second;
}

/// Whether `values` has `name` as text `is`; an empty name asks nothing.
bool has_value(const Values& values, std::string_view name, std::string_view is) {
  if (name.empty()) return true;
  const auto found = values.find(std::string(name));
  return found != values.end() && found->second == Value(std::string(is));
}

/// Whether the requirement is of the figure's size: by its coordinates, else by the one size of its step. Of no size at
/// all is also nvbandwidth's, where neither the document nor the command states it.
bool same_size(const std::string& tool, const Values& figure, const plan::Requirement& requirement,
               const Values& parameters) {
  const Value* theirs = value_at(figure, "size");
  if (theirs == nullptr && tool == "nvbandwidth") return true;
  const Value* own = value_at(requirement.at, "size");
  if (own == nullptr) own = value_at(parameters, "size");
  const auto sizes = plan::sizes_in(parameters);
  const Value only(sizes.size() == 1 ? sizes.front() : std::int64_t{0});
  if (own == nullptr && !sizes.empty()) own = &only;
  return theirs == nullptr || own == nullptr ? theirs == own : *theirs == *own;
}

bool maps(const QuantityMapping& mapping, const std::string& tool, const judge::Figure& figure,
          const plan::Requirement& requirement, const Values& parameters) {
  const Value* operation = value_at(parameters, "operation");  // where the mapping does not name it, the figure must
  const Value* theirs = value_at(figure.at, "operation");
  const bool own_operation = operation == nullptr || std::string_view(mapping.parameter) == "operation" ||
                             (theirs != nullptr && *theirs == *operation);
  return mapping.tool == tool && mapping.metric == figure.metric && mapping.probe == requirement.probe &&
         mapping.own_metric == requirement.metric && has_value(figure.at, mapping.where, mapping.is) &&
         has_value(parameters, mapping.parameter, mapping.own_is) && own_operation &&
         same_statistic(figure.statistic, requirement.statistic) && same_size(tool, figure.at, requirement, parameters);
}

/// Whether the requirement is of the tool's own figures: its probe is the tool's name, and each of its parameters is a
/// coordinate of the figure or its statistic.
bool is_of_tool(const std::string& tool, const judge::Figure& figure, const plan::Requirement& requirement) {
  std::string name = tool;
  std::ranges::replace(name, '-', '_');
  if (requirement.probe != name || requirement.metric != figure.metric) return false;
  const auto agrees = [&](const auto& one) {
    const Value* theirs = value_at(figure.at, one.first);
    return one.first == "statistic" ? one.second == Value(figure.statistic)
                                    : theirs != nullptr && *theirs == one.second;
  };
  return std::ranges::all_of(requirement.parameters, agrees) &&
         (requirement.parameters.contains("statistic") || same_statistic(figure.statistic, requirement.statistic));
}

}  // namespace

bool same_quantity(const std::string& tool, const judge::Figure& figure, const plan::Requirement& requirement,
                   const Values& parameters) {
  return is_of_tool(tool, figure, requirement) || std::ranges::any_of(kMappings, [&](const QuantityMapping& mapping) {
           return maps(mapping, tool, figure, requirement, parameters);
         });
}

std::string first_difference(const judge::ImportSource& source, const judge::Figure& figure,
                             const plan::Requirement& requirement, const Values& parameters, bool stated) {
  if (const Value* condition = value_at(figure.at, "conditions")) return to_json(*condition).dump();
  for (const auto& one : kSettingMappings) {
    if (one.tool != source.tool || one.probe != requirement.probe) continue;
    if (*one.own_metric != '\0' && one.own_metric != requirement.metric) continue;
    const Value* theirs = value_at(figure.at, one.setting);
    if (theirs == nullptr) theirs = value_at(source.facts, one.setting);
    const Value always = in_our_words(Value(std::string(one.own_is)));
    const Value* own = *one.parameter == '\0' ? &always : value_at(parameters, one.parameter);
    if (theirs == nullptr && own != nullptr && stated && one.setting != std::string_view("redop"))
      return fmt::format("{} not stated, ours {}", one.setting, to_json(*own).dump());
    if (theirs == nullptr || own == nullptr || in_our_words(*theirs) == *own) continue;
    return fmt::format("{} {}, ours {}", one.setting, to_json(*theirs).dump(), to_json(*own).dump());
  }
  return "";
}

std::string coordinates(const Values& at) {
  std::string text;
  for (const auto& [name, value] : at) {
    const auto* words = std::get_if<std::string>(&value);
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", harmless(name),
                        words != nullptr ? harmless(*words) : to_json(value).dump());
  }
  return text;
}

}  // namespace assay::imports
