// mapping: requirements that answer, then the state of each row.
#include "reports/requirements/mapping.h"

#include <algorithm>

#include <fmt/format.h>

#include "orchestrator/judge/overall/ranking.h"
#include "probes/core/text.h"

namespace assay::requirements {
namespace {

constexpr std::size_t kMostNotes = 5;

bool same(const Value& one, const Value& other) {
  const auto a = number_in(one), b = number_in(other);
  return a && b ? *a == *b : one == other;
}

/// Whether `requirement` has its probe run with this value, given or by default; true where the plan does not know the
/// probe, so that its cells, which nothing measures, leave the row open.
bool has_parameter(const plan::Plan& plan, const plan::Requirement& requirement, const std::string& name,
                   const Value& value) {
  const auto probe = plan.probes.find(requirement.probe);
  if (probe == plan.probes.end()) return true;
  const auto all = probe->second.description.resolve(requirement.parameters, plan.quick);
  if (!all) return true;
  const auto found = all->find(name);
  return found != all->end() && same(found->second, value);
}

bool answers(const plan::Plan& plan, const plan::Requirement& requirement, const Answer& answer) {
  if (!answer.requirement.empty()) return requirement.id == answer.requirement;
  if (requirement.probe != answer.probe || (answer.scope && requirement.scope != *answer.scope)) return false;
  if (!answer.metric.empty() && requirement.metric != answer.metric) return false;
  if (!answer.condition.empty()) {
    const auto is_it = [&](const plan::RequiredCondition& one) {
      return one.name == answer.condition && (!answer.equals || (one.equals && same(*one.equals, *answer.equals)));
    };
    if (!(requirement.demand && is_it(*requirement.demand)) && std::ranges::none_of(requirement.conditions, is_it))
      return false;
  }
  return std::ranges::all_of(answer.parameters,
                             [&](const auto& one) { return has_parameter(plan, requirement, one.first, one.second); });
}

/// Cells of each requirement, by id.
std::map<std::string, Answering, std::less<>> all_cells(const dossier::OpenedRun& run) {
  std::map<std::string, Answering, std::less<>> all;
  const auto& plan = run.content.run.plan;
  for (const auto& requirement : plan.profile.requirements) all[requirement.id].requirement = &requirement;
  for (const auto& result : run.content.verdict.results) {
    const auto found = all.find(result.requirement);
    if (found == all.end()) continue;  // the verdict was judged again by this plan
    Answering& one = found->second;
    one.cells.push_back(&result);
    ++one.counts[result.outcome];
    if (one.worst == nullptr || judge::is_worse(result, *one.worst)) one.worst = &result;
  }
  for (const auto& step : plan.steps) {
    for (const auto& id : step.requirements) {
      if (const auto found = all.find(id); found != all.end())
        found->second.most_nodes = std::max(found->second.most_nodes, step.nodes.size());
    }
  }
  return all;
}

class RowJudge {
 public:
  RowJudge(const plan::Plan& plan, const std::map<std::string, Answering, std::less<>>& cells)
      : plan_(plan), cells_(cells) {}

  Found found_of(const Row& row) {
    Found found{.row = &row, .state = State::outside};
    if (row.outside) {
      found.reason = row.why;
      return found;
    }
    failed_ = open_ = passed_ = "";
    std::vector<std::string> advisory;
    for (const auto& answer : row.answers) take(answer, found.requirements, advisory);
    for (auto& id : advisory) add(id, found.requirements);
    found.state = !failed_.empty() ? State::not_met : !open_.empty() ? State::not_tested : State::met;
    found.reason = !failed_.empty() ? failed_ : !open_.empty() ? open_ : passed_;
    return found;
  }

 private:
  static void add(const std::string& id, std::vector<std::string>& ids) {
    if (std::ranges::find(ids, id) == ids.end()) ids.push_back(id);
  }

  static void say(std::string& sentence, const std::string& words) {
    if (sentence.empty()) sentence = words;
  }

  void take(const Answer& answer, std::vector<std::string>& required, std::vector<std::string>& advisory) {
    std::size_t judged = 0;
    std::string warned;
    for (const auto& requirement : plan_.profile.requirements) {
      if (!answers(plan_, requirement, answer)) continue;
      const Answering& one = cells_.at(requirement.id);
      if (one.most_nodes > 0 && one.most_nodes < answer.least_nodes) continue;
      if (!requirement.required) {
        add(requirement.id, advisory);
        say(warned, fmt::format("{}: {}", requirement.id, outcome_words(one)));
        continue;
      }
      ++judged;
      add(requirement.id, required);
      take(one);
    }
    if (judged > 0) return;
    say(open_, warned.empty() ? fmt::format("no requirement of this plan judges {}", answer.words())
                              : fmt::format("only advisory requirements judge {}; {}", answer.words(), warned));
  }

