// Text from outside on its way to a terminal or into a record, and facts of a node.
#include <cstdint>
#include <cstdlib>

#include "probes/core/host_facts.h"
#include "probes/core/json_io.h"
#include "probes/core/text.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace assay;
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  const std::string line = harmless(text);
  if (has_controls(line) || line.find_first_of("\n\t") != std::string::npos || harmless(line, line.size()) != line)
    std::abort();
  if (const std::string page = harmless_page(text); has_controls(page) || harmless_page(page) != page) std::abort();
  const std::string kept = without_controls(text, 64);
  if (kept.size() > 64 || has_controls(kept) || without_controls(kept, 64) != kept) std::abort();
  // What a recorder keeps is UTF-8 of the same length: a JSON writer replaces nothing in it.
  if (parse_json(nlohmann::json(kept).dump(), "kept").value() != kept) std::abort();
  if (const auto document = parse_json(text, "fuzz", {.max_values = 10'000})) {
    const std::string ascii = ascii_json(document->dump());
    for (const char c : ascii) {
      if (static_cast<unsigned char>(c) > 0x7E) std::abort();
    }
    if (parse_json(ascii, "ascii").value() != *document) std::abort();
    if (const auto facts = values_from(*document); facts && !problem_of_facts(*facts)) {
      if (!std::holds_alternative<std::string>(facts->at("name")) || facts->size() > 13) std::abort();
    }
  }
  return 0;
}
