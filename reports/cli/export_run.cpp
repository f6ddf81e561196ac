// export_run: opens the run as `compare` does, and hands it to a format.
#include "reports/cli/export_run.h"

#include <filesystem>
#include <iostream>

#include <fmt/format.h>

#include "orchestrator/files/atomic_file.h"
#include "probes/core/text.h"
#include "reports/cli/commands.h"
#include "reports/cli/run_checks.h"
#include "reports/dossier/opened_run.h"
#include "reports/exports/exports.h"
#include "reports/page/pdf.h"

namespace assay::report_cli {
namespace {

/// Prints the report with a browser of this machine.
int write_pdf(dossier::OpenedRun run, const ExportRunArguments& given, const std::string& out) {
  constexpr Seconds kDeadline{600};  // chromium takes a second for twenty pages, a large fleet has thousands
  if (out == "-") return bad_input({"--out", "is missing: a PDF is no text", "name the file: -o report.pdf"});
  if (!given.waivers.empty()) {
    if (const auto code = show_waivers(run.content, given.waivers, given.policy)) return *code;
  }
  if (const auto problem = page::write_pdf(run.content, {run.standing, run.signers}, out, kDeadline))
    return bad_input(*problem);
  std::cerr << fmt::format("wrote {}\n", harmless(out));
  return files::kExitSuccess;
}

std::string text_of(const std::string& kind, const dossier::OpenedRun& run) {
  if (kind == "junit") return exports::junit(run);
  if (kind == "ctrf") return exports::ctrf(run);
  if (kind == "knees") return exports::knees_csv(run);
  return kind == "csv" ? exports::csv(run) : exports::run_metrics(run);
}

int write_folder(const std::map<std::string, std::string>& all, const std::string& out) {
  if (out == "-") {
    return bad_input({"--out", "is missing: OCP diagnostics have a file for each node", "name a new folder"});
  }
  const std::string folder = without_slash(out);
  std::error_code failure;
  if (!std::filesystem::create_directory(folder, failure)) {
    return bad_input({folder, failure ? failure.message() : "exists already", "name a new folder"});
  }
  for (const auto& [name, text] : all) {
    if (const auto problem = files::create_file(folder + "/" + name, text, 0644)) return bad_input(*problem);
  }
  std::cout << fmt::format("wrote {} files to {}\n", all.size(), harmless(folder));
  return files::kExitSuccess;
}

}  // namespace

int export_run(const std::string& kind, const ExportRunArguments& given, const std::string& out) {
  if (given.directory.empty())
    return bad_input({"export " + kind, "needs --run", "the folder of a run or of a dossier"});
  if (!given.waivers.empty() && (kind != "pdf" || given.policy.empty())) {
    return bad_input({"--waiver", "needs --policy, and is of pdf alone",
                      "the page of a report has an option of its own: assay-report report DIR --waiver FILE"});
  }
  if (!is_folder(given.directory)) return bad_input(not_a_folder(given.directory));
  const std::string directory = without_slash(given.directory);
  if (const auto problem = check_run_is_over(directory)) return bad_input(*problem);
  const auto signers = allowed_signers(given.keys, given.policy);
  if (!signers) return bad_input(signers.error());
  auto run = dossier::open_run(directory, *signers);
  if (!run) return refused(run.error());
  if (kind == "ocp") return write_folder(exports::ocp(*run), out);
  if (kind == "pdf") return write_pdf(std::move(*run), given, out);
  const std::string text = text_of(kind, *run);
  if (out == "-") {
    std::cout << harmless_page(text);
    return files::kExitSuccess;
  }
  if (const auto problem = files::replace_file(out, text)) return bad_input(*problem);
  std::cerr << fmt::format("wrote {}\n", harmless(out));
  return files::kExitSuccess;
}

}  // namespace assay::report_cli
