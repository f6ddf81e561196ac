// gpu_state: queries each fact separately; a query that fails is counted, and the next one follows.
#include "probes/health/gpu_state.h"

#include <algorithm>
#include <array>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "probes/health/gpus.h"
#include "probes/nvml/nvlinks.h"
#include "probes/nvml/users.h"

namespace assay::health {
namespace {

namespace api = nvml_api;

constexpr double kNanosecond = 1e-9;

/// Collects answers of one GPU.
class Facts {
 public:
  explicit Facts(const nvml::Nvml& nvml) : nvml_(nvml) {}

  /// The value reported; a failure is counted under `what`.
  template <class T>
  std::optional<T> told(std::string_view what, const nvml::Answer<T>& answer) {
    if (answer.failed() && state_.query_errors++ == 0) {
      state_.first_error = fmt::format("{}: {}", what, nvml_.words(answer.code));
    }
    state_.lost = state_.lost || answer.code == api::kGpuIsLost;
    return answer.value;
  }
  template <class T>
  void metric(std::string_view name, const nvml::Answer<T>& answer) {
    if (const auto value = told(name, answer)) put(name, static_cast<double>(*value));
  }
  void put(std::string_view name, double value) { state_.metrics[name] = value; }
  template <class T>
  void condition(std::string_view name, const nvml::Answer<T>& answer) {
    if (const auto value = told(name, answer)) state_.conditions[name] = *value;
  }
  void condition(std::string_view name, Value value) { state_.conditions[name] = std::move(value); }
  void text(std::string_view name, const std::string& words) {
    if (!words.empty()) state_.conditions[name] = words;
  }
  template <class T>
  void of_link(std::string_view name, unsigned link, const std::optional<T>& value) {
    if (value) state_.links.push_back({.metric = name, .link = link, .value = static_cast<double>(*value)});
  }
  void fabric_place(std::string place, bool taken_in) {
    state_.fabric_place = std::move(place);
    state_.in_fabric = taken_in;
  }
  [[nodiscard]] std::string words(api::Return code) const { return nvml_.words(code); }
  GpuState take() { return std::move(state_); }

