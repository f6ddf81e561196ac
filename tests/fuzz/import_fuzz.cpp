// The importers on hostile bytes: every tool's reader sees every input; what is imported is finite, in base units, and
// is no record.
#include <cmath>
#include <cstdint>
#include <cstdlib>

#include "orchestrator/import/import.h"
#include "probes/core/units.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace assay;
  for (const auto tool : imports::kImportTools) {
    const auto import = imports::import_output({.tool = std::string(tool),
                                                .bytes = {reinterpret_cast<const char*>(bytes), size},
                                                .path = "fuzz",
                                                .command = "ib_write_bw"});
    if (!import) {
      if (import.error().what.empty() || !import.error().where.starts_with("fuzz")) std::abort();
      continue;
    }
    if (import->figures.empty()) std::abort();
    for (const auto& figure : import->figures) {
      if (!std::isfinite(figure.value) || !is_base_unit(figure.unit)) std::abort();
      const bool may_be_none = tool == "sadf" ||  // a server that does nothing
                               figure.statistic == "count" || figure.statistic == "share" ||
                               figure.statistic == "now" || figure.statistic == "since_clear";
      if (figure.value < 0 || (figure.value == 0 && !may_be_none)) std::abort();
    }
    if (!judge::is_imported(judge::import_text(*import))) std::abort();
  }
  return 0;
}
