// table_json: table of a command, as one JSON object (assay.table/1).
#pragma once

#include <iostream>
#include <string>

#include <nlohmann/json.hpp>

namespace assay::cli {

/// Prints {"schema": "assay.table/1", "command", "summary", "rows"} on stdout, only ASCII. `summary` is an object with
/// common facts, `rows` an array of objects, in the order of the table for people.
inline void print_table(const std::string& command, nlohmann::ordered_json summary, nlohmann::ordered_json rows) {
  if (rows.is_null()) rows = nlohmann::ordered_json::array();
  const nlohmann::ordered_json document = {
      {"schema", "assay.table/1"}, {"command", command}, {"summary", std::move(summary)}, {"rows", std::move(rows)}};
  std::cout << document.dump(1, ' ', true, nlohmann::ordered_json::error_handler_t::replace) << '\n';
}

}  // namespace assay::cli
