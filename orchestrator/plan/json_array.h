// json_array: writing a document with a long array, element by element: the tree of 300,000 results is ten times their
// text.
#pragma once

#include <cstddef>
#include <string>

#include <nlohmann/json.hpp>

namespace assay::plan {

/// `document`, which was dumped with one-space indent and holds `member` at its top level as null, with an array of
/// `count` elements in its place, element(0) to element(count - 1), each a JSON tree. The same bytes as if the array
/// had been dumped with the rest.
template <class Element>
std::string with_array(std::string document, const std::string& member, std::size_t count, Element element) {
  // A line break and one space stand before members of the top level alone, and never within a text.
  const std::string place = "\n \"" + member + "\": null";
  const auto at = document.find(place);
  std::string array = count == 0 ? "[]" : "[";
  for (std::size_t i = 0; i < count; ++i) {
    array += i == 0 ? "\n  " : ",\n  ";
    const std::string text = element(i).dump(1, ' ', false, nlohmann::json::error_handler_t::replace);
    for (const char c : text) {
      array += c;
      if (c == '\n') array += "  ";
    }
  }
  if (count > 0) array += "\n ]";
  document.replace(at + place.size() - 4, 4, array);
  return document;
}

}  // namespace assay::plan
