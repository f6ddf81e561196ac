// visit_json: three members.
#include "orchestrator/sweep/visit_json.h"

#include <nlohmann/json.hpp>

#include "probes/core/json_io.h"
#include "probes/core/text.h"

namespace assay::sweep {

nlohmann::json to_json(const NodeVisit& visit) {
  return {{"node", visit.node}, {"state", visit.state}, {"reason", printable(visit.reason)}};
}

NodeVisit visit_from(StrictObject object) {
  NodeVisit visit{.node = object.text("node", is_node_name)};
  const auto state = from_word<drift::VisitState>(object.text("state"));
  if (!state) object.refuse("state", "is no state of a visit");
  visit.state = *state;
  visit.reason = object.text("reason");
  object.done();
  return visit;
}

}  // namespace assay::sweep
