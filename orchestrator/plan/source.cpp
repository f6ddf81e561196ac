// source: where a figure of a profile comes from, as JSON.
#include "orchestrator/plan/profile.h"

namespace assay::plan {

nlohmann::json to_json(const Source& source) {
  nlohmann::json object = {
      {"document", source.document}, {"figure", source.figure}, {"method", source.method}, {"status", source.status}};
  if (!source.date.empty()) object["date"] = source.date;
  return object;
}

Source source_from(const nlohmann::json& object) {
  return {.document = object.at("document"),
          .figure = object.value("figure", ""),
          .date = object.value("date", ""),
          .method = object.value("method", ""),
          .status = object.at("status")};
}

}  // namespace assay::plan
