// plan_command: `assay plan`, `assay list` and `assay describe`.
#include <iostream>

#include <fmt/format.h>

#include "orchestrator/cli/commands.h"
#include "orchestrator/cli/stages.h"
#include "orchestrator/files/atomic_file.h"
#include "orchestrator/plan/programs.h"
#include "probes/core/suggest.h"

namespace assay::cli {
namespace {

/// Text in lines of at most 100 columns, each indented by two.
std::string wrapped(const std::string& text) {
  constexpr std::size_t kWidth = 98;
  std::string result;
  std::string line;
  std::size_t at = 0;
  while (at < text.size()) {
    const auto space = std::min(text.find(' ', at), text.size());
    const std::string word = text.substr(at, space - at);
    if (!line.empty() && line.size() + 1 + word.size() > kWidth) {
      result += "  " + line + "\n";
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
    at = space + 1;
  }
  return result + "  " + line + "\n";
}

std::string described(const Description& probe) {
  std::string text =
      fmt::format("{} (revision {}, one {} at a time)\n{}\nmethod\n{}\nsource\n{}", probe.name, probe.revision,
                  probe.scope, wrapped(probe.measures), wrapped(probe.method), wrapped(probe.source));
  if (!probe.needs.empty()) text += "\nneeds\n" + wrapped(probe.needs);
  text += "\nparameters\n";
  for (const auto& parameter : probe.parameters) {
    text += fmt::format("  {:<22} {}{} [{}{}]\n", parameter.name, parameter.meaning,
                        parameter.unit.empty() ? "" : ", in " + parameter.unit, parameter.fallback,
                        parameter.quick.empty() ? "" : ", quick " + parameter.quick);
    if (!parameter.choices.empty()) text += fmt::format("  {:<22}   one of: {}\n", "", parameter.choices);
  }
  text += "\nmetrics\n";
  for (const auto& metric : probe.metrics)
    text += fmt::format("  {:<22} {}, in {}, {} is better\n", metric.name, metric.meaning, metric.unit, metric.better);
  text += "\nconditions\n";
  for (const auto& condition : probe.conditions)
    text += fmt::format("  {:<22} {}\n", condition.name, condition.meaning);
  return text;
}

std::string table_row(const Description& probe) {
  return fmt::format("| `{}` | {} | {} |\n", probe.name, probe.measures, probe.needs.empty() ? "Linux" : probe.needs);
}

}  // namespace

int command_plan(const PlanRequest& request, const std::string& out) {
  const auto prepared = prepare(request);
  if (!prepared) return report_error(prepared.error());
  const std::string text = plan::plan_text(prepared->plan);
  if (out.empty()) {
    std::cout << text;
    return files::kExitSuccess;
  }
  if (!request.dry_run) files::write_durably(out, text);
  std::cerr << plan_summary(prepared->plan)
            << (request.dry_run ? "dry run: nothing was written\n" : fmt::format("written to {}\n", out));
  return files::kExitSuccess;
}

int command_list(ListForm form) {
  const auto programs = plan::find_programs(plan::installation().probes);
  if (!programs) return report_error(programs.error());
  if (form == ListForm::markdown) {
    std::cout << "| probe | measures | needs |\n|---|---|---|\n";
    for (const auto& program : *programs) std::cout << table_row(program.description);
    return files::kExitSuccess;
  }
  if (form == ListForm::json) {
    auto all = nlohmann::json::array();
    for (const auto& program : *programs) all.push_back(program.description.document);
    std::cout << all.dump(1) << '\n';
    return files::kExitSuccess;
  }
  for (const auto& program : *programs)
    std::cout << fmt::format("{:<24} {}\n", program.name, program.description.measures);
  return files::kExitSuccess;
}

int command_describe(const std::string& probe, bool json) {
  const auto programs = plan::find_programs(plan::installation().probes);
  if (!programs) return report_error(programs.error());
  std::vector<std::string> names;
  for (const auto& program : *programs) {
    if (program.name == probe) {
      std::cout << (json ? program.description.document.dump(1) + "\n" : described(program.description));
      return files::kExitSuccess;
    }
    names.push_back(program.name);
  }
  return report_error({probe, "is not a probe of this build", suggestion(probe, names)});
}

}  // namespace assay::cli
