// sweep_command: `assay sweep` from the head: due list, choice, visits, ledger.
#include <algorithm>
#include <expected>
#include <filesystem>
#include <iostream>
#include <limits>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <boost/uuid/random_generator.hpp>
#include <boost/uuid/uuid_io.hpp>

#include "orchestrator/cli/documents.h"
#include "orchestrator/cli/run_stages.h"
#include "orchestrator/cli/table_json.h"
#include "orchestrator/drift/report.h"
#include "orchestrator/files/atomic_file.h"
#include "orchestrator/files/line_log.h"
#include "orchestrator/files/own_folder.h"
#include "orchestrator/files/state.h"
#include "orchestrator/fleet/sweep_shared.h"
#include "orchestrator/site/site_file.h"
#include "orchestrator/sweep/outcome.h"
#include "orchestrator/sweep/retests.h"
#include "probes/core/how_many.h"
#include "probes/core/secret_file.h"
#include "probes/core/text.h"
#include "probes/core/utc_time.h"

namespace assay::cli {
namespace {

/// Nodes of a drift report: watched for any reason, flagged, and wanted for a test again.
struct Watched {
  std::vector<std::string> watched, flagged;
  std::vector<sweep::RetestNode> wanted;
};

/// Reads the report at `path`; an empty path is a report without any.
std::expected<Watched, InputError> watched_in(const std::string& path) {
  Watched found;
  if (path.empty()) return found;
  const auto report = read_document(path, drift::read_report);
  if (!report) return std::unexpected(report.error());
  for (const auto& flag : report->flags) {
    found.watched.push_back(flag.node);
    if (flag.state != drift::UnitState::watch) found.flagged.push_back(flag.node);
  }
  for (const auto& one : report->retests_wanted) {
    auto node = std::ranges::find(found.wanted, one.node, &sweep::RetestNode::name);
    if (node == found.wanted.end()) node = found.wanted.insert(node, {.name = one.node});
    node->with_partner = node->with_partner || one.other_partner;
    const auto flag = std::ranges::find(report->flags, one.flag, &drift::Flag::id);
    if (flag == report->flags.end()) continue;
    for (const auto& test : flag->retests) node->partners.push_back(test.partner);
  }
  return found;
}

/// The nodes that are wanted for a test again and their partners, visited tonight or not, in the order of retest_order.
/// `for_workers`: each is measured on its own. Errors: a partner is wanted and none is among the nodes.
std::expected<std::vector<sweep::DueNode>, InputError> nodes_of_retest(const Watched& watched, const SweepPlan& plan,
                                                                       bool for_workers) {
  std::vector<sweep::RetestNode> wanted;
  std::vector<std::string> others;
  for (const auto& node : plan.site.nodes) {
    const auto found = std::ranges::find(watched.wanted, node.name, &sweep::RetestNode::name);
    if (found != watched.wanted.end()) {
      wanted.push_back(*found);
    } else if (std::ranges::find(watched.watched, node.name) == watched.watched.end()) {
      others.push_back(node.name);
    }
  }
  const auto joint = std::ranges::find(wanted, true, &sweep::RetestNode::with_partner);
  if (joint != wanted.end() && for_workers)
    return std::unexpected(InputError{joint->name, "is wanted with a partner, and a worker is alone on its node",
                                      "test again over ssh, or with --slurm"});
  if (joint != wanted.end() && wanted.size() + others.size() < 2)
    return std::unexpected(InputError{joint->name, "is wanted with a partner, and there is none among the nodes",
                                      "let --nodes name one more, or leave it out"});
  std::vector<sweep::DueNode> nodes;
  for (auto& name : sweep::retest_order(wanted, std::move(others), plan.file.id)) nodes.push_back({.name = name});
  return nodes;
}

namespace fs = std::filesystem;
using std::chrono::system_clock;

std::expected<site::Site, InputError> site_for(const SweepArguments& given) {
  std::expected<site::Site, InputError> site;
  if (given.site.empty()) {
    site::Site machine = site::this_machine();
    if (!given.directory.empty()) machine.nodes.front().directory = fs::absolute(given.directory);
    site = site::read_site(to_json(machine).dump(), "this machine");
  } else {
    site = site::read_site_file(given.site);
  }
  if (!site || given.nodes.empty()) return site;
  if (auto problem = keep_nodes(*site, given.nodes)) return std::unexpected(*problem);
  return site;
}

/// The clock, or the time of --now.
std::expected<system_clock::time_point, InputError> time_for(const std::string& now) {
  if (now.empty()) return system_clock::now();
  const auto time = given_time(now);
  if (!time) return std::unexpected(InputError{"--now", "is no time", kGivenTimeHint});
  return *time;
}

struct Times {
  system_clock::time_point now;
  sweep::Night night;
  std::optional<system_clock::time_point> until;
};

std::expected<Times, InputError> times_for(const SweepArguments& given) {
  const auto now = time_for(given.now);
  if (!now) return std::unexpected(now.error());
  const auto offset = sweep::local_offset(*now);
  Times times{.now = *now, .night = sweep::night_of(*now, offset)};
  if (!given.night.empty()) {
    const auto night = drift::date_from(given.night);
    if (!night) return std::unexpected(InputError{"--night", "is no date", "write 2026-01-05"});
    times.night = *night;
  }
  const auto real = system_clock::now();
  if (!given.until.empty()) {
    times.until = sweep::next_time(given.until, real, sweep::local_offset(real));
    if (!times.until) return std::unexpected(InputError{"--until", "is no time of a day", "write 06:00"});
  }
  if (!given.deadline.empty()) {
    const auto seconds = seconds_of("--deadline", given.deadline);
    if (!seconds) return std::unexpected(seconds.error());
    const auto end =
        real + std::chrono::duration_cast<system_clock::duration>(std::chrono::duration<double>(seconds->count));
    times.until = std::min(times.until.value_or(end), end);
  }
  return times;
}

std::optional<InputError> check_profile(const plan::Profile& profile) {
  for (const bool after : {false, true}) {
    if (!sweep::idle_checks(profile, after).empty()) continue;
    return InputError{profile.name,
                      fmt::format("has no requirement idle.* {} the measurement", after ? "after" : "before"),
                      "a sweep must see whether others use a node: extend nightly-2m, or add the requirements idle.cpu "
                      "and idle.cpu.after of it"};
  }
  return std::nullopt;
}

/// Tonight's requirements and those that do not fit, or join more than `most` nodes.
std::expected<sweep::Choice, InputError> choice_for(const SweepPlan& plan, const sweep::Ledger& ledger,
                                                    std::size_t most) {
  std::vector<std::string> names;
  for (const auto& entry : plan.file.due) names.push_back(entry.node);
  const auto whole =
      plan::make_plan(plan.tools.profile, site_of(plan.site, names), plan.tools.programs, {.localise = false});
  if (!whole) return std::unexpected(whole.error());
  auto candidates = sweep::candidates_of(*whole);
  const auto beyond = sweep::too_large(candidates, most);
  auto choice = sweep::choose(sweep::aged(std::move(candidates), ledger, plan.file.night), plan.file.budget_s);
  choice.left_out.insert(choice.left_out.end(), beyond.begin(), beyond.end());
  return choice;
}

/// Nodes that a step may join: a worker has only its node, a job of a pair has two.
std::size_t most_nodes(const SweepArguments& given) {
  if (given.prepare) return 1;
  return given.slurm ? 2 : std::numeric_limits<std::size_t>::max();
}

std::string ledger_path(const SweepArguments& given) {
  const std::string folder =
      given.state.empty() ? fs::path(files::machine_key_path()).replace_filename("sweep").string() : given.state;
  return folder + "/visits.jsonl";
}

std::expected<sweep::Ledger, InputError> ledger_in(const std::string& path) {
  const auto lines = files::read_lines(path);
  if (!lines) return std::unexpected(lines.error());
  return sweep::read_ledger(*lines, path);
}

std::string plan_words(const SweepPlan& plan) {
  if (plan.file.retest)
    return fmt::format("night {}: {} of {} nodes for tests again, partners among them; {}, {} left out\n",
                       drift::date_text(plan.file.night), plan.file.due.size(), plan.site.nodes.size(),
                       how_many(plan.file.only.size(), "requirement"), plan.file.left_out.size());
  std::size_t overdue = 0, never = 0;
  for (const auto& entry : plan.file.due) {
    never += entry.never ? 1 : 0;
    overdue += entry.overdue && !entry.never ? 1 : 0;
  }
  return fmt::format(
      "night {}: {} of {} nodes due, {} of them never measured, {} overdue; {} in {:g} s each, {} left "
      "out\n",
      drift::date_text(plan.file.night), plan.file.due.size(), plan.site.nodes.size(), never, overdue,
      how_many(plan.file.only.size(), "requirement"), plan.file.budget_s, plan.file.left_out.size());
}

/// The due nodes as a table in JSON; `out`: the folder that was prepared, empty in a dry run.
void print_due_json(const SweepPlan& plan, const std::string& out) {
  nlohmann::ordered_json rows;
  for (const auto& entry : plan.file.due)
    rows.push_back({{"node", entry.node},
                    {"age", entry.age},
                    {"never_measured", entry.never},
                    {"weight", entry.weight},
                    {"overdue", entry.overdue},
                    {"missed_before", entry.targeted}});
  print_table("sweep",
              {{"night", drift::date_text(plan.file.night)},
               {"of", "due"},
               {"nodes", plan.site.nodes.size()},
               {"budget_s", plan.file.budget_s},
               {"requirements", plan.file.only},
               {"left_out", plan.file.left_out},
               {"out", out.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(out)}},
              std::move(rows));
}

std::string age_words(const sweep::DueEntry& entry) {
  if (entry.never) return "never measured";
  return fmt::format("last measured {} ago{}", how_many(entry.age, "night"), entry.overdue ? ", overdue" : "");
}

void print_due(const SweepPlan& plan) {
  for (const auto& entry : plan.file.due)
    std::cout << fmt::format(
        "{}: {}{}, due tonight, weight {:g}\n", harmless(entry.node), age_words(entry),
        entry.targeted ? fmt::format(", missed in {} sweeps and more", sweep::kMissedForTarget) : "", entry.weight);
}

/// The due nodes at once, in such an order that partners of pairs change from night to night.
std::expected<std::vector<sweep::NodeVisit>, InputError> sweep_at_once(const SweepPlan& plan, const std::string& out) {
  std::vector<std::string> names;
  for (const auto& entry : plan.file.due) names.push_back(entry.node);
  SweepStop stop;
  const site::Site site = site_of(plan.site, with_partners_of_tonight(plan.file, std::move(names)));
  auto visits = visit_nodes(out, plan.tools, site, plan.file.only, left_of(plan), stop);
  if (visits && plan.tries_crossings() && !stop.requested()) {
    if (auto problem = try_crossings(out + "/" + kCrossingRun, plan.tools, plan.site, left_of(plan), stop))
      return std::unexpected(*problem);
  }
  return visits;
}

int run_sweep(const SweepArguments& given) {
  auto plan = plan_sweep(given);
  if (!plan) return report_error(plan.error());
  std::cerr << harmless_page(plan_words(*plan));
  if (plan->tries_crossings())
    std::cerr << harmless_page(given.slurm || given.prepare
                                   ? "crossing: none is tried by jobs or workers, which have no nodes of two tenants\n"
                                   : crossing_lines(plan->tools, plan->site));
  if (given.json && (given.dry_run || plan->file.due.empty())) {
    print_due_json(*plan, "");
    return files::kExitSuccess;
  }
  if (given.dry_run) {
    print_due(*plan);
    return files::kExitSuccess;
  }
  if (plan->file.due.empty()) {
    std::cout << "nothing is due tonight\n";
    return files::kExitSuccess;
  }
  // One sweep of a state folder at a time: two would disturb each other's figures.
  auto lock = files::LineLog::open(fs::path(plan->ledger).replace_filename("sweeps.log").string());
  if (!lock) return report_error(lock.error());
  const std::string out = given.out.empty() ? "assay-sweep-" + plan->file.id.substr(0, 8) : given.out;
  if (auto problem = write_sweep(*plan, out)) return report_error(*problem);
  if (auto problem = lock->append(plan->file.id + " " + fs::absolute(out).string())) return report_error(*problem);
  if (given.prepare) {
    if (given.json) {
      print_due_json(*plan, out);
    } else {
      std::cout << harmless(out) << '\n';
    }
    return files::kExitSuccess;
  }
  const auto visits = given.slurm ? sweep_by_slurm(*plan, fs::absolute(out), given) : sweep_at_once(*plan, out);
  if (!visits) return report_error(visits.error());
  return finish_sweep(*plan, out, given, *visits);
}

/// The outcomes that workers left; of a sweep that has its sweep.json, those of that file: the ledger and the history
/// may not know it yet.
int collect(const SweepArguments& given) {
  const auto plan = read_sweep_folder(given.collect, given);
  if (!plan) return report_error(plan.error());
  std::error_code absent;
  if (const std::string path = given.collect + "/sweep.json"; fs::exists(path, absent)) {
    if (auto problem = check_deciding_file(given.collect)) return report_error(*problem);
    const auto file = read_document(path, sweep::read_sweep);
    if (!file) return report_error(file.error());
    return finish_sweep(*plan, given.collect, given, file->visits);
  }
  const auto visits = visits_in(*plan, given.collect);
  if (!visits) return report_error(visits.error());
  return finish_sweep(*plan, given.collect, given, *visits);
}

/// Writes the visited nodes, in their order, into the plan.
std::optional<InputError> list_due(SweepPlan& plan, const sweep::Ledger& ledger, const Watched& watched,
                                   const SweepArguments& given) {
  auto nodes = sweep::due_nodes(plan.site, ledger, plan.file.night, watched.watched, watched.flagged);
  if (given.retests) {
    auto chosen = nodes_of_retest(watched, plan, given.prepare);
    if (!chosen) return chosen.error();
    nodes = std::move(*chosen);
  }
  plan.file.due =
      sweep::due_list(nodes, {.tonight = plan.file.night, .rotate = given.rotate, .max_age_nights = given.max_age});
  plan.file.retest = given.retests;
  if (given.retests)
    std::ranges::sort(plan.file.due, {}, [&](const sweep::DueEntry& entry) {
      return std::ranges::find(nodes, entry.node, &sweep::DueNode::name);
    });
  return std::nullopt;
}

}  // namespace

std::expected<SweepPlan, InputError> plan_sweep(const SweepArguments& given) {
  auto profile = plan::profile_named(given.profile);
  if (!profile) return std::unexpected(profile.error());
  if (auto problem = check_profile(*profile)) return std::unexpected(*problem);
  auto site = site_for(given);
  if (!site) return std::unexpected(site.error());
  const auto times = times_for(given);
  if (!times) return std::unexpected(times.error());
  const auto budget = seconds_of("--budget", given.budget), stagger = seconds_of("--stagger", given.stagger);
  if (!budget) return std::unexpected(budget.error());
  if (!stagger) return std::unexpected(stagger.error());
  const auto watched = watched_in(given.drift);
  if (!watched) return std::unexpected(watched.error());
  auto programs = sweep_programs(*profile);
  if (!programs) return std::unexpected(programs.error());
  SweepPlan plan{.file = {.id = boost::uuids::to_string(boost::uuids::random_generator()()),
                          .night = times->night,
                          .night_given = !given.night.empty() || !given.now.empty(),
                          .started = utc_text(times->now),
                          .until = times->until ? utc_text(*times->until) : "",
                          .profile = profile->name,
                          .budget_s = budget->count,
                          .stagger_s = stagger->count},
                 .site = std::move(*site),
                 .tools = {.profile = sweep::as_sweep(std::move(*profile)),
                           .programs = std::move(*programs),
                           .fan_out = given.fan_out,
                           .quiet = given.quiet,
                           .board = given.board},
                 .until = times->until};
  plan.ledger = ledger_path(given);
  const auto ledger = ledger_in(plan.ledger);
  if (!ledger) return std::unexpected(ledger.error());
  if (auto problem = list_due(plan, *ledger, *watched, given)) return std::unexpected(*problem);
  if (plan.file.due.empty()) return plan;
  auto choice = choice_for(plan, *ledger, most_nodes(given));
  if (!choice) return std::unexpected(choice.error());
  plan.file.only = std::move(choice->only);
  plan.file.left_out = std::move(choice->left_out);
  if (!given.slurm) return plan;
  std::vector<std::string> names;
  for (const auto& entry : plan.file.due) names.push_back(entry.node);
  auto pairs = pairs_among(plan, names);
  if (!pairs) return std::unexpected(pairs.error());
  plan.file.pairs = std::move(*pairs);
  return plan;
}

std::optional<Seconds> left_of(const SweepPlan& plan) {
  if (!plan.until) return std::nullopt;
  return Seconds{std::max(0.0, std::chrono::duration<double>(*plan.until - system_clock::now()).count())};
}

std::optional<InputError> write_sweep(const SweepPlan& plan, const std::string& out) {
  if (auto problem = files::take_own_folder(out)) return problem;
  if (auto problem = files::create_file(out + "/site.json", to_json(plan.site).dump(1) + "\n", 0644)) return problem;
  if (auto problem = files::create_file(out + "/profile.json", to_json(plan.tools.profile).dump(1) + "\n", 0644))
    return problem;
  return files::create_file(out + "/due.json", sweep::due_text(plan.file), 0644);  // last: it makes the folder a sweep
}

int command_sweep(const SweepArguments& given) {
  if (!given.worker.empty()) return given.pair.empty() ? run_worker(given) : run_pair_worker(given);
  if (!given.collect.empty()) return collect(given);
  return run_sweep(given);
}

}  // namespace assay::cli
