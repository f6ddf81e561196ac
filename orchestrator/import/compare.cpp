// compare: matches imported figures with the results of a run, and prints both.
#include "orchestrator/import/compare.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "probes/core/scale.h"
#include "probes/core/text.h"

namespace assay::imports {
namespace {

/// A quantity of a tool, and the metric of a probe with the same definition. `where` and `is` restrict the tool's to
/// one value of a coordinate, `parameter` and `own_is` the probe's to one value of a parameter; empty: any.
struct QuantityMapping {
  const char *tool, *metric, *where, *is;
  const char *probe, *own_metric, *parameter, *own_is;
};
constexpr QuantityMapping kMappings[] = {
    {"nccl-tests", "busbw", "", "", "nccl_collective", "busbw", "", ""},
    {"nccl-tests", "algbw", "", "", "nccl_collective", "algbw", "", ""},
    {"nccl-tests", "time", "", "", "nccl_collective", "time", "", ""},
    {"nccl-tests", "mismatches", "", "", "nccl_collective", "mismatches", "", ""},
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
    {"nvbandwidth", "bandwidth", "test", "host_to_device_memcpy_ce", "cuda_host_link", "h2d_bandwidth", "", ""},
    {"nvbandwidth", "bandwidth", "test", "device_to_host_memcpy_ce", "cuda_host_link", "d2h_bandwidth", "", ""},
    {"nvbandwidth", "bandwidth", "test", "host_to_device_memcpy_sm", "cuda_host_link", "h2d_bandwidth_sm", "", ""},
    {"nvbandwidth", "bandwidth", "test", "device_to_host_memcpy_sm", "cuda_host_link", "d2h_bandwidth_sm", "", ""},
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
    {"osu", "bandwidth", "test", "OSU MPI Bandwidth Test", "host_tcp_bandwidth", "forward_bandwidth", "", ""},
    {"osu", "latency", "test", "OSU MPI Allreduce Latency Test", "host_collective", "time", "operation", "all_reduce"},
    {"osu", "latency", "test", "OSU MPI Allgather Latency Test", "host_collective", "time", "operation", "all_gather"},
};

/// A setting of a tool, and the parameter of a probe that is the same; where the probe always does the same, `own_is`.
struct SettingMapping {
  const char *tool, *setting, *probe, *own_metric, *parameter, *own_is;
};
constexpr SettingMapping kSettings[] = {
    {"fio", "rw", "storage_bandwidth", "read_bandwidth", "", "read"},
    {"fio", "rw", "storage_bandwidth", "write_bandwidth", "", "write"},
    {"fio", "rw", "storage_iops", "read_iops", "", "randread"},
    {"fio", "rw", "storage_iops", "write_iops", "", "randwrite"},
    {"fio", "bs", "storage_bandwidth", "", "block_size", ""},
    {"fio", "bs", "storage_iops", "", "block_size", ""},
    {"fio", "iodepth", "storage_bandwidth", "", "queue_depth", ""},
    {"fio", "iodepth", "storage_iops", "", "queue_depth", ""},
    {"fio", "numjobs", "storage_iops", "", "jobs", ""},
};

/// The first setting in which the figure and the requirement differ; empty if they agree in all common ones.
std::string first_difference(const std::string& tool, const judge::Figure& figure, const plan::Requirement& requirement,
                             const Values& parameters) {
  for (const auto& one : kSettings) {
    if (one.tool != tool || one.probe != requirement.probe) continue;
    if (*one.own_metric != '\0' && one.own_metric != requirement.metric) continue;
    const auto theirs = figure.at.find(one.setting);
    if (theirs == figure.at.end()) continue;
    const auto ours = parameters.find(one.parameter);
    if (*one.parameter != '\0' && ours == parameters.end()) continue;
    const Value own = *one.parameter == '\0' ? Value(std::string(one.own_is)) : ours->second;
    if (theirs->second == own) continue;
    return fmt::format("{} {}, ours {}", one.setting, to_json(theirs->second).dump(), to_json(own).dump());
  }
  return "";
}

/// Whether `values` has `name` as text `is`; an empty name asks nothing.
bool has_value(const Values& values, std::string_view name, std::string_view is) {
  if (name.empty()) return true;
  const auto found = values.find(std::string(name));
  return found != values.end() && found->second == Value(std::string(is));
}

/// Whether `a` and `b` have the same value of `name`, or one of them has none.
bool agree(const Values& a, const Values& b, const std::string& name) {
  const auto one = a.find(name), other = b.find(name);
  return one == a.end() || other == b.end() || one->second == other->second;
}

/// The parameters of the steps that the requirement is judged from; all steps of one requirement have the same.
Values parameters_of(const plan::Plan& plan, const plan::Requirement& requirement) {
  for (const auto& step : plan.steps) {
    if (step.probe == requirement.probe &&
        std::ranges::find(step.requirements, requirement.id) != step.requirements.end())
      return step.parameters;
  }
  return requirement.parameters;
}

bool same_quantity(const QuantityMapping& mapping, const std::string& tool, const judge::Figure& figure,
                   const plan::Requirement& requirement, const Values& parameters) {
  return mapping.tool == tool && mapping.metric == figure.metric && mapping.probe == requirement.probe &&
         mapping.own_metric == requirement.metric && has_value(figure.at, mapping.where, mapping.is) &&
         has_value(parameters, mapping.parameter, mapping.own_is) && agree(figure.at, requirement.at, "size") &&
         agree(figure.at, parameters, "operation");
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

}  // namespace

std::vector<Comparison> compare(const judge::Import& import, const plan::Plan& plan, const judge::Verdict& verdict) {
  std::map<std::string_view, std::vector<double>> values;
  for (const auto& result : verdict.results) {
    if (result.value) values[result.requirement].push_back(*result.value);
  }
  std::vector<Comparison> all;
  for (const auto& figure : import.figures) {
    for (const auto& requirement : plan.profile.requirements) {
      const auto ours = values.find(requirement.id);
      if (ours == values.end()) continue;
      const Values parameters = parameters_of(plan, requirement);
      if (std::ranges::none_of(kMappings, [&](const QuantityMapping& mapping) {
            return same_quantity(mapping, import.source.tool, figure, requirement, parameters);
          }))
        continue;
      if (auto differs = first_difference(import.source.tool, figure, requirement, parameters); !differs.empty()) {
        all.push_back({.theirs = figure, .requirement = requirement.id, .metric = "", .differs = std::move(differs)});
        continue;
      }
      std::ranges::sort(ours->second);
      const auto& sorted = ours->second;
      all.push_back({.theirs = figure,
                     .requirement = requirement.id,
                     .metric = fmt::format("{} {} {}", requirement.probe, requirement.metric, requirement.statistic),
                     .cells = sorted.size(),
                     .lowest = sorted.front(),
                     .median = (sorted[(sorted.size() - 1) / 2] + sorted[sorted.size() / 2]) / 2,
                     .highest = sorted.back(),
                     .differs = ""});
    }
  }
  return all;
}

std::string comparison_text(const judge::Import& import, const plan::Plan& plan, const judge::Verdict& verdict) {
  const auto pairs = compare(import, plan, verdict);
  std::string text = fmt::format(
      "{}{}{} beside run {}. Imported figures are not judged; their origin is not verified.\n", import.source.tool,
      import.source.version.empty() ? "" : " ", harmless(import.source.version), harmless(verdict.run_id));
  std::set<std::string> met;
  for (const auto& pair : pairs) {
    const auto shown = [&](double value) { return for_people(value, pair.theirs.unit); };
    if (met.insert(pair.theirs.from + pair.theirs.metric + pair.theirs.statistic).second) {
      text += fmt::format("{} {}, {} ({}): {}\n", pair.theirs.statistic, pair.theirs.metric,
                          coordinates(pair.theirs.at), harmless(pair.theirs.from), shown(pair.theirs.value));
    }
    if (!pair.differs.empty()) {
      text += fmt::format("    not comparable with requirement {}: {}\n", pair.requirement, pair.differs);
      continue;
    }
    const std::string range = pair.cells == 1 ? ""
                                              : fmt::format(" (median of {} cells, {} to {})", pair.cells,
                                                            shown(pair.lowest), shown(pair.highest));
    const std::string ratio =
        pair.theirs.value > 0 ? fmt::format(", ratio {:.4g}", pair.median / pair.theirs.value) : "";
    text += fmt::format("    assay: {}{}{}, requirement {}: {}\n", shown(pair.median), range, ratio, pair.requirement,
                        pair.metric);
  }
  std::size_t alone = 0;
  for (const auto& figure : import.figures)
    alone += met.contains(figure.from + figure.metric + figure.statistic) ? 0 : 1;
  return text + fmt::format("{} of {} figures have no counterpart in this run\n", alone, import.figures.size());
}

}  // namespace assay::imports
