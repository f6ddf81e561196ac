// amd_smi: the JSON of `amd-smi static`, `metric`, `topology` and `xgmi`: a list of GPUs, or since ROCm 7 an object
// with the list as gpu_data. A figure is taken by its path in a GPU's entry, with its unit. Its MB of memory are
// 2^20 B.
#include <algorithm>
#include <array>
#include <set>

#include <fmt/format.h>

#include "orchestrator/import/import.h"
#include "orchestrator/import/reading.h"
#include "probes/core/text.h"

namespace assay::imports {
namespace {

using nlohmann::json;

constexpr const char* kAmdSmiHint = "run `amd-smi metric --json`, or static, topology or xgmi, and import all of it";

/// A figure by its path. Without a unit it is a count or a number of lanes.
struct AmdSmiField {
  const char *path, *metric, *unit, *statistic;
};
constexpr AmdSmiField kAmdSmiFields[] = {
    {"/power/socket_power", "power", "W", "now"},
    {"/temperature/edge", "temperature_edge", "degC", "now"},
    {"/temperature/hotspot", "temperature_hotspot", "degC", "now"},
    {"/temperature/mem", "temperature_memory", "degC", "now"},
    {"/usage/gfx_activity", "utilisation", "1", "now"},
    {"/pcie/width", "pcie_width", "", "now"},
    {"/pcie/speed", "pcie_transfer_rate", "1/s", "now"},
    {"/pcie/replay_count", "pcie_replays", "", "count"},
    {"/pcie/nak_received_count", "pcie_naks_received", "", "count"},
    {"/pcie/nak_sent_count", "pcie_naks_sent", "", "count"},
    {"/ecc/total_correctable_count", "ecc_corrected", "", "count"},
    {"/ecc/total_uncorrectable_count", "ecc_uncorrected", "", "count"},
    {"/ecc/total_deferred_count", "ecc_deferred", "", "count"},
    {"/energy/total_energy_consumption", "energy", "J", "now"},
    {"/mem_usage/used_vram", "memory_used", "B", "now"},
    {"/limit/max_power", "power_limit_highest", "W", "now"},
    {"/limit/socket_power", "power_limit", "W", "now"},
    {"/vram/size", "memory_size", "B", "now"},
    {"/bus/max_pcie_width", "pcie_width_highest", "", "now"},
    {"/bus/max_pcie_speed", "pcie_transfer_rate_highest", "1/s", "now"},
    {"/link_metrics/bit_rate", "xgmi_lane_rate", "B/s", "now"},
    {"/link_metrics/max_bandwidth", "xgmi_link_rate", "B/s", "now"},
};

constexpr std::array<const char*, 7> kAmdSmiFacts = {"/asic/market_name",
                                                     "/asic/target_graphics_version",
                                                     "/driver/version",
                                                     "/vbios/version",
                                                     "/partition/memory_partition",
                                                     "/partition/compute_partition",
                                                     "/partition/accelerator_partition"};

/// From a unit of the tool to a base unit; empty for another quantity or an unknown one.
std::optional<double> factor_of(std::string_view theirs, std::string_view ours) {
  struct Unit {
    std::string_view theirs, ours;
    double factor;
  };
  constexpr Unit kUnits[] = {
      {"W", "W", 1},        {"C", "degC", 1},       {"%", "1", 0.01},       {"J", "J", 1},
      {"GT/s", "1/s", 1e9}, {"MB", "B", kMebibyte}, {"GB", "B", kGibibyte}, {"Gb/s", "B/s", kGigabitPerSecond}};
  const auto* known =
      std::ranges::find_if(kUnits, [&](const Unit& one) { return one.theirs == theirs && one.ours == ours; });
  return known == std::end(kUnits) ? std::nullopt : std::optional(known->factor);
}

class AmdSmiReader {
 public:
  AmdSmiReader(judge::ImportSource& source, Figures& figures) : source_(source), figures_(figures) {}

