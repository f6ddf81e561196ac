// json_array: writing a document with long arrays, element by element: the tree of 300,000 results is ten times their
// text.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "orchestrator/files/atomic_file.h"

namespace assay::plan {

/// An array of `count` elements, element(0) to element(count - 1), each a JSON tree. Several threads ask for them.
struct LongArray {
  std::string member;  ///< at the top level of the document, which holds it as null
  std::size_t count = 0;
  std::function<nlohmann::json(std::size_t)> element;
};

/// Hands over `document`, with one-space indent and a line break at its end, and with `arrays`, which are in the order
/// of their names, in their places. The same bytes as if they had been dumped with the rest.
void write_with_arrays(const nlohmann::json& document, const std::vector<LongArray>& arrays,
                       const files::TextSink& sink);

/// The same as one text.
std::string text_with_arrays(const nlohmann::json& document, const std::vector<LongArray>& arrays);

}  // namespace assay::plan
