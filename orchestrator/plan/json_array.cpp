// json_array: writes the document with a placeholder for each array, cut at their places.
#include "orchestrator/plan/json_array.h"

#include <algorithm>
#include <string_view>

#include "orchestrator/files/text_in_parts.h"

namespace assay::plan {
namespace {

std::string dumped(const nlohmann::json& tree) {
  return tree.dump(1, ' ', false, nlohmann::json::error_handler_t::replace);
}

/// Element `i`, two columns further to the right, behind what separates it from the one before.
void add_element(const LongArray& array, std::size_t i, std::string& text) {
  text += i == 0 ? "\n  " : ",\n  ";
  const std::string element = dumped(array.element(i));
  for (std::size_t at = 0; at < element.size();) {
    const std::size_t end = std::min(element.find('\n', at), element.size() - 1) + 1;
    text.append(element, at, end - at);
    if (element[end - 1] == '\n') text += "  ";
    at = end;
  }
}

void write_array(const LongArray& array, const files::TextSink& sink) {
  sink(array.count == 0 ? "[]" : "[");
  files::write_in_parts(array.count, sink, [&](std::size_t i, std::string& text) { add_element(array, i, text); });
  if (array.count > 0) sink("\n ]");
}

}  // namespace

void write_with_arrays(const nlohmann::json& document, const std::vector<LongArray>& arrays,
                       const files::TextSink& sink) {
  constexpr std::string_view kNull = "null";
  const std::string text = dumped(document);
  std::string_view rest = text;
  for (const auto& array : arrays) {
    // A line break and one space precede only members of the top level, and never occur within a text.
    const std::string place = "\n \"" + array.member + "\": ";
    const auto at = rest.find(place + std::string(kNull)) + place.size();
    sink(rest.substr(0, at));
    write_array(array, sink);
    rest.remove_prefix(at + kNull.size());
  }
  sink(rest);
  sink("\n");
}

std::string text_with_arrays(const nlohmann::json& document, const std::vector<LongArray>& arrays) {
  std::string text;
  write_with_arrays(document, arrays, [&](std::string_view piece) { text += piece; });
  return text;
}

}  // namespace assay::plan