  void take(const Answering& one) {
    const std::string words = fmt::format("{}: {}", one.requirement->id, outcome_words(one));
    if (one.counts.contains(judge::Outcome::fail))
      say(failed_, words);
    else if (one.cells.empty() || one.passed() < one.cells.size())
      say(open_, words);
    else
      passed_ += (passed_.empty() ? "" : "; ") + words;
  }

  const plan::Plan& plan_;
  const std::map<std::string, Answering, std::less<>>& cells_;
  std::string failed_, open_, passed_;
};

std::string no_test(const dossier::OpenedRun& run) {
  const auto& plan = run.content.run.plan;
  if (plan.simulation || run.content.run.journal.simulated || run.content.verdict.simulated)
    return "SIMULATION: nothing was measured, so nothing is met";
  if (plan.quick) return "REHEARSAL with quick parameters: nothing is met or missed by it";
  return plan.drawn.empty() ? "" : "a repeat of drawn cells: nothing is met or missed by it";
}

std::vector<std::string> notes_of(const dossier::OpenedRun& run) {
  std::vector<std::string> notes;
  std::size_t more = 0;
  for (const auto& one : judge::common_deviations(run.content.verdict)) {
    if (!one.step.empty()) continue;  // of a step: its cells have it in their reasons
    if (notes.size() < kMostNotes)
      notes.push_back(bounded(one.what));
    else
      ++more;
  }
  if (more > 0) notes.push_back(fmt::format("and {} more deviations: see the report", more));
  return notes;
}

}  // namespace

std::size_t Answering::passed() const {
  const auto found = counts.find(judge::Outcome::pass);
  return found == counts.end() ? 0 : found->second;
}

std::vector<const judge::EvidenceFile*> Mapping::records(const judge::Result& cell) const {
  std::vector<const judge::EvidenceFile*> all;
  for (const auto& path : cell.evidence) {
    const auto found = files.find(path);
    if (found != files.end() && path.starts_with("records/")) all.push_back(&found->second);
  }
  return all;
}

std::string bounded(std::string_view text) { return harmless(text, kLongestQuoted); }

std::string outcome_words(const Answering& answering) {
  if (answering.cells.empty()) return "no cell was planned for it";
  const std::size_t cells = answering.cells.size();
  if (answering.passed() == cells) return fmt::format("{} of {} cells pass", cells, cells);
  const judge::Result* first = answering.worst;
  std::string kind = judge::to_string(first->outcome);
  std::size_t number = answering.counts.at(first->outcome);
  if (const auto failed = answering.counts.find(judge::Outcome::fail); failed != answering.counts.end()) {
    first = *std::ranges::find(answering.cells, judge::Outcome::fail, &judge::Result::outcome);
    kind = "fail";
    number = failed->second;
  }
  std::ranges::replace(kind, '_', ' ');
  return fmt::format("{} of {} cells {}, first on {}: {}", number, cells, kind, bounded(judge::place_of(*first)),
                     bounded(first->reason));
}

std::string standing_words(const dossier::OpenedRun& run) {
  std::string words = run.standing;
  std::ranges::replace(words, '_', ' ');
  for (const auto& signer : run.signers) words += "; signed by " + signer;
  if (!run.content.self_signed.empty()) words += "; self-signed by the tester";
  return words;
}

std::string state_words(const Found& found) {
  std::string words(word_of(found.state));
  if (found.would_be && *found.would_be != found.state) words += fmt::format(" (would be {})", *found.would_be);
  std::ranges::replace(words, '_', ' ');
  return words;
}

Mapping map(const Catalogue& catalogue, const dossier::OpenedRun& run) {
  Mapping mapping{.catalogue = &catalogue, .run = &run, .no_test = no_test(run), .counts = {}, .notes = notes_of(run)};
  run.content.run.journal.each_file([&](const judge::EvidenceFile& file) { mapping.files.emplace(file.path, file); });
  for (const auto& word : words_of(State{})) mapping.counts[std::string(word.text)] = 0;
  auto cells = all_cells(run);
  RowJudge rows(run.content.run.plan, cells);
  for (const auto& row : catalogue.rows) {
    Found found = rows.found_of(row);
    if (!mapping.no_test.empty() && found.state != State::outside) {
      found.would_be = found.state;
      found.state = State::not_tested;
    }
    ++mapping.counts[std::string(word_of(found.state))];
    for (const auto& id : found.requirements) mapping.answering[id] = cells.at(id);
    mapping.rows.push_back(std::move(found));
  }
  return mapping;
}

}  // namespace assay::requirements
