// table_json: what a command says in a table, as one JSON object (assay.table/1).
#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace assay::cli {

/// Prints {"schema": "assay.table/1", "command", "summary", "rows"} on stdout, ASCII alone. `summary` is an object with
/// what holds for all, `rows` an array of objects, in the order of the table for people.
void print_table(const std::string& command, nlohmann::ordered_json summary, nlohmann::ordered_json rows);

}  // namespace assay::cli
