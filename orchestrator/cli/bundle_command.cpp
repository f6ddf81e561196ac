// bundle_command: `assay bundle`.
#include <iostream>

#include <fmt/format.h>

#include "orchestrator/cli/bundle.h"
#include "orchestrator/cli/commands.h"
#include "orchestrator/cli/run_stages.h"
#include "orchestrator/cli/table_json.h"
#include "probes/core/how_many.h"
#include "probes/core/scale.h"
#include "probes/core/text.h"

namespace assay::cli {
namespace {

namespace fs = std::filesystem;

std::uintmax_t size_of(const BundleFile& one) { return one.file.empty() ? one.text.size() : fs::file_size(one.file); }

/// Whether `out` is the name of a compressed archive, which a bundle is not.
bool is_compressed_name(const std::string& out) {
  const fs::path path(out);
  return path.extension() == ".tgz" || path.stem().extension() == ".tar";
}

}  // namespace

int command_bundle(const BundleRequest& request, std::string out, bool dry_run, bool json) {
  if (out.empty() && !dry_run)
    return report_error({"--out", "is missing", "assay bundle --out assay.tar; --dry-run lists what would be packed"});
  while (out.size() > 1 && out.ends_with('/')) out.pop_back();
  if (is_compressed_name(out)) {
    return report_error({"--out", fmt::format("{} is the name of a compressed archive", out),
                         "write a .tar and compress it: `gzip -n FILE.tar`"});
  }
  const auto files = bundle_files(plan::installation(), request);
  if (!files) return report_error(files.error());
  std::uintmax_t bytes = 0;
  nlohmann::ordered_json rows;
  for (const auto& one : *files) {
    bytes += size_of(one);
    if (json) {
      rows.push_back({{"name", one.name}, {"bytes", size_of(one)}});
    } else {
      std::cout << harmless_page(one.name) << '\n';
    }
  }
  if (!dry_run) {
    if (const auto written = write_bundle(*files, out); !written) return report_error(written.error());
  }
  if (json) print_table("bundle", {{"bytes", bytes}, {"out", out}, {"written", !dry_run}}, std::move(rows));
  std::cerr << fmt::format("{}, {}, {}\n", how_many(files->size(), "file"), for_people(static_cast<double>(bytes), "B"),
                           !dry_run      ? "written to " + out
                           : out.empty() ? "would be packed"
                                         : "would be written to " + out);
  return files::kExitSuccess;
}

}  // namespace assay::cli
