// export_run: a run or dossier in another program's format.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace assay::report_cli {

/// Formats of one run; openmetrics is one of nights, too, and then has no run.
inline constexpr std::array<std::string_view, 7> kRunKinds = {"junit", "ctrf",        "ocp", "csv",
                                                              "knees", "openmetrics", "pdf"};

struct ExportRunArguments {
  std::string directory;  ///< of a run or of a dossier
  std::vector<std::string> keys;
  std::string policy;
  std::vector<std::string> waivers;  ///< files, for the first page of a pdf; they need the policy
};

/// Writes the run in `kind` to `out`, a file or "-", of ocp a new folder; returns the exit code, which is not that of
/// the verdict.
int export_run(const std::string& kind, const ExportRunArguments& given, const std::string& out);

}  // namespace assay::report_cli
