// simulate: a plan carried out in virtual time.
#include "orchestrator/simulate/simulate.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>

#include <fmt/format.h>

#include "orchestrator/files/digest.h"
#include "orchestrator/files/in_parallel.h"
#include "orchestrator/judge/cells/judge.h"
#include "orchestrator/judge/cells/second_stage.h"
#include "orchestrator/judge/locate/searches.h"
#include "orchestrator/judge/metering/site_evidence.h"
#include "orchestrator/plan/metered.h"
#include "orchestrator/plan/passes.h"
#include "orchestrator/simulate/fleet_model.h"
#include "orchestrator/simulate/hall.h"
#include "probes/core/utc_time.h"

namespace assay::simulate {
namespace {

/// Virtual time begins before any run that there can have been.
constexpr std::chrono::system_clock::time_point kBegin{std::chrono::seconds(946'684'800)};  // 2000-01-01

std::string moment(double after_s) {
  return utc_text(
      kBegin + std::chrono::duration_cast<std::chrono::system_clock::duration>(std::chrono::duration<double>(after_s)));
}

/// Extra tests by id, as steps: those of the step that missed its limit, on fewer nodes.
using TestSteps = std::map<std::string, plan::Step, std::less<>>;

/// The step of an extra test; nothing if no step of the plan has such tests.
std::optional<plan::Step> test_step(const plan::Plan& plan, const std::string& id,
                                    const std::vector<std::string>& nodes) {
  const plan::Step* const searched = plan.step(std::string_view(id).substr(0, id.rfind(".t")));
  if (searched == nullptr) return std::nullopt;
  const auto takes_part = [&](const std::string& node) {
    return std::ranges::find(searched->nodes, node) != searched->nodes.end();
  };
  if (!std::ranges::all_of(nodes, takes_part)) return std::nullopt;
  plan::Step step = *searched;
  step.id = id;
  step.nodes = nodes;
  return step;
}

/// Virtual times on which records depend.
struct VirtualTimes {
  std::map<std::pair<std::string, int>, double> attempts;       ///< begins, by step and number; s since 1970
  std::map<int, std::pair<const plan::Step*, double>> watches;  ///< the load of each watch and its begin
};

/// The time that a line of the journal has, in s since 1970: a record is made up from this one.
double seconds_of(const std::string& utc) {
  const auto time = utc_time(utc);
  return time ? std::chrono::duration<double>(time->time_since_epoch()).count() : 0;
}

/// Whether meters of the site are judged by `step`, so that it has a watch of its own.
bool is_metered(const plan::Plan& plan, const plan::Step& step) {
  return plan.probes.contains(plan::site_companion(plan.profile)) && !plan.site.meters.empty() &&
         std::ranges::any_of(step.requirements,
                             [&](const std::string& id) { return !plan.requirement(id)->during.empty(); });
}

/// Makes the record of a path up again. A std::function is copied, the model and the tests are not.
class RecordMaker {
 public:
  RecordMaker(const plan::Plan& plan, std::shared_ptr<const FleetModel> model, std::shared_ptr<const TestSteps> tests,
              std::shared_ptr<const VirtualTimes> times)
      : plan_(&plan), model_(std::move(model)), tests_(std::move(tests)), times_(std::move(times)) {}

  std::expected<std::string, InputError> operator()(const judge::EvidenceFile& file) const {
    const auto bytes = made(file.path);
    if (!bytes)
      return std::unexpected(InputError{file.path, "is not a record that a simulation makes", "simulate again"});
    if (bytes->size() != file.bytes || files::sha256(*bytes) != file.sha256) {
      return std::unexpected(InputError{file.path, "is not the record that was journalled",
                                        "plan.json or journal.jsonl was changed after the simulation"});
    }
    return *bytes;
  }

