// fleet_rack: the figures of a rack as one subject: a pair is as fast as the slower of its GPUs, and all as the planes.
#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "orchestrator/simulate/fleet_model.h"

namespace assay::simulate {
namespace {

constexpr int kPlanes = 18;  // NVLinks of a GPU of an NVL72

/// The subjects of a figure of cuda_rack_bandwidth.
enum class Of { pairs, gpus, trays, rack, links, planes };

struct RackMetric {
  std::string_view metric;
  Of of;
};
constexpr RackMetric kRackMetrics[] = {
    {"write_bandwidth", Of::pairs},     {"read_bandwidth", Of::pairs},       {"mismatches", Of::pairs},
    {"gpu_send_bandwidth", Of::gpus},   {"gpu_receive_bandwidth", Of::gpus}, {"bisection_gpu_bandwidth", Of::gpus},
    {"all_to_one_bandwidth", Of::gpus}, {"multicast_bandwidth", Of::gpus},   {"tray_bandwidth", Of::trays},
    {"rack_median", Of::rack},          {"rack_minimum", Of::rack},          {"bisection_bandwidth", Of::rack},
    {"link_faults", Of::links},         {"plane_faults", Of::planes}};

/// One GPU: its name, and the share that is left of its bandwidth.
struct RackPart {
  std::string node, name;
  double left = 1;
  int bad_links = 0;
};

}  // namespace

bool FleetModel::record_rack(Recorder& recorder, const MadeUpMetric& quantity, const plan::Step& step,
                             const std::string& occasion) const {
  const auto* const known = std::ranges::find(kRackMetrics, quantity.metric, &RackMetric::metric);
  if (step.probe != "cuda_rack_bandwidth" || known == std::end(kRackMetrics)) return false;
  double planes = 1;
  for (const auto& part : simulation_.faults.parts) planes = part.node.empty() ? std::min(planes, part.factor) : planes;
  std::vector<RackPart> gpus;
  for (const auto& node : step.nodes) {
    const int here = plan::designed_parts(plan_.profile, *nodes_.at(node), "gpu").value_or(1);
    for (int gpu = 0; gpu < here; ++gpu) {
      gpus.push_back({.node = node,
                      .name = fmt::format("{}/gpu{}", node, gpu),
                      .left = share_left({node}, quantity.metric, occasion, false)});
      for (const auto& part : simulation_.faults.parts) {
        if (part.node != node || part.gpu != gpu) continue;
        gpus.back().left = std::min(gpus.back().left, part.factor);
        gpus.back().bad_links += part.link ? 1 : 0;
      }
    }
  }
  const auto record = [&](const char* kind, const std::string& id, double share) {
    record_samples(recorder, quantity, {.kind = kind, .id = id}, quantity.centre, occasion,
                   [&](double healthy) { return healthy * share * planes; });
  };
  // A count is 0 unless something is wrong; of a pair a fault that names the metric, of a node that sends.
  const auto count = [&](const char* kind, const std::string& id, double value) {
    recorder.measurement(quantity.metric, value, {.kind = kind, .id = id}, quantity.at);
  };
  const bool counts = quantity.metric == "mismatches";
  for (const auto& source : gpus) {
    if (known->of == Of::gpus) record("group", source.name, source.left);
    if (known->of == Of::links) count("group", source.name, source.bad_links);
    for (const auto& target : gpus) {
      if (known->of != Of::pairs || &source == &target) continue;
      const std::string id = source.name + ">" + target.name;
      if (counts)
        count("pair", id, share_left({source.node}, quantity.metric, occasion, true) < 1 ? 1 : 0);
      else
        record("pair", id, std::min(source.left, target.left));
    }
  }
  const auto slowest = std::ranges::min_element(gpus, {}, &RackPart::left)->left;
  if (known->of == Of::rack) record("group", step.id, quantity.metric == "rack_minimum" ? slowest : 1);
  for (std::size_t i = 0; known->of == Of::trays && i < gpus.size(); ++i) {
    if (i == 0 || gpus[i].node != gpus[i - 1].node)
      record("group", gpus[i].node, share_left({gpus[i].node}, quantity.metric, occasion, false));
  }
  for (int plane = 0; known->of == Of::planes && plane < kPlanes; ++plane) {
    const bool bad = std::ranges::any_of(simulation_.faults.parts,
                                         [&](const auto& part) { return part.node.empty() && part.link == plane; });
    count("group", fmt::format("plane {}", plane), bad ? static_cast<double>(gpus.size()) : 0);
  }
  return true;
}

}  // namespace assay::simulate
