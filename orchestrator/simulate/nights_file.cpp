// nights_file: assay.night-faults/1.
#include <nlohmann/json.hpp>

#include "orchestrator/simulate/nights.h"
#include "probes/core/json_io.h"
#include "profiles/schema.h"

namespace assay::simulate {

std::expected<NightFaults, InputError> read_night_faults(std::string_view text, const std::string& where) {
  const auto document = parse_json(text, where);
  if (!document) return std::unexpected(document.error());
  if (auto problem = profiles::check_schema(*document, "night-faults.schema", where)) return std::unexpected(*problem);
  NightFaults all;
  for (const auto& one : document->value("faults", nlohmann::json::array())) {
    NightFault fault{.kind = one.at("kind").get<NightFaultKind>(),
                     .unit = one.value("unit", ""),
                     .metric = one.value("metric", ""),
                     .from_night = one.value("from_night", 0),
                     .sigma = one.value("sigma", 3.0),
                     .ratio = {},
                     .p = one.value("p", 1.0)};
    if (one.contains("ratio")) fault.ratio = one.at("ratio").get<double>();
    all.faults.push_back(std::move(fault));
  }
  const auto noise = document->value("noise", nlohmann::json::object());
  if (noise.contains("dist")) all.noise = noise.at("dist").get<NoiseKind>();
  all.sigma = noise.value("sigma", all.sigma);
  all.rho = noise.value("rho", all.rho);
  all.sigma_spread = noise.value("sigma_spread", all.sigma_spread);
  all.unit_spread = noise.value("unit_spread", all.unit_spread);
  all.night_spread = noise.value("night_spread", all.night_spread);
  return all;
}

}  // namespace assay::simulate
