// run_stages: reading, planning, running and judging, shared by several commands.
#include "orchestrator/cli/run_stages.h"

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <map>
#include <system_error>
#include <vector>

#include <fmt/ranges.h>

#include "orchestrator/cli/feasible.h"
#include "orchestrator/cli/table_json.h"
#include "orchestrator/files/atomic_file.h"
#include "orchestrator/files/digest.h"
#include "orchestrator/judge/cells/references.h"
#include "orchestrator/judge/evidence/evidence.h"
#include "orchestrator/judge/evidence/imported.h"
#include "orchestrator/judge/run_verdict.h"
#include "orchestrator/plan/catalogue.h"
#include "orchestrator/plan/crossing_spots.h"
#include "orchestrator/plan/plan.h"
#include "orchestrator/plan/programs.h"
#include "orchestrator/plan/storage_use.h"
#include "orchestrator/simulate/simulate.h"
#include "orchestrator/site/site_file.h"
#include "orchestrator/site/sources.h"
#include "probes/core/how_many.h"
#include "probes/core/scale.h"
#include "probes/core/suggest.h"
#include "probes/core/text.h"

namespace assay::cli {
namespace {

std::expected<site::Site, InputError> site_for(const PlanRequest& request) {
  if (request.site.empty()) {
    site::Site site = site::this_machine();
    if (!request.directory.empty()) site.nodes.front().directory = std::filesystem::absolute(request.directory);
    return site::read_site(to_json(site).dump(), "this machine");
  }
  return site::read_site_file(request.site);
}

/// The duration in `text`, the value of `option`: as parse_seconds reads it, or hours. No value if it is empty.
std::expected<std::optional<Seconds>, InputError> duration_of(const char* option, const std::string& text) {
  constexpr double kSecondsOfHour = 3600;
  if (text.empty()) return std::nullopt;
  std::optional<Seconds> duration = parse_seconds(text);
  if (text.ends_with('h')) {
    duration = parse_seconds(text.substr(0, text.size() - 1) + "s");
    if (duration) duration->count *= kSecondsOfHour;
  }
  const bool unitless = text.find_first_not_of("0123456789.") == std::string::npos;  // 5 of what
  if (!duration || duration->count <= 0 || unitless)
    return std::unexpected(InputError{option,
                                      fmt::format("'{}' {}", text, unitless ? "has no unit" : "is not a duration"),
                                      "write 2h, 90min or 600s"});
  return duration;
}

/// How likely the plan accepts a fleet without fault; nothing if no rate is required.
std::string chance_text(const plan::Plan& plan, const plan::HealthyFleet& fleet) {
  const plan::AcceptanceChance chance = plan::acceptance_chance(plan, fleet);
  if (chance.unplanned > 0)
    return fmt::format("cannot be accepted: nothing measures {} required cells\n", chance.unplanned);
  if (chance.cells == 0) return "";
  constexpr double kNearlyCertain = 0.99;  // higher ones round to 1
  return fmt::format(
      "a fleet without fault is accepted with probability {}: {} required rates, {:g} % above their limits, {:g} % "
      "between nodes, {:g} % between runs (--healthy)\n",
      chance.accepted > kNearlyCertain ? "over 0.99" : fmt::format("{:.2g}", chance.accepted), chance.cells,
      fleet.margin * 100, fleet.between_nodes * 100, fleet.between_runs * 100);
}

}  // namespace

std::expected<Prepared, InputError> prepare(const PlanRequest& request) {
  const auto profile = plan::profile_named(request.profile);
  if (!profile) return std::unexpected(profile.error());
  auto site = site_for(request);
  if (!site) return std::unexpected(site.error());
  std::vector<std::string> all_nodes;
  for (const auto& node : site->nodes) all_nodes.push_back(node.name);
  if (!request.nodes.empty()) {
    if (auto problem = keep_nodes(*site, request.nodes)) return std::unexpected(std::move(*problem));
  }
  std::string continues;
  if (!request.continues.empty()) {
    auto plan = continued_plan(request.continues, *profile);
    if (!plan) return std::unexpected(plan.error());
    continues = std::move(*plan);
  }
  auto programs = plan::installed_programs(plan::probes_of(*profile));
  if (!programs) return std::unexpected(programs.error());
  if (!request.allow_missing) {
    if (const auto unknown = plan::find_unknown_probe(*profile, *programs)) {
      const auto all = plan::find_programs(plan::installation().probes);  // one of them may be meant
      return std::unexpected(plan::find_unknown_probe(*profile, all.value_or(*programs)).value_or(*unknown));
    }
  }
  plan::PlanOptions options{.quick = request.quick,
                            .only = request.only,
                            .localise = request.localise,
                            .continues = std::move(continues),
                            .challenge = request.challenge,
                            .allow_settings = request.allow_settings};
  if (!request.risk.empty()) {
    auto agreed = plan::read_agreed_risk(request.risk, "--risk");
    if (!agreed) return std::unexpected(agreed.error());
    options.agreed_risk = *agreed;
  }
  if (!request.stability.empty()) {
    auto agreed = plan::read_agreed_stability(request.stability, "--stability");
    if (!agreed) return std::unexpected(agreed.error());
    options.agreed_stability = std::move(*agreed);
  }
  auto plan = plan::make_plan(*profile, *site, *programs, options);
  if (!plan) return std::unexpected(plan.error());
  if (!options.continues.empty() && !request.quick) {
    // A repaired node is no fleet: that of the earlier run is.
    options.earlier_fleet = fleet_of_continued(request.continues, *plan, small_fleets(*plan));
    if (!options.earlier_fleet.references.empty()) plan = plan::make_plan(*profile, *site, *programs, options);
    if (!plan) return std::unexpected(plan.error());
  }
  if (!request.quick && request.only.empty() && !request.allow_missing) {
    if (auto problem = too_few_nodes(*plan, request, all_nodes)) return std::unexpected(std::move(*problem));
  }
  Prepared prepared{.plan = std::move(*plan), .programs = std::move(*programs)};
  if (!request.healthy.empty()) {
    const auto healthy = plan::healthy_fleet(request.healthy, "--healthy");
    if (!healthy) return std::unexpected(healthy.error());
    prepared.healthy = *healthy;
  }
  return prepared;
}

std::string plan_summary(const Prepared& prepared, std::optional<Seconds> deadline) {
  const plan::Plan& plan = prepared.plan;
  const plan::Durations durations = plan::durations_of(plan);
  std::size_t attempts = 0;
  for (const auto& step : plan.steps) attempts += static_cast<std::size_t>(step.attempts);
  std::string text =
      fmt::format("profile {}: {} on {}, {}, {}, about {}\n", plan.profile.name, how_many(plan.steps.size(), "step"),
                  how_many(plan.site.nodes.size(), "node"), how_many(attempts, "attempt"),
                  how_many(plan.coverage.size(), "cell"), duration_words(durations.first_s));
  if (durations.most_s > durations.first_s) {
    text += fmt::format("what is open or failed then is measured again: about {} if that is everything\n",
                        duration_words(durations.most_s));
  }
  text += plan::storage_text(plan::storage_uses(plan)) + plan::crossing_words(plan);
  if (!plan.quick && plan.only.empty()) text += chance_text(plan, prepared.healthy);
  text += plan::risk_text(plan) + plan::stability_text(plan);
  if (deadline) {
    text += durations.first_s <= deadline->count
                ? fmt::format("that fits into the deadline of {}\n", duration_words(deadline->count))
                : fmt::format("that does not fit into the deadline of {}: steps that would end later do not start\n",
                              duration_words(deadline->count));
  }
  std::size_t tests = 0;
  for (const auto& search : plan.searches) tests += search.budget.most;
  if (tests > 0)
    text += fmt::format("if groups miss a limit: extra tests to locate the fault, usually a few, {} at most\n", tests);
  std::size_t narrowing = 0;
  for (const auto& search : plan.searches) narrowing = std::max(narrowing, search.knee);
  if (narrowing > 0)
    text += fmt::format(
        "if a figure with a knee falls: {} tests at most narrow it, with its groups twice log2 of the nodes in all\n",
        narrowing);
  std::map<std::string, std::vector<std::string>> reasons;
  for (const auto& cell : plan.coverage) {
    if (!cell.step.empty()) continue;
    auto& requirements = reasons[cell.reason];
    if (std::ranges::find(requirements, cell.requirement) == requirements.end())
      requirements.push_back(cell.requirement);
  }
  for (const auto& [reason, requirements] : reasons)
    text += fmt::format("not planned ({}), {}: {}\n", how_many(requirements.size(), "requirement"), reason,
                        fmt::join(requirements, ", "));
  return text;
}

void print_steps(const plan::Plan& plan) {
  const auto row = [](const auto&... words) {
    std::cout << harmless(fmt::format("{:<10} {:<24} {:<18} {:<16} {}", words...)) << '\n';
  };
  const auto alike = [](const plan::Step& a, const plan::Step& b) {
    return a.probe == b.probe && a.requirements == b.requirements && a.parameters == b.parameters &&
           a.nodes.size() == b.nodes.size();
  };
  row("steps", "probe", "nodes", "attempts", "requirements");
  for (auto first = plan.steps.begin(); first != plan.steps.end();) {
    const auto end = std::find_if_not(first, plan.steps.end(), [&](const auto& step) { return alike(*first, step); });
    const auto number = [](const plan::Step& step) { return step.id.substr(0, step.id.find('-')); };
    const auto times = end - first;
    const auto nodes = first->nodes.size(), others = first->requirements.size() - 1;
    const std::string more = others == 0 ? "" : fmt::format(" and {} more", others);
    const std::string place =
        nodes == 1   ? fmt::format("{} singly", times)
        : nodes == 2 ? how_many(times, "pair")
                     : fmt::format("{}{} together", times == 1 ? "" : fmt::format("{} times ", times), nodes);
    row(number(*first) + (times == 1 ? "" : "-" + number(*(end - 1))), first->probe,
        times == 1 && nodes == 1 ? first->nodes.front() : place,
        fmt::format("{} of {}", first->attempts, duration_words(first->typical_s)), first->requirements.front() + more);
    first = end;
  }
}

void print_steps_json(const char* command, const Prepared& prepared, const std::string& written) {
  using Json = nlohmann::ordered_json;
  const plan::Plan& plan = prepared.plan;
  const plan::Durations durations = plan::durations_of(plan);
  Json rows = Json::array(), not_planned = Json::array();
  int attempts = 0;
  for (const auto& step : plan.steps) {
    attempts += step.attempts;
    rows.push_back({{"step", step.id},
                    {"probe", step.probe},
                    {"nodes", step.nodes},
                    {"requirements", step.requirements},
                    {"attempts", step.attempts},
                    {"typical_s", step.typical_s}});
  }
  for (const auto& cell : plan.coverage) {
    if (cell.step.empty())
      not_planned.push_back(
          {{"requirement", cell.requirement}, {"subject", to_json(cell.subject)}, {"reason", cell.reason}});
  }
  print_table(command,
              {{"profile", plan.profile.name},
               {"site", plan.site.name},
               {"nodes", plan.site.nodes.size()},
               {"attempts", attempts},
               {"cells", plan.coverage.size()},
               {"first_s", durations.first_s},
               {"most_s", durations.most_s},
               {"quick", plan.quick},
               {"not_planned", std::move(not_planned)},
               {"written", written.empty() ? Json() : Json(written)}},
              std::move(rows));
}

std::expected<run::RunEnd, InputError> carry_out(const std::string& directory,
                                                 const std::vector<plan::Program>& programs, bool resume,
                                                 const RunSettings& settings, const judge::KeptRecords& records) {
  const auto times = times_of(settings);
  if (!times) return std::unexpected(times.error());
  const auto bytes = read_file(directory + "/plan.json");
  if (!bytes) return std::unexpected(bytes.error());
  const auto plan = plan::read_plan(*bytes, directory + "/plan.json");
  if (!plan) return std::unexpected(plan.error());
  run::Progress progress(*plan, run::Progress::mode_for(settings.json));
  if (!settings.board.empty()) {
    if (auto problem = progress.show_on(settings.board)) return std::unexpected(std::move(*problem));
  }
  run::RunOptions options{.directory = directory,
                          .agent = plan::installation().binaries + "/assay-node",
                          .agents = plan::installation().agents(),
                          .resume = resume,
                          .starts_at_once = settings.fan_out,
                          .deadline = times->deadline,
                          .stop_on_fail = settings.stop_on_fail,
                          .records = records};
  if (times->patience) options.patience = *times->patience;
  return run::run(*plan, files::sha256(*bytes), programs, options, progress);
}

std::expected<RunTimes, InputError> times_of(const RunSettings& settings) {
  const auto deadline = duration_of("--deadline", settings.deadline);
  if (!deadline) return std::unexpected(deadline.error());
  const auto patience = duration_of("--patience", settings.patience);
  if (!patience) return std::unexpected(patience.error());
  return RunTimes{.deadline = *deadline, .patience = *patience};
}

std::expected<judge::Verdict, InputError> judge_directory(const std::string& directory, judge::Advices* advices,
                                                          judge::KeptRecords records) {
  const auto read = judge::read_run(directory);
  if (!read) return std::unexpected(read.error());
  if (auto problem = judge::find_imported_files(directory, read->journal)) return std::unexpected(*problem);
  for (const auto& probe : plan::unknown_probes(read->plan))
    std::cerr << fmt::format("{} is described by its plan alone; this version does not know it\n", harmless(probe));
  const judge::EvidenceReader evidence = read->plan.simulation ? simulate::simulated_evidence(read->plan, read->journal)
                                                               : judge::evidence_in(directory, std::move(records));
  auto verdict = judge::judge_run(read->plan, read->plan_sha256, read->journal, evidence);
  if (!verdict) {
    verdict.error().where = directory + "/" + verdict.error().where;
    return verdict;
  }
  try {
    files::write_durably(directory + "/verdict.json",
                         [&](const files::TextSink& sink) { judge::write_verdict(*verdict, sink); });
  } catch (const std::system_error& error) {
    return std::unexpected(InputError{directory, fmt::format("the verdict cannot be written: {}", error.what()),
                                      "check free space and permissions, then run `assay judge`"});
  }
  if (advices != nullptr) *advices = judge::advices_of(read->plan, read->journal, *verdict, evidence);
  return verdict;
}

int report_error(const InputError& error) {
  std::cerr << "assay: " << error.text() << '\n';
  return files::kExitBadInput;
}

std::optional<InputError> keep_nodes(site::Site& site, const std::string& nodes) {
  const auto wanted = site::expand_host_list(nodes);
  if (!wanted)
    return InputError{"--nodes", fmt::format("'{}': {}", nodes, wanted.error()), "write n07,n09 or n[07-09]"};
  std::vector<std::string> known;
  for (const auto& node : site.nodes) known.push_back(node.name);
  for (const auto& name : *wanted) {
    if (std::ranges::find(known, name) != known.end()) continue;
    return InputError{"--nodes", fmt::format("the site {} has no node '{}'", site.name, name), suggestion(name, known)};
  }
  std::erase_if(site.nodes,
                [&](const site::Node& node) { return std::ranges::find(*wanted, node.name) == wanted->end(); });
  site::keep_nodes(site.crossings, *wanted);
  return std::nullopt;
}

std::string file_of_run(const std::string& directory, const std::string& name) {
  std::error_code unknown;  // refused when it is read
  const std::string in_dossier = directory + "/evidence/" + name;
  return std::filesystem::exists(in_dossier, unknown) ? in_dossier : directory + "/" + name;
}

std::expected<std::string, InputError> continued_plan(const std::string& directory, const plan::Profile& profile) {
  const std::string path = file_of_run(directory, "plan.json");
  const auto bytes = read_file(path);
  if (!bytes) return std::unexpected(bytes.error());
  const auto plan = plan::read_plan(*bytes, path);
  if (!plan) return std::unexpected(plan.error());
  if (plan->profile.name != profile.name || plan->profile.revision != profile.revision) {
    return std::unexpected(
        InputError{"--continues",
                   fmt::format("the plan in {} is of profile {}, revision {}, and this is {}, revision {}", directory,
                               plan->profile.name, plan->profile.revision, profile.name, profile.revision),
                   "continue a test with the profile that it began with"});
  }
  return files::sha256(*bytes);
}

plan::EarlierFleet fleet_of_continued(const std::string& directory, const plan::Plan& plan,
                                      const std::vector<std::string>& requirements) {
  const std::string path = file_of_run(directory, "journal.jsonl");
  const std::string root = std::filesystem::path(path).parent_path().string();
  const auto run = judge::read_run(root);
  const auto journal = read_file(path);
  if (!run || !journal) return {};
  auto fleet = judge::fleet_of_run(*run, judge::evidence_in(root), plan, requirements);
  if (fleet.references.empty()) return {};
  fleet.journal_sha256 = files::sha256(*journal);
  return fleet;
}

}  // namespace assay::cli
