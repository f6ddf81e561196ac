// Every limit of a built-in profile against what the hardware can do at most: a typo of a factor is found here.
#include <cmath>
#include <map>
#include <optional>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "orchestrator/plan/profile.h"

namespace assay::plan {
namespace {

constexpr double kLowest = 0.3;  // of its peak: a limit below that accepts hardware that is broken

/// What no node of a design can exceed, beside the peaks of its profile. Rates in B/s, one direction.
struct Design {
  double host_link = 0;  ///< PCIe x16 of that generation after 128b/130b coding, or NVLink-C2C
  double network = 0;    ///< of one GPU: its adapter's, or its NVLink's where nodes are joined by that
  double peer = 0;       ///< between two GPUs
  double board_w = 0;    ///< of one GPU
  double training = 0;   ///< FLOP/s of the eight GPUs of a node, BF16, dense
};

constexpr double kPcie4 = 31.5e9, kPcie5 = 63e9;

const std::map<std::string, Design> kDesigns = {
    {"nvidia-a100-sxm", {.host_link = kPcie4, .network = 25e9, .peer = 300e9, .board_w = 400}},
    {"nvidia-h100-sxm", {.host_link = kPcie5, .network = 50e9, .peer = 450e9, .board_w = 700}},
    {"nvidia-h200-sxm", {.host_link = kPcie5, .network = 50e9, .peer = 450e9, .board_w = 700}},
    {"nvidia-b200", {.host_link = kPcie5, .network = 50e9, .peer = 900e9, .board_w = 1000}},
    {"nvidia-gb200-nvl72", {.host_link = 450e9, .network = 900e9, .peer = 900e9, .board_w = 1200}},
    {"nvidia-h100-one", {.host_link = kPcie5, .board_w = 700}},
    {"nvidia-h200-one", {.host_link = kPcie5, .board_w = 700}},
    {"nvidia-b200-one", {.host_link = kPcie5, .board_w = 1000}},
    {"amd-mi300x", {.host_link = kPcie5, .network = 50e9, .peer = 64e9, .board_w = 750}},
    {"amd-mi325x", {.host_link = kPcie5, .network = 50e9, .peer = 64e9, .board_w = 1000}},
    {"amd-mi355x", {.host_link = kPcie5, .network = 50e9, .peer = 76.5e9, .board_w = 1400}},
    {"ascend-910c", {.peer = 392e9}},
    {"nvidia-gb200-nvl72-rack", {.network = 900e9, .peer = 900e9}},
    {"nvidia-gb300-nvl72-rack", {.network = 900e9, .peer = 900e9}},
    {"inference-h100", {.peer = 450e9}},
    {"inference-h200", {.peer = 450e9}},
    {"inference-b200", {.peer = 900e9}},
    {"train-llama3-70b-h100", {.training = 8 * 989e12}},
    {"train-llama3-70b-h200", {.training = 8 * 989e12}},
    {"train-llama3-70b-b200", {.training = 8 * 2250e12}},
};

/// A figure's link and the most that its way of counting can make of it.
struct Ceiling {
  double link = 0, most = 0;
};

std::string text_in(const Requirement& requirement, const std::string& name) {
  const auto found = requirement.parameters.find(name);
  if (found == requirement.parameters.end()) return "";
  const auto* text = std::get_if<std::string>(&found->second);
  return text == nullptr ? "" : *text;
}

/// Bus bandwidth between `gpus` GPUs of one node, or of two, each with a link of `link`.
Ceiling collective_peak(const Requirement& requirement, const Design& design, double gpus, double inside) {
  const std::string operation = text_in(requirement, "operation");
  const bool chosen = text_in(requirement, "algorithm").empty() && text_in(requirement, "nvls") != "0";
  // In switches, and by trees over two nodes, less crosses a link than the factor of the bus bandwidth assumes.
  const double factor = operation == "all_reduce" && chosen ? 2 : 1;
  if (requirement.scope == JudgedScope::node) return {inside, factor * inside};
  if (design.network == inside) return {inside, factor * inside};  // nodes are joined as GPUs in a node are
  if (operation == "send_recv") return {design.network, design.network};
  if (operation == "all_to_all") return {design.network, 2 * design.network};  // half of it stays in the node
  return {gpus * design.network, factor * gpus * design.network};
}

/// The peak of an absolute limit in a unit of rate or time; nothing when the table has none.
std::optional<Ceiling> peak_of(const Profile& profile, const Requirement& requirement) {
  const auto design = kDesigns.find(profile.name);
  if (design == kDesigns.end()) return std::nullopt;
  const auto& probe = requirement.probe;
  const auto& metric = requirement.metric;
  const auto of_profile = [&](const std::string& name) -> std::optional<Ceiling> {
    const auto peak = profile.peaks.find(name);
    return peak == profile.peaks.end() ? std::nullopt : std::optional(Ceiling{peak->second.value, peak->second.value});
  };
  if (probe == "transferbench") return Ceiling{design->second.peer, design->second.peer};
  if (probe == "rvs") {  // the type is in the id, "rvs.gst.fp8.random"
    const std::string type = requirement.id.substr(8, requirement.id.find('.', 8) - 8);
    return of_profile(type == "fp8" ? "fp8_e4m3" : type);
  }
  if (metric == "model_flop_rate") return Ceiling{design->second.training, design->second.training};
  if (probe.ends_with("_gemm") && metric.starts_with("throughput")) return of_profile(text_in(requirement, "type"));
  if (probe.ends_with("_gemm") && metric == "energy_efficiency") {
    auto peak = of_profile(text_in(requirement, "type"));
    if (peak) peak = Ceiling{peak->link / design->second.board_w, peak->most / design->second.board_w};
    return peak;
  }
  if (probe.ends_with("_hbm_bandwidth")) return of_profile("hbm");
  if (probe.ends_with("_host_link")) return Ceiling{design->second.host_link, design->second.host_link};
  if (probe.ends_with("_peer_bandwidth")) {
    const bool own_link_each = profile.name.starts_with("amd-");  // to each of seven others; NVSwitch has all in one
    const double times = metric == "duplex_bandwidth" ? 2 : metric == "all_pairs_bandwidth" && own_link_each ? 7 : 1;
    return Ceiling{times * design->second.peer, times * design->second.peer};
  }
  if (probe == "cuda_rack_bandwidth") return Ceiling{design->second.peer, design->second.peer};
  if (profile.name.ends_with("-rack") && metric == "busbw")
    return collective_peak(requirement, design->second, 72, design->second.peer);
  if (metric == "dispatch_rate" || metric == "combine_rate")  // a GPU's own copies, one of eight, cross no link
    return Ceiling{design->second.peer, design->second.peer * 8 / 7};
  if (probe.ends_with("_collective") && metric == "busbw") {
    for (const char* name : {"nvlink", "infinity_fabric", "unified_bus"}) {
      if (const auto inside = of_profile(name)) {
        return collective_peak(requirement, design->second, profile.per_node.at("gpu"), inside->link);
      }
    }
  }
  return std::nullopt;
}

/// Limits of time and of storage that have no peak, with the range in which a typo of 1000 would leave it.
const std::map<std::string, std::pair<double, double>> kOthers = {
    {"storage.latency.tail", {5e-3, 0.5}},
    {"shared.write.superpod", {5e7, 5e9}},
    {"shared.read.superpod", {5e7, 5e9}},
    {"checkpoint.visible", {1, 300}},
    {"checkpoint.write", {5e10, 1e12}},
    {"superpod.write.alone", {1e9, 1e12}},
    {"superpod.read.alone", {1e9, 1e12}},
    {"memory.latency.most", {5e-8, 5e-6}},
    {"tcp.latency.most", {1e-5, 1e-2}},
    {"virtual.latency", {1e-5, 1e-2}},
    {"roce.latency.in_leaf.most", {1e-6, 1e-3}},
    {"roce.latency.across_leaves.most", {1e-6, 1e-3}},
    {"health.thermal_throttle_time", {0, 0}},
    {"health.power_brake_time", {0, 0}},
    {"health.nvlink_speed", {2.5e10, 6e10}},
    {"after.nvlink_speed", {2.5e10, 6e10}},
    {"after.power_brake_time", {0, 0}},
    {"power.bmc.offset", {0.5, 500}},
    {"rack.budget.kept", {1e4, 2e5}},
    {"rack.budget.reached", {1e4, 2e5}},
    {"failover.dip_time", {0.5, 120}},
    {"thermal.cpu.throttled", {0, 0}},
    {"thermal.gpu.throttled", {0, 0}},
    {"thermal.gpu.brake", {0, 0}},
    {"soak.gpu.throttled", {0, 0}},
    {"thermal.gpu.spread", {1, 50}},
    {"coolant.supply.most", {20, 60}},
    {"coolant.supply.least", {1, 20}},
};

/// What is wrong with a limit; empty when nothing is.
std::string wrong_with(const Profile& profile, const Requirement& requirement) {
  const Limit& limit = requirement.limit;
  if (limit.reference == Reference::peak) {
    const double share = limit.at_least.value_or(limit.at_most.value_or(0));
    return share >= kLowest && share <= 1 ? "" : fmt::format("{} of its peak", share);
  }
  if (requirement.demand || limit.reference != Reference::none || limit.unit == "1") return "";
  if (const auto other = kOthers.find(requirement.id); other != kOthers.end()) {
    const double value = limit.at_most.value_or(limit.at_least.value_or(-1));
    return value >= other->second.first && value <= other->second.second ? "" : fmt::format("{} out of range", value);
  }
  const auto peak = peak_of(profile, requirement);
  if (!peak) return "no peak is known; add it to the table of this test";
  for (const auto& bound : {limit.at_least, limit.at_most}) {
    if (bound && (*bound < kLowest * peak->link || *bound > peak->most)) {
      return fmt::format("{:g} {} against a peak of {:g}", *bound, limit.unit, peak->link);
    }
  }
  return "";
}

std::string wrong_in(const Profile& profile) {
  std::string wrong;
  for (const auto& requirement : profile.requirements) {
    const std::string what = wrong_with(profile, requirement);
    if (!what.empty()) wrong += fmt::format("{}: {}: {}\n", profile.name, requirement.id, what);
  }
  return wrong;
}

}  // namespace

TEST(limits, of_every_profile_are_between_three_tenths_of_a_peak_and_the_peak) {
  for (const auto& [name, text] : embedded_profiles()) {
    const auto profile = read_profile(text, name, embedded_profile);
    ASSERT_TRUE(profile) << profile.error().text();
    EXPECT_EQ(wrong_in(*profile), "");
  }
}

TEST(limits, that_are_a_thousand_times_too_low_or_too_high_are_found_wherever_they_are) {
  for (const auto& [name, text] : embedded_profiles()) {
    auto profile = *read_profile(text, name, embedded_profile);
    for (auto& requirement : profile.requirements) {
      auto& limit = requirement.limit;
      if (requirement.demand) continue;
      if (limit.unit == "1" || (limit.reference != Reference::none && limit.reference != Reference::peak)) continue;
      auto& bound = limit.at_least ? limit.at_least : limit.at_most;
      if (*bound == 0) continue;
      const double right = *bound;
      for (const double factor : {1e-3, 1e3}) {
        bound = right * factor;
        EXPECT_NE(wrong_with(profile, requirement), "") << name << " " << requirement.id << " times " << factor;
      }
      bound = right;
    }
  }
}

}  // namespace assay::plan