  void gpu(const json& entry, const std::string& path) {
    if (!entry.is_object() || !entry.contains("gpu") || !entry["gpu"].is_number_integer())
      throw ImportRefusal{path + ".gpu", "is missing: not an entry of amd-smi for one GPU", kAmdSmiHint};
    Values at{{"gpu", entry["gpu"].get<std::int64_t>()}};
    // Without --watch a GPU comes once, with it once a reading.
    if (entry.contains("timestamp") && entry["timestamp"].is_number_integer())
      at["timestamp"] = entry["timestamp"].get<std::int64_t>();
    for (const auto& field : kAmdSmiFields) {
      const json::json_pointer pointer{std::string(field.path)};
      if (entry.contains(pointer)) take(field, entry.at(pointer), at, path + dotted(field.path));
    }
    for (const char* fact : kAmdSmiFacts) {
      const json::json_pointer pointer{std::string(fact)};
      if (entry.contains(pointer) && entry.at(pointer).is_string() && !is_absent(entry.at(pointer).get<std::string>()))
        source_.facts[fmt::format("gpu.{}{}", entry["gpu"].get<std::int64_t>(), dotted(fact))] =
            entry.at(pointer).get<std::string>();
    }
    const json::json_pointer of_metric("/link_metrics/links");
    const bool metric = entry.contains(of_metric);
    if (metric || entry.contains("links"))
      links(metric ? entry.at(of_metric) : entry["links"], at, path + (metric ? ".link_metrics.links" : ".links"));
    sections(entry, path);
  }

 private:
  static std::string dotted(std::string_view pointer) {
    std::string text(pointer);
    std::ranges::replace(text, '/', '.');
    return text;
  }

  void take(const AmdSmiField& field, const json& value, const Values& at, const std::string& from) {
    FigureName name{.metric = field.metric, .unit = field.unit, .statistic = field.statistic};
    const bool plain = name.unit.empty();
    const json* number = &value;
    if (plain) name.unit = "1";
    if (!plain && value.is_object()) {
      StrictObject both = closed(value, from);
      number = &both.need("value");
      const std::string unit = both.text("unit");
      const auto factor = factor_of(unit, field.unit);
      if (!factor)
        throw ImportRefusal{both.path("unit"), fmt::format("'{}' is not a known unit of it", printable(unit)),
                            kAmdSmiHint};
      name.factor = *factor;
    } else if (!plain && value.is_number()) {
      return figures_.leave_out(from, name.metric, "the number has no unit");
    }
    if (number->is_number()) return figures_.count(name, at, number->get<double>(), from);
    figures_.field(name, at, number, from);
  }

  /// Of a GPU to each other one: whether they are linked, and over how many hops.
  void links(const json& list, Values at, const std::string& path) {
    if (!list.is_array()) throw ImportRefusal{path, "must be an array", kAmdSmiHint};
    for (std::size_t i = 0; i < list.size(); ++i) {
      const std::string place = fmt::format("{}[{}]", path, i);
      StrictObject link = closed(list[i], place);
      const json* type = link.optional("link_type");
      at["peer"] = link.whole("gpu", 0);
      if (type == nullptr || !type->is_string() || *type == "SELF") continue;
      at["link_type"] = type->get<std::string>();
      if (const json* status = link.optional("link_status");
          status != nullptr && (*status == "ENABLED" || *status == "DISABLED"))
        figures_.count({.metric = "link_up", .unit = "1", .statistic = "now"}, at, *status == "ENABLED" ? 1 : 0, place);
      if (const json* hops = link.optional("num_hops"))
        figures_.field({.metric = "hops", .unit = "1", .statistic = "now"}, at, hops, place);
    }
  }

  /// Sections of which nothing is read are named once.
  void sections(const json& entry, const std::string& path) {
    for (const auto& [name, value] : entry.items()) {
      const std::string prefix = "/" + name + "/";
      const auto begins = [&](std::string_view known) { return known.starts_with(prefix); };
      const bool read = name == "gpu" || name == "bdf" || name == "timestamp" || name == "links" ||
                        name == "link_metrics" || std::ranges::any_of(kAmdSmiFields, begins, &AmdSmiField::path) ||
                        std::ranges::any_of(kAmdSmiFacts, begins);
      if (!read && sections_.insert(name).second)
        figures_.leave_out(fmt::format("{}.{}", path, printable(name)), "a section", "it is not read");
    }
  }

  judge::ImportSource& source_;
  Figures& figures_;
  std::set<std::string> sections_;
};

}  // namespace

void read_amd_smi(std::string_view text, judge::ImportSource& source, Figures& figures) {
  const json whole = document_of(text, figures, kAmdSmiHint);
  const bool wrapped = whole.is_object() && whole.contains("gpu_data");
  const json& list = wrapped ? whole["gpu_data"] : whole;
  if (!list.is_array()) throw ImportRefusal{wrapped ? "gpu_data" : "document", "is not a list of GPUs", kAmdSmiHint};
  AmdSmiReader reader(source, figures);
  for (std::size_t i = 0; i < list.size(); ++i)
    reader.gpu(list[i], fmt::format("{}[{}]", wrapped ? "gpu_data" : "document", i));
}

}  // namespace assay::imports
