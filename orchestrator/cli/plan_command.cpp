// plan_command: `assay plan`, `assay list` and `assay describe`.
#include <chrono>
#include <iostream>
#include <utility>

#include <unistd.h>

#include <fmt/ranges.h>

#include "orchestrator/cli/commands.h"
#include "orchestrator/cli/run_stages.h"
#include "orchestrator/files/atomic_file.h"
#include "orchestrator/files/terminal.h"
#include "orchestrator/plan/advisories.h"
#include "orchestrator/plan/profile.h"
#include "orchestrator/plan/programs.h"
#include "probes/core/how_many.h"
#include "probes/core/suggest.h"
#include "probes/core/text.h"
#include "probes/core/utc_time.h"
#include "profiles/actions.h"
#include "profiles/embedded.h"

namespace assay::cli {
namespace {

/// Text in lines of at most 100 columns, each indented by two.
std::string wrapped(const std::string& text) {
  constexpr std::size_t kWidth = 100;
  return files::wrapped(text, kWidth, "  ");
}

/// One line of a list: a name, then its explanation in lines of at most 100 columns.
std::string entry(const std::string& name, const std::string& text) {
  constexpr std::size_t kWidth = 100;
  return files::wrapped(text, kWidth, fmt::format("  {:<22} ", name));
}

std::string described(const Description& probe) {
  std::string text =
      fmt::format("{} (revision {}, one {} at a time)\n{}\nmethod\n{}\nsource\n{}", probe.name, probe.revision,
                  probe.scope, wrapped(probe.measures), wrapped(probe.method), wrapped(probe.source));
  if (!probe.needs.empty()) text += "\nneeds\n" + wrapped(probe.needs);
  text += "\nparameters\n";
  for (const auto& parameter : probe.parameters) {
    text += entry(parameter.name,
                  fmt::format("{}{} [{}{}]", parameter.meaning, parameter.unit.empty() ? "" : ", in " + parameter.unit,
                              parameter.fallback, parameter.quick.empty() ? "" : ", quick " + parameter.quick));
    if (!parameter.choices.empty()) text += fmt::format("  {:<22}   one of: {}\n", "", parameter.choices);
  }
  text += "\nmetrics\n";
  for (const auto& metric : probe.metrics)
    text +=
        entry(metric.name, fmt::format("{}, in {}, {} is better{}", metric.meaning, metric.unit, metric.better,
                                       metric.kind == MetricKind::figure ? "" : fmt::format("; a {}", metric.kind)));
  text += "\nconditions\n";
  for (const auto& condition : probe.conditions) text += entry(condition.name, condition.meaning);
  return text;
}

/// "at least 0.75 of peak:memory", "at most 3e-06 s", "at least 0.05": a limit as the profile states it.
std::string limit_words(const nlohmann::json& requirement) {
  if (requirement.contains("contrast"))
    return fmt::format("at least {:.15g}", requirement.at("contrast").at("at_least").get<double>());
  const auto& limit = requirement.at("limit");
  std::string words;
  for (const auto& [field, name] : {std::pair{"at_least", "at least"}, std::pair{"at_most", "at most"}}) {
    if (limit.contains(field))
      words += fmt::format("{}{} {:.15g}", words.empty() ? "" : " and ", name, limit.at(field).get<double>());
  }
  const auto unit = limit.at("unit").get<std::string>();
  if (limit.contains("capped_by"))
    return fmt::format("{} of {}, capped by {}", words, limit.at("of").get<std::string>(),
                       limit.at("capped_by").get<std::string>());
  if (limit.contains("of")) return fmt::format("{} of {}", words, limit.at("of").get<std::string>());
  return unit == "1" ? words : words + " " + unit;
}

std::string described(const plan::Profile& profile) {
  std::string text = fmt::format("{} (revision {})\n{}", profile.name, profile.revision, wrapped(profile.title));
  if (!profile.peaks.empty()) text += "\ndesign peaks\n";
  for (const auto& [name, peak] : profile.peaks)
    text += fmt::format("  {:<22} {:.15g} {}, {}: {}\n", name, peak.value, peak.unit, peak.source.status,
                        peak.source.document);
  text += "\nrequirements\n";
  const nlohmann::json document = to_json(profile);
  for (std::size_t i = 0; i < profile.requirements.size(); ++i) {
    const plan::Requirement& one = profile.requirements[i];
    text += fmt::format("  {}{}\n", one.id, one.required ? "" : " (advisory)");
    if (one.demand)
      text += fmt::format("    {} of {}, per {}: {}\n", one.figure(), one.probe, one.scope,
                          one.demand->site.empty() ? words_of(*one.demand) : "as the site says");
    else
      text += fmt::format("    {} of {}, {} per {}: {}\n", one.figure(), one.probe, one.statistic, one.scope,
                          limit_words(document.at("requirements").at(i)));
    for (const auto& demand : one.conditions) text += fmt::format("    only with the condition {}\n", demand.name);
    text += fmt::format("    {}: {}\n", one.source.status, one.source.document);
  }
  return text;
}

/// Every known fault, the ranges of one component together.
std::string described(const plan::AdvisoryTable& table) {
  std::string text = fmt::format("advisories, sources of {}\n", table.dated);
  std::string_view component;
  for (const auto& one : table.advisories) {
    if (std::exchange(component, one.component) != one.component) text += fmt::format("\n{}\n", one.component);
    text += entry(
        one.span.from.empty() ? "below " + one.span.below : fmt::format("{} .. {}", one.span.from, one.span.below),
        fmt::format("{}: {}", one.severity, one.what));
    text += entry("", fmt::format("{}, {}, {}", one.document, one.date, one.address));
  }
  return text + "\nA range ends before its second version.\n";
}

/// The table of actions: a line for each row with what it asks for, then the sources.
std::string described(const profiles::ActionTable& table, std::string_view today) {
  std::string text = fmt::format("what to do about findings ({})\n", table.age_words(today));
  for (const auto& row : table.rows()) {
    std::string finding = fmt::format("{} {}{}{}", row.found, row.probe, row.probe.empty() ? "" : ".", row.name);
    if (!row.values.empty()) finding += fmt::format(" {}", fmt::join(row.values, ", "));
    text += "\n" + wrapped(finding);
    text += row.by.empty() ? entry(std::string(word_of(row.advice.action)),
                                   fmt::format("{} [{}]", row.advice.says, row.advice.source))
                           : entry("by", "its condition " + row.by);
  }
  text += "\nwithout a row: not known\n\nsources\n";
  for (const auto& [name, source] : table.sources())
    text += entry(name, fmt::format("{}, {} ({}): {}", source.document, source.date, source.status, source.address));
  return text;
}

std::string table_row(const Description& probe) {
  return fmt::format("| `{}` | {} | {} |\n", probe.name, probe.measures, probe.needs.empty() ? "Linux" : probe.needs);
}

}  // namespace

int command_plan(const PlanRequest& request, const std::string& out, bool json) {
  if (json && out.empty() && !request.dry_run)
    return report_error({"--json", "needs --out or --dry-run", "without them the plan itself is printed, as JSON"});
  const auto prepared = prepare(request);
  if (!prepared) return report_error(prepared.error());
  std::cerr << harmless_page(plan_summary(*prepared));
  if (request.dry_run) {
    if (json) {
      print_steps_json("plan", *prepared, "");
    } else {
      print_steps(prepared->plan);
    }
    std::cerr << "dry run: nothing was written\n";
    return files::kExitSuccess;
  }
  const std::string text = plan::plan_text(prepared->plan);
  if (out.empty()) {
    // A file gets the plan's own bytes; a terminal gets harmless text.
    std::cout << (::isatty(STDOUT_FILENO) == 1 ? harmless_page(text) : text);
    return files::kExitSuccess;
  }
  files::write_durably(out, text);
  if (json) print_steps_json("plan", *prepared, out);
  std::cerr << fmt::format("written to {}\n", harmless(out));
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

int command_list_profiles(bool json) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const auto& [name, text] : plan::embedded_profiles()) {
    const auto profile = plan::profile_named(name);
    if (!profile) return report_error(profile.error());
    if (json) {
      all.push_back({{"name", profile->name},
                     {"title", profile->title},
                     {"revision", profile->revision},
                     {"requirements", profile->requirements.size()}});
    } else {
      std::cout << fmt::format("{:<26} {}, {}\n", harmless(profile->name), harmless(profile->title),
                               how_many(profile->requirements.size(), "requirement"));
    }
  }
  if (json) std::cout << all.dump(1, ' ', true) << '\n';
  return files::kExitSuccess;
}

