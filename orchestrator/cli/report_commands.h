// report_commands: the commands of assay-report that assay passes on, and the end of its help, which lists them.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

namespace assay::cli {

/// A command that is passed on to assay-report.
struct PassedOn {
  std::string_view name, does;  ///< empty: shown with another
};

inline constexpr std::array<PassedOn, 17> kPassedOn = {{
    {"report", "render report.html from a judged run"},
    {"sign", "make a dossier from a run with its report"},
    {"verify", "check a dossier and judge its evidence again"},
    {"waive", "sign a waiver of cells of a dossier that do not pass"},
    {"compare", "show what differs between two runs or dossiers"},
    {"requirements", "map a catalogue of published demands over a run or dossier"},
    {"draw", "repeat cells of a dossier that two parties draw together"},
    {"merge", "join dossiers of several sites under one statement (expand: of one that has grown)"},
    {"expand", ""},
    {"timestamp", "have an authority state when a signature was made"},
    {"witness", "sign what a journal holds while the run goes on"},
    {"keygen", "make a signing key"},
    {"trust", "draft a trust policy from keys and roles"},
    {"simulate", "rehearse a run on a simulated fleet"},
    {"trend", "write a page over nights, of the fleet or of a unit"},
    {"export", "a run, or flags and nights, for other programs"},
    {"rma", "write or check the signed folder for a part that is sent back"},
}};

inline std::vector<std::string> names_passed_on() {
  std::vector<std::string> names;
  for (const auto& command : kPassedOn) names.emplace_back(command.name);
  return names;
}

inline std::string footer() {
  std::string text = "Commands of assay-report that assay passes on:\n";
  for (const auto& [name, does] : kPassedOn) {
    if (!does.empty()) text += fmt::format("  {:<13}{}\n", name, does);
  }
  return text +
         "Exit codes: 0 accepted or done, 1 rejected, 2 bad usage or input, 3 incomplete (also after Ctrl-C), 4 "
         "verification refused.\n"
         "Example: assay accept --profile host --out run";
}

}  // namespace assay::cli