 private:
  [[nodiscard]] std::optional<std::string> made(const std::string& path) const {
    const std::string prefix = "records/";
    const auto end_of_step = path.find('/', prefix.size());
    if (!path.starts_with(prefix) || end_of_step == std::string::npos) return std::nullopt;
    const auto id = std::string_view(path).substr(prefix.size(), end_of_step - prefix.size());
    int number = 0;
    const char* const end = path.data() + path.size();
    const auto first = std::from_chars(path.data() + end_of_step + 1, end, number);
    if (first.ec != std::errc{} || first.ptr == end) return std::nullopt;
    if (const auto watch = times_->watches.find(number);
        watch != times_->watches.end() &&
        judge::watch_record_path(number, plan::site_companion(plan_->profile)) == path)
      return Hall(*plan_, *watch->second.first, watch->second.second).record();
    const auto test = tests_->find(id);
    const plan::Step* const step = test == tests_->end() ? plan_->step(id) : &test->second;
    std::size_t rank = 0;
    const auto second = std::from_chars(first.ptr + 1, end, rank);
    if (step == nullptr || second.ec != std::errc{} || rank >= step->nodes.size() ||
        judge::record_path(step->id, number, static_cast<int>(rank)) != path)
      return std::nullopt;
    const auto begin = times_->attempts.find({step->id, number});
    return model_->record(*step, number, rank,
                          begin == times_->attempts.end() ? std::nullopt : std::optional(begin->second));
  }

  const plan::Plan* plan_;
  std::shared_ptr<const FleetModel> model_;
  std::shared_ptr<const TestSteps> tests_;
  std::shared_ptr<const VirtualTimes> times_;
};

/// Carries the steps out one after another, in the order of the passes: each node takes its turns in that order, so the
/// moment when all nodes of a step are free is known when its turn comes.
class VirtualRun {
 public:
  VirtualRun(const plan::Plan& plan, const std::string& plan_sha256, files::TextSink sink)
      : plan_(plan),
        passes_(plan),
        model_(std::make_shared<FleetModel>(plan)),
        tests_(std::make_shared<TestSteps>()),
        times_(std::make_shared<VirtualTimes>()),
        evidence_(RecordMaker(plan, model_, tests_, times_), run_.records),
        lines_(true),
        sink_(std::move(sink)) {
    run_.journal.run_id = fmt::format("simulated-{}", plan.simulation->seed);
    run_.journal.plan_sha256 = plan_sha256;
    run_.journal.simulated = true;
    run_.journal.begin = moment(0);
    write(moment(0), judge::JournalEntry::run_begin(run_.journal.run_id, plan_sha256, "", true));
  }

  SimulatedRun go() {
    for (const auto& node : plan_.site.nodes) meet(node.name);
    perform(plan::Stage::first);
    measure_again();
    localise();
    run_.journal.end = moment(run_.duration_s + run_.localisation_s);
    run_.journal.finished = true;
    write(run_.journal.end, judge::JournalEntry::run_end());
    return std::move(run_);
  }

 private:
  void write(const std::string& time, const judge::JournalEntry& entry) {
    std::string line = lines_.line(time, entry);
    if (sink_)
      sink_(line);
    else
      run_.journal_text += line;
  }

  void meet(const std::string& node) {
    free_at_[node] = 0;
    if (model_->is_dead(node)) {
      const std::string reason = "simulated: the node does not answer";
      run_.journal.node_events.push_back({.node = node, .time = moment(0), .reason = reason});
      write(moment(0), judge::JournalEntry::node_down(node, reason));
      return;
    }
    const nlohmann::json facts = {{"name", node}, {plan::kSimulated, true}};
    run_.journal.node_facts[node] = facts;
    write(moment(0), judge::JournalEntry::node_up(node, facts));
  }

  void perform(plan::Stage stage) {
    for (int pass = 1; pass <= passes_.count(stage); ++pass) {
      auto steps = passes_.steps(stage, pass);
      std::erase_if(steps, [&](const plan::Step* step) {
        return (stage == plan::Stage::second && !run_.journal.more_attempts.contains(step->id)) ||
               std::ranges::any_of(step->nodes, [&](const std::string& node) { return model_->is_dead(node); });
      });
      // Only the records of metered steps depend on the time at which their turn comes.
      std::vector<std::vector<judge::EvidenceFile>> records(steps.size());
      files::in_parallel(steps.size(), evidence_.threads(), [&](unsigned, std::size_t i) {
        if (!is_metered(plan_, *steps[i])) records[i] = left_by(*steps[i], attempts_of(*steps[i]) + 1);
      });
      for (std::size_t i = 0; i < steps.size(); ++i) perform(*steps[i], std::move(records[i]));
    }
  }