int command_describe(const std::string& name, bool json) {
  if (name == plan::kAdvisoriesDocument) {
    std::cout << (json ? std::string(profiles::embedded_documents().at(name))
                       : harmless_page(described(plan::advisories())));
    return files::kExitSuccess;
  }
  if (name == profiles::kActionsDocument) {
    std::cout << harmless_page(json ? std::string(profiles::embedded_documents().at(name))
                                    : described(profiles::actions(), utc_text(std::chrono::system_clock::now())));
    return files::kExitSuccess;
  }
  const auto programs = plan::find_programs(plan::installation().probes);
  if (!programs) return report_error(programs.error());
  std::vector<std::string> names;
  for (const auto& program : *programs) {
    if (program.name == name) {
      std::cout << (json ? program.description.document.dump(1) + "\n" : described(program.description));
      return files::kExitSuccess;
    }
    names.push_back(program.name);
  }
  for (const auto& [known, text] : plan::embedded_profiles()) names.push_back(known);
  names.emplace_back(plan::kAdvisoriesDocument);
  names.emplace_back(profiles::kActionsDocument);
  const bool is_profile =
      name.ends_with(".json") || name.find('/') != std::string::npos || plan::embedded_profiles().contains(name);
  if (!is_profile)
    return report_error({name, "is neither a probe of this build nor a profile, nor `actions` or `advisories`",
                         suggestion(name, names)});
  const auto profile = plan::profile_named(name);
  if (!profile) return report_error(profile.error());
  std::cout << (json ? to_json(*profile).dump(1, ' ', true) + "\n" : harmless_page(described(*profile)));
  return files::kExitSuccess;
}

}  // namespace assay::cli
