// junit: the form that CI systems agree on; there is no schema of all of them.
#include <fmt/format.h>

#include "probes/core/text.h"
#include "reports/exports/cells.h"
#include "reports/exports/exports.h"
#include "reports/figures/result_text.h"

namespace assay::exports {
namespace {

/// `text` from outside for attributes and elements.
std::string xml(std::string_view text) { return as_markup(harmless(text)); }

/// The figures of a cell, a line each, as people read them; other formats have every digit.
std::string figures(const judge::Result& result, const std::string& action) {
  const judge::Result* const column[] = {&result};
  const Scale scale = assay::figures::column_scale(column);
  const auto number = [&](const std::optional<double>& value) {
    return value ? assay::figures::text_in(scale, result, *value) : "-";
  };
  std::string text = fmt::format("value {}\n", result.is_of_demand() ? judge::seen_text(result) : number(result.value));
  if (result.is_of_demand()) text += fmt::format("demanded {}\n", judge::demanded_text(result));
  if (result.limit_low)
    text += fmt::format("limit >= {}, accepted from {}\n", number(result.limit_low), number(result.acceptance_low));
  if (result.limit_high)
    text += fmt::format("limit <= {}, accepted up to {}\n", number(result.limit_high), number(result.acceptance_high));
  text += fmt::format("uncertainty {}\nsamples {}\nattempts {}\n",
                      result.uncertainty ? for_people(*result.uncertainty, result.unit) : "-", result.samples,
                      result.attempts);
  if (!action.empty()) text += fmt::format("action {}\n", action);
  for (const auto& path : result.evidence) text += fmt::format("evidence {}\n", path);
  return text;
}

enum class Counted { passed, failed, broken, skipped };

Counted counted(const judge::Result& result) {
  using enum judge::Outcome;
  if (result.outcome == pass) return Counted::passed;
  if (!result.required) return Counted::skipped;
  return result.outcome == not_measured || result.outcome == error ? Counted::broken : Counted::failed;
}

std::string test_case(const judge::Result& result, const std::string& action, double seconds) {
  std::string text = fmt::format("    <testcase classname=\"{}\" name=\"{}\" time=\"{:.3f}\">\n",
                                 xml(result.requirement), xml(judge::place_of(result)), seconds);
  const std::string outcome = judge::to_string(result.outcome);
  switch (counted(result)) {
    case Counted::passed:
      break;
    case Counted::failed:
      text += fmt::format("      <failure type=\"{}\" message=\"{}\"/>\n", outcome, xml(result.reason));
      break;
    case Counted::broken:
      text += fmt::format("      <error type=\"{}\" message=\"{}\"/>\n", outcome, xml(result.reason));
      break;
    case Counted::skipped:
      text += fmt::format("      <skipped message=\"advisory, {}: {}\"/>\n", outcome, xml(result.reason));
      break;
  }
  return text + fmt::format("      <system-out>{}</system-out>\n    </testcase>\n",
                            as_markup(harmless_page(figures(result, action))));
}

struct Suite {
  std::size_t tests = 0, failures = 0, errors = 0, skipped = 0;
  double seconds = 0;
  std::string cases;

  void add(const judge::Result& result, const std::string& action, double time) {
    ++tests;
    const auto kind = counted(result);
    failures += kind == Counted::failed ? 1 : 0;
    errors += kind == Counted::broken ? 1 : 0;
    skipped += kind == Counted::skipped ? 1 : 0;
    seconds += time;
    cases += test_case(result, action, time);
  }
  [[nodiscard]] std::string attributes() const {
    return fmt::format("tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\" time=\"{:.3f}\"", tests, failures,
                       errors, skipped, seconds);
  }
};

/// "2026-01-05T06:37:41": JUnit's time stamps have neither fractions nor a zone.
std::string second_of(const std::string& utc) { return utc.substr(0, 19); }

std::string verdict_suite(const dossier::OpenedRun& run, bool accepted) {
  const auto& verdict = run.content.verdict;
  const std::string why = never_accepts(run);
  std::string text = fmt::format(
      "  <testsuite name=\"verdict\" tests=\"1\" failures=\"{}\" errors=\"0\" skipped=\"0\" time=\"0.000\" "
      "timestamp=\"{}\" hostname=\"{}\">\n    <properties>\n",
      accepted ? 0 : 1, second_of(run.content.run.journal.last), xml(run.content.run.plan.site.name));
  const auto& plan = run.content.run.plan;
  for (const auto& [name, value] :
       {std::pair<std::string, std::string>{"run_id", run.content.run.journal.run_id},
        {"standing", run.standing},
        {"profile", fmt::format("{} revision {}", plan.profile.name, plan.profile.revision)},
        {"site", plan.site.name},
        {"plan_sha256", run.content.run.plan_sha256},
        {"verdict_sha256", run.content.verdict_sha256},
        {"assay", plan.assay_version}})
    text += fmt::format("      <property name=\"{}\" value=\"{}\"/>\n", name, xml(value));
  text += "    </properties>\n    <testcase classname=\"verdict\" name=\"accepted\" time=\"0.000\">\n";
  if (!accepted) {
    text += fmt::format("      <failure type=\"{}\" message=\"{}{}\"/>\n", judge::to_string(verdict.overall),
                        xml(why.empty() ? "" : why + ". "), xml(verdict.reason));
  }
  return text + "    </testcase>\n  </testsuite>\n";
}

}  // namespace

std::string junit(const dossier::OpenedRun& run) {
  const auto times = step_times(run.content.run.journal);
  std::vector<std::string> order;
  std::map<std::string, Suite> suites;
  std::map<std::string, int> cells;
  for (const auto& result : run.content.verdict.results) ++cells[result.step];
  for (const auto& result : run.content.verdict.results) {
    if (!suites.contains(result.requirement)) order.push_back(result.requirement);
    const auto time = times.find(result.step);
    suites[result.requirement].add(result, action_of(run, result),
                                   time == times.end() ? 0 : time->second.share_s / cells[result.step]);
  }
  const bool accepted = run.content.verdict.overall == judge::Overall::accepted && never_accepts(run).empty();
  Suite sum{.tests = 1, .failures = accepted ? 0U : 1U};
  std::string body;
  for (const auto& name : order) {
    const auto& one = suites.at(name);
    sum.tests += one.tests;
    sum.failures += one.failures;
    sum.errors += one.errors;
    sum.skipped += one.skipped;
    sum.seconds += one.seconds;
    body += fmt::format("  <testsuite name=\"{}\" {} timestamp=\"{}\" hostname=\"{}\">\n{}  </testsuite>\n", xml(name),
                        one.attributes(), second_of(run.content.run.journal.begin), xml(run.content.run.plan.site.name),
                        one.cases);
  }
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"assay {}\" {}>\n{}{}</testsuites>\n",
      xml(run.content.run.plan.profile.name), sum.attributes(), body, verdict_suite(run, accepted));
}

}  // namespace assay::exports
