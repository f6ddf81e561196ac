// passed_on: the commands of other programs that assay passes on, and the end of its help, which lists them.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

namespace assay::cli {

inline constexpr const char* kReportProgram = "assay-report";  ///< reports, signatures, verification
inline constexpr const char* kFleetProgram = "assay-fleet";    ///< nights, other tools' results, comparisons

/// A command of another program, to which it is passed on.
struct PassedOn {
  const char* program;
  std::string_view name, does;  ///< empty: shown with another
};

inline constexpr std::array<PassedOn, 25> kPassedOn = {{
    {kReportProgram, "report", "render report.html from a judged run"},
    {kReportProgram, "sign", "make a dossier from a run with its report"},
    {kReportProgram, "verify", "check a dossier and judge its evidence again"},
    {kReportProgram, "waive", "sign a waiver of cells of a dossier that do not pass"},
    {kReportProgram, "merge", "join dossiers of several sites under one statement (expand: of one that has grown)"},
    {kReportProgram, "expand", ""},
    {kReportProgram, "timestamp", "have an authority state when a signature was made"},
    {kReportProgram, "witness", "sign what a journal holds while the run goes on"},
    {kReportProgram, "keygen", "make a signing key"},
    {kReportProgram, "trust", "draft a trust policy from keys and roles"},
    {kReportProgram, "simulate", "rehearse a run on a simulated fleet"},
    {kFleetProgram, "sweep", "visit the nodes that are due tonight (install: write the files that start it)"},
    {kFleetProgram, "history", "keep the figures of nightly sweeps"},
    {kFleetProgram, "drift", "say which units of the nightly sweeps are not as they were"},
    {kFleetProgram, "verdict", "print the cached verdict of a node"},
    {kFleetProgram, "drain", "take flagged nodes out of service, or back"},
    {kFleetProgram, "install", ""},
    {kFleetProgram, "trend", "write a page over nights, of the fleet or of a unit"},
    {kFleetProgram, "rma", "write or check the signed folder for a part that is sent back"},
    {kFleetProgram, "export", "a run, or flags and nights, for other programs"},
    {kFleetProgram, "import", "read another tool's output, to compare it with a run or a profile"},
    {kFleetProgram, "compare", "show what differs between two runs or dossiers"},
    {kFleetProgram, "requirements", "map a catalogue of published demands over a run or dossier"},
    {kFleetProgram, "draw", "repeat cells of a dossier that two parties draw together"},
    {kFleetProgram, "commons", "figures of accepted boards of several sites, as a source of limits"},
}};

inline std::vector<std::string> names_passed_on() {
  std::vector<std::string> names;
  for (const auto& command : kPassedOn) names.emplace_back(command.name);
  return names;
}

inline std::string footer() {
  std::string text = fmt::format("Commands of {} and {}:\n", kReportProgram, kFleetProgram);
  for (const auto& one : kPassedOn) {
    if (!one.does.empty()) text += fmt::format("  {:<13}{}\n", one.name, one.does);
  }
  return text +
         "Exit codes: 0 accepted or done, 1 rejected, 2 bad usage or input, 3 incomplete (also after Ctrl-C), 4 "
         "verification refused.\n"
         "Example: assay accept --profile host --out run";
}

}  // namespace assay::cli
