// instrument: from a description to a specification.
#include "orchestrator/simulate/instrument.h"

namespace assay::simulate {

Instrument::Instrument(const Description& description) {
  for (const auto& metric : description.metrics)
    metrics_.push_back(
        {.name = metric.name, .unit = metric.unit, .meaning = metric.meaning, .instrument = metric.instrument});
  for (const auto& condition : description.conditions)
    conditions_.push_back({.name = condition.name, .meaning = condition.meaning});
  spec_ = {.name = description.name,
           .revision = description.revision,
           .measures = description.measures,
           .method = description.method,
           .source = description.source,
           .metrics = metrics_,
           .conditions = conditions_};
}

}  // namespace assay::simulate