 private:
  const nvml::Nvml& nvml_;
  GpuState state_;
};

void ask_memory(const nvml::NvmlGpu& gpu, Facts& facts) {
  facts.metric("ecc_corrected", gpu.ecc_errors(api::kCorrected, api::kSinceDriverLoad));
  facts.metric("ecc_uncorrected", gpu.ecc_errors(api::kUncorrected, api::kSinceDriverLoad));
  facts.metric("ecc_corrected_lifetime", gpu.ecc_errors(api::kCorrected, api::kLifetime));
  facts.metric("ecc_uncorrected_lifetime", gpu.ecc_errors(api::kUncorrected, api::kLifetime));
  facts.metric("retired_pages", gpu.retired_pages());
  facts.metric("retired_pages_pending", gpu.retired_pages_pending());
  if (const auto rows = facts.told("remapped_rows", gpu.remapped_rows())) {
    facts.put("remapped_rows_corrected", rows->corrected);
    facts.put("remapped_rows_uncorrected", rows->uncorrected);
    facts.put("remapping_pending", rows->pending ? 1 : 0);
    facts.put("remapping_failed", rows->failed ? 1 : 0);
  }
}

void ask_each_link(const nvml::NvmlGpu& gpu, Facts& facts) {
  std::vector<std::string> contradictions;
  const auto nvlinks = facts.told("nvlink_facts", nvml::read_nvlink_facts(gpu));
  if (nvlinks) {
    for (const nvml::NvLinkFacts& link : nvlinks->links) {
      facts.of_link("nvlink_speed", link.number, link.speed);
      facts.of_link("nvlink_recoveries", link.number, link.recoveries);
      facts.of_link("nvlink_effective_ber", link.number, link.effective_ber);
      facts.of_link("nvlink_symbol_ber", link.number, link.symbol_ber);
    }
    facts.text("nvlink_states", nvlinks->states);
    facts.text("nvlink_remote_ends", nvlinks->remote_ends);
    contradictions = nvlinks->contradictions;
  }
  const auto c2c = facts.told("c2c_links", nvml::read_c2c_links(gpu));
  if (c2c) {
    const auto active = std::ranges::count_if(c2c->facts.links, &nvml::NvLinkFacts::active);
    facts.put("c2c_links_active", static_cast<double>(active));
    facts.put("c2c_links_inactive", static_cast<double>(std::ssize(c2c->facts.links) - active));
    for (const nvml::NvLinkFacts& link : c2c->facts.links) facts.of_link("c2c_speed", link.number, link.speed);
    if (c2c->errors) facts.put("c2c_errors", static_cast<double>(*c2c->errors));
    std::ranges::copy(c2c->facts.contradictions, std::back_inserter(contradictions));
  }
  if (!nvlinks && !c2c) return;
  facts.condition("link_contradictions", static_cast<std::int64_t>(contradictions.size()));
  constexpr std::size_t kMostNamed = 8;
  const std::size_t more = contradictions.size() - std::min(contradictions.size(), kMostNamed);
  contradictions.resize(contradictions.size() - more);
  facts.text("link_contradiction_names",
             fmt::format("{}{}", fmt::join(contradictions, "; "), more > 0 ? fmt::format(" and {} more", more) : ""));
}

void ask_fabric(const nvml::NvmlGpu& gpu, Facts& facts) {
  const auto fabric = facts.told("fabric", gpu.fabric());
  if (!fabric || fabric->state == 0) return;
  const bool refused = fabric->status != api::kSuccess;
  const std::string uuid = fabric_uuid(*fabric);
  const bool taken_in = is_completed(*fabric) && !refused;
  facts.fabric_place(taken_in ? fmt::format("{} {}", uuid, fabric->clique) : fabric_state_word(*fabric), taken_in);
  if (!is_completed(*fabric)) return;
  facts.text("fabric_uuid", uuid);
  facts.condition("fabric_clique", std::int64_t{fabric->clique});
  facts.condition("fabric_status", refused ? facts.words(fabric->status) : std::string("success"));
  const auto ailments = fabric_ailments(*fabric);
  facts.put("fabric_faults", static_cast<double>((refused ? 1 : 0) + (ailments ? ailments->size() : 0)));
  facts.put("fabric_has_uuid", uuid.empty() ? 0 : 1);
}

void ask_links(const nvml::NvmlGpu& gpu, Facts& facts) {
  if (const auto links = facts.told("nvlinks", nvml::read_nvlinks(gpu))) {
    facts.put("nvlinks_active", links->active);
    facts.put("nvlinks_inactive", links->inactive);
    if (links->errors) facts.put("nvlink_errors", static_cast<double>(*links->errors));
  }
  ask_each_link(gpu, facts);
  facts.metric("pcie_generation", gpu.pcie_generation());
  facts.metric("pcie_generation_max", gpu.pcie_generation_max());
  facts.metric("pcie_generation_device", gpu.pcie_generation_device());
  facts.metric("pcie_width", gpu.pcie_width());
  facts.metric("pcie_width_max", gpu.pcie_width_max());
  facts.metric("pcie_replays", gpu.pcie_replays());
}

void ask_throttling(const nvml::NvmlGpu& gpu, Facts& facts) {
  const auto times = facts.told("throttle", gpu.throttle());
  if (!times) return;
  if (times->thermal_ns) facts.put("thermal_throttle_time", static_cast<double>(*times->thermal_ns) * kNanosecond);
  if (times->power_brake_ns) facts.put("power_brake_time", static_cast<double>(*times->power_brake_ns) * kNanosecond);
}

void ask_conditions(const nvml::NvmlGpu& gpu, Facts& facts) {
  facts.condition("persistence_mode", gpu.persistence_mode());
  if (const auto mig = facts.told("mig_mode", gpu.mig_mode())) facts.condition("mig_mode", mig->now);
  if (const auto ecc = facts.told("ecc_mode", gpu.ecc_mode())) facts.condition("ecc_mode", ecc->now);
  facts.condition("sm_clock_hz", gpu.sm_clock_hz());
  facts.condition("sm_clock_max_hz", gpu.sm_clock_max_hz());
  facts.condition("memory_clock_hz", gpu.memory_clock_hz());
  facts.condition("memory_clock_max_hz", gpu.memory_clock_max_hz());
  facts.condition("temperature_c", gpu.temperature_c());
  facts.condition("memory_temperature_c", gpu.memory_temperature_c());
  facts.condition("power_w", gpu.power_w());
  const auto limit = gpu.power_limit_w(), at_boot = gpu.power_field_w(api::kFieldPowerDefaultLimit, api::kScopeGpu);
  facts.condition("power_limit_w", limit);
  facts.condition("power_limit_default_w", at_boot);
  if (limit.value && at_boot.value) facts.put("power_limit_lowered", *limit.value < *at_boot.value ? 1 : 0);
  if (const auto action = facts.told("recovery_action", gpu.field(api::kFieldRecoveryAction))) {
    constexpr std::array kActions = {"none",      "reset_gpu",       "reboot_node",
                                     "drain_p2p", "drain_and_reset", "recover_imex_domain"};
    const auto number = static_cast<std::size_t>(*action);
    facts.condition("recovery_action",
                    number < kActions.size() ? std::string(kActions[number]) : fmt::format("unknown_{}", number));
  }
}

}  // namespace

GpuState read_gpu_state(const nvml::Nvml& nvml, const nvml::NvmlGpu& gpu) {
  Facts facts(nvml);
  // Identities are queried again here, because only here failures count.
  (void)facts.told("uuid", gpu.uuid());
  ask_memory(gpu, facts);
  ask_links(gpu, facts);
  ask_fabric(gpu, facts);
  ask_throttling(gpu, facts);
  facts.metric("other_processes", nvml::other_processes_of(gpu, false));  // this probe makes no context of its own
  ask_conditions(gpu, facts);
  return facts.take();
}

std::vector<std::vector<std::string>> missing_facts(const std::vector<GpuState>& states) {
  std::set<std::string_view> known;
  for (const GpuState& state : states) {
    for (const auto& [name, value] : state.metrics) known.insert(name);
  }
  std::vector<std::vector<std::string>> missing;
  for (const GpuState& state : states) {
    auto& names = missing.emplace_back();
    for (const auto& name : known) {
      if (!state.metrics.contains(name)) names.emplace_back(name);
    }
  }
  return missing;
}

std::optional<std::size_t> fabric_cliques(const std::vector<GpuState>& states) {
  std::set<std::string> places;
  bool taken_in = false;
  for (const GpuState& state : states) {
    if (!state.fabric_place) continue;
    places.insert(*state.fabric_place);
    taken_in = taken_in || state.in_fabric;
  }
  return taken_in ? std::optional(places.size()) : std::nullopt;
}

}  // namespace assay::health
