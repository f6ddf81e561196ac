// tpu: figures of TPUs, which no tool prints for programs: a document of our own, assay.tpu/1, that docs/tpu_figures.py
// writes. It has base units, so that nothing is converted.
#include <fmt/format.h>

#include "orchestrator/import/import.h"
#include "orchestrator/import/reading.h"
#include "probes/core/json_io.h"
#include "probes/core/text.h"
#include "probes/core/units.h"

namespace assay::imports {
namespace {

using nlohmann::json;

constexpr const char* kTpuHint = "write it with tpu_figures.py; FORMATS has its fields";
constexpr const char* kTpuSchema = "assay.tpu/1";
constexpr std::int64_t kMostSamples = 1'000'000;

/// The scalars of the object at `name`.
Values scalars(StrictObject& one, const char* name) {
  const json& object = one.need(name);
  if (!object.is_object()) one.refuse(name, "must be an object");
  Values values;
  for (const auto& [key, value] : object.items()) {
    const auto scalar = value_from(value);
    if (!scalar) one.refuse(name, fmt::format("'{}' is not a text, a number or a truth value", printable(key)));
    values[key] = *scalar;
  }
  return values;
}

}  // namespace

void read_tpu(std::string_view text, judge::ImportSource& source, Figures& figures) {
  const json whole = document_of(text, figures, kTpuHint);
  StrictObject top(whole, "", kTpuHint);
  if (const std::string schema = top.text("schema"); schema != kTpuSchema)
    top.refuse("schema", fmt::format("'{}' is not {}", printable(schema), kTpuSchema));
  source.version = top.text("jax");
  source.facts = scalars(top, "facts");
  const json& list = top.list("figures");
  for (std::size_t i = 0; i < list.size(); ++i) {
    StrictObject one(list[i], fmt::format("figures[{}]", i), kTpuHint);
    FigureName name{.metric = one.text("metric"), .unit = one.text("unit"), .statistic = one.text("statistic")};
    if (!is_base_unit(name.unit))
      one.refuse("unit", fmt::format("'{}' is not one of {}", printable(name.unit), kBaseUnits));
    if (name.metric.empty() || name.statistic.empty()) one.refuse("metric", "metric and statistic must not be empty");
    Values at = scalars(one, "at");
    at["samples"] = one.whole("samples", 1, kMostSamples);
    figures.field(name, at, &one.need("value"), one.path("value"));
    figures.unknown(one);
  }
  figures.unknown(top);
}

}  // namespace assay::imports