  /// The second stage, as in a run.
  void measure_again() {
    if (passes_.count(plan::Stage::second) == 0) return;
    auto chosen = judge::second_stage(plan_, judge::judge_cells(plan_, run_.journal, evidence_));
    if (chosen.empty()) return;
    write(moment(run_.duration_s), judge::JournalEntry::second_stage_begin(chosen));
    run_.journal.second_stage = true;
    run_.journal.more_attempts = std::move(chosen);
    for (auto& [node, free_at] : free_at_) free_at = run_.duration_s;
    perform(plan::Stage::second);
  }

  void perform(const plan::Step& step, std::vector<judge::EvidenceFile> records) {
    double time = 0;
    for (const auto& node : step.nodes) time = std::max(time, free_at_.at(node));
    if (step.alone) {
      for (const auto& [node, free_at] : free_at_) time = std::max(time, free_at);
    }
    const double length_s = duration_of(step);
    const bool metered = is_metered(plan_, step);
    if (metered) time += 1;  // so that its watch does not touch the one before
    if (metered) begin_watch(step, time);
    const int number = ++attempts_[step.id];
    if (metered) {
      times_->attempts.emplace(std::pair(step.id, number), seconds_of(moment(time)));
      records = left_by(step, number);
    }
    judge::Attempt attempt = ended(step, number, time, time + length_s);
    attempt.evidence = std::move(records);
    attempt.second_stage = run_.journal.second_stage;
    write(attempt.begin, judge::JournalEntry::attempt_begin(step.id, number, attempt.node));
    if (metered) end_watch(time + length_s);
    write(attempt.end, judge::JournalEntry::attempt_end(attempt));
    run_.journal.attempts.push_back(attempt);
    time += length_s;
    if (step.alone) {
      for (auto& [node, free_at] : free_at_) free_at = time;
    }
    for (const auto& node : step.nodes) free_at_.at(node) = time;
    run_.duration_s = std::max(run_.duration_s, time);
  }

  /// The meters are read from the begin of a load to its end, by a watch of its own.
  void begin_watch(const plan::Step& step, double time) {
    judge::Watch watch{.number = static_cast<int>(run_.journal.watches.size()) + 1,
                       .probe = plan::site_companion(plan_.profile),
                       .outcome = AttemptOutcome::exited,
                       .begin = moment(time)};
    write(watch.begin, judge::JournalEntry::watch_begin(watch.number, watch.probe));
    times_->watches.emplace(watch.number, std::pair(&step, seconds_of(watch.begin)));
    run_.journal.watches.push_back(std::move(watch));
  }

  void end_watch(double time) {
    judge::Watch& watch = run_.journal.watches.back();
    const auto& [load, begin_s] = times_->watches.at(watch.number);
    const std::string bytes = Hall(plan_, *load, begin_s).record();
    watch.end = moment(time);
    watch.evidence.push_back({.path = judge::watch_record_path(watch.number, watch.probe),
                              .sha256 = files::sha256(bytes),
                              .bytes = bytes.size()});
    write(watch.end, judge::JournalEntry::watch_end(watch));
  }

  /// How many attempts `step` has had.
  [[nodiscard]] int attempts_of(const plan::Step& step) const {
    const auto found = attempts_.find(step.id);
    return found == attempts_.end() ? 0 : found->second;
  }

  static judge::Attempt ended(const plan::Step& step, int number, double begin, double end) {
    return {.step = step.id,
            .number = number,
            .node = step.nodes.front(),
            .outcome = AttemptOutcome::exited,
            .begin = moment(begin),
            .end = moment(end)};
  }

  /// The evidence of an attempt of a step or of a test. Its records are read here, while they are at hand.
  [[nodiscard]] std::vector<judge::EvidenceFile> left_by(const plan::Step& step, int number) const {
    std::vector<judge::EvidenceFile> all;
    const auto held = times_->attempts.find({step.id, number});
    for (std::size_t rank = 0; rank < step.nodes.size(); ++rank) {
      std::string bytes = model_->record(step, number, rank,
                                         held == times_->attempts.end() ? std::nullopt : std::optional(held->second));
      all.push_back({.path = judge::record_path(step.id, number, static_cast<int>(rank)),
                     .sha256 = files::sha256(bytes),
                     .bytes = bytes.size()});
      (void)run_.records.get(all.back(), plan_.probes.at(step.probe).description, "",
                             [&](const auto&) { return bytes; });  // kept, and judged later
    }
    return all;
  }

