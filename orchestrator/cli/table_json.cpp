// table_json: the one shape of `--json` of commands that print a table.
#include "orchestrator/cli/table_json.h"

#include <iostream>

namespace assay::cli {

void print_table(const std::string& command, nlohmann::ordered_json summary, nlohmann::ordered_json rows) {
  if (rows.is_null()) rows = nlohmann::ordered_json::array();
  const nlohmann::ordered_json document = {
      {"schema", "assay.table/1"}, {"command", command}, {"summary", std::move(summary)}, {"rows", std::move(rows)}};
  std::cout << document.dump(1, ' ', true, nlohmann::ordered_json::error_handler_t::replace) << '\n';
}

}  // namespace assay::cli