  /// The searches after the steps. Tests that are open together run side by side, as long as the longest of them.
  void localise() {
    if (plan_.searches.empty()) return;
    judge::Searches searches(plan_, judge::judge_cells(plan_, run_.journal, evidence_), run_.journal, evidence_);
    auto tests = searches.open();
    if (tests.empty()) return;
    double time = run_.duration_s;
    run_.journal.localising = true;
    write(moment(time), judge::JournalEntry::localise_begin());
    for (; !tests.empty(); tests = searches.open()) {
      double longest_s = 0;
      for (const auto& test : tests) {
        perform_test(searches, test, time);
        longest_s = std::max(longest_s, test.step.typical_s);
      }
      time += longest_s;
      ++run_.rounds;
    }
    run_.localisation_s = time - run_.duration_s;
  }

  void perform_test(judge::Searches& searches, const judge::ExtraTest& test, double begin) {
    const std::string& id = test.step.id;
    const plan::Step& step = tests_->emplace(id, test_step(plan_, id, test.step.nodes).value()).first->second;
    judge::Attempt attempt = ended(step, 1, begin, begin + step.typical_s);
    attempt.evidence = left_by(step, 1);
    attempt.nodes = step.nodes;
    attempt.purpose = test.test.purpose;
    write(attempt.begin, judge::JournalEntry::test_begin(attempt));
    write(attempt.end, judge::JournalEntry::attempt_end(attempt));
    searches.take(id, searches.shown(test, part_of(step, attempt), evidence_).value());
    run_.journal.attempts.push_back(attempt);
  }

  /// The judge's inputs of a step: its attempts, and the facts of its nodes.
  [[nodiscard]] judge::Journal part_of(const plan::Step& step, const judge::Attempt& attempt) const {
    judge::Journal part;
    part.simulated = true;
    part.attempts.push_back(attempt);
    for (const auto& node : step.nodes) part.node_facts[node] = run_.journal.node_facts.at(node);
    return part;
  }

  const plan::Plan& plan_;
  plan::Passes passes_;
  std::shared_ptr<const FleetModel> model_;
  std::shared_ptr<TestSteps> tests_;
  std::shared_ptr<VirtualTimes> times_;
  SimulatedRun run_;
  judge::EvidenceReader evidence_;
  judge::JournalLines lines_;
  files::TextSink sink_;
  std::unordered_map<std::string, double> free_at_;
  std::unordered_map<std::string_view, int> attempts_;  ///< of each step, so far
};

}  // namespace

judge::EvidenceReader simulated_evidence(const plan::Plan& plan, const judge::Journal& journal,
                                         judge::KeptRecords records) {
  auto model = std::make_shared<const FleetModel>(plan);
  auto tests = std::make_shared<TestSteps>();
  for (const auto& attempt : journal.attempts) {
    if (!attempt.is_extra()) continue;
    if (auto step = test_step(plan, attempt.step, attempt.nodes))
      tests->insert_or_assign(attempt.step, std::move(*step));
  }
  auto times = std::make_shared<VirtualTimes>();
  for (const auto& attempt : journal.attempts) {
    const plan::Step* const step = plan.step(attempt.step);
    if (attempt.is_extra() || step == nullptr || !is_metered(plan, *step)) continue;
    const double begin_s = seconds_of(attempt.begin);
    times->attempts.emplace(std::pair(attempt.step, attempt.number), begin_s);
    for (const auto& watch : journal.watches)
      if (watch.begin == attempt.begin) times->watches.emplace(watch.number, std::pair(step, begin_s));
  }
  return {RecordMaker(plan, std::move(model), std::move(tests), std::move(times)), std::move(records)};
}

SimulatedRun simulate(const plan::Plan& plan, const std::string& plan_sha256, files::TextSink journal) {
  return VirtualRun(plan, plan_sha256, std::move(journal)).go();
}

}  // namespace assay::simulate
