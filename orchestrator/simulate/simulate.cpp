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
#include "orchestrator/judge/cells/judge.h"
#include "orchestrator/judge/cells/second_stage.h"
#include "orchestrator/judge/locate/searches.h"
#include "orchestrator/judge/metering/site_evidence.h"
#include "orchestrator/plan/metered.h"
#include "orchestrator/plan/passes.h"
#include "orchestrator/simulate/fleet_model.h"
#include "orchestrator/simulate/hall.h"
#include "orchestrator/simulate/plant_site.h"
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
std::optional<plan::Step> test_step(const FleetModel& model, const std::string& id,
                                    const std::vector<std::string>& nodes) {
  const plan::Step* const searched = model.step(std::string_view(id).substr(0, id.rfind(".t")));
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
    const plan::Step* const step = test == tests_->end() ? model_->step(id) : &test->second;
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
  VirtualRun(const plan::Plan& plan, const std::string& plan_sha256)
      : plan_(plan),
        passes_(plan),
        model_(std::make_shared<FleetModel>(plan)),
        tests_(std::make_shared<TestSteps>()),
        times_(std::make_shared<VirtualTimes>()),
        evidence_(RecordMaker(plan, model_, tests_, times_)),
        lines_(true) {
    run_.journal.run_id = fmt::format("simulated-{}", plan.simulation->seed);
    run_.journal.plan_sha256 = plan_sha256;
    run_.journal.simulated = true;
    run_.journal.begin = moment(0);
    run_.journal_text =
        lines_.line(moment(0), judge::JournalEntry::run_begin(run_.journal.run_id, plan_sha256, "", true));
  }

  SimulatedRun go() {
    for (const auto& node : plan_.site.nodes) meet(node.name);
    perform(plan::Stage::first);
    measure_again();
    localise();
    run_.journal.end = moment(run_.duration_s + run_.localisation_s);
    run_.journal.finished = true;
    run_.journal_text += lines_.line(run_.journal.end, judge::JournalEntry::run_end());
    return std::move(run_);
  }

 private:
  void meet(const std::string& node) {
    free_at_[node] = 0;
    if (model_->is_dead(node)) {
      const std::string reason = "simulated: the node does not answer";
      run_.journal.node_events.push_back({.node = node, .time = moment(0), .reason = reason});
      run_.journal_text += lines_.line(moment(0), judge::JournalEntry::node_down(node, reason));
      return;
    }
    const nlohmann::json facts = {{"name", node}, {plan::kSimulated, true}};
    run_.journal.node_facts[node] = facts;
    run_.journal_text += lines_.line(moment(0), judge::JournalEntry::node_up(node, facts));
  }

  void perform(plan::Stage stage) {
    for (int pass = 1; pass <= passes_.count(stage); ++pass) {
      for (const plan::Step* step : passes_.steps(stage, pass)) {
        if (stage == plan::Stage::second && !run_.journal.more_attempts.contains(step->id)) continue;
        if (std::ranges::none_of(step->nodes, [&](const std::string& node) { return model_->is_dead(node); }))
          perform(*step);
      }
    }
  }

  /// The second stage, as in a run.
  void measure_again() {
    if (passes_.count(plan::Stage::second) == 0) return;
    auto chosen = judge::second_stage(plan_, judge::judge_cells(plan_, run_.journal, evidence_));
    if (chosen.empty()) return;
    run_.journal_text += lines_.line(moment(run_.duration_s), judge::JournalEntry::second_stage_begin(chosen));
    run_.journal.second_stage = true;
    run_.journal.more_attempts = std::move(chosen);
    for (auto& [node, free_at] : free_at_) free_at = run_.duration_s;
    perform(plan::Stage::second);
  }

  void perform(const plan::Step& step) {
    double time = 0;
    for (const auto& node : step.nodes) time = std::max(time, free_at_.at(node));
    if (step.alone) {
      for (const auto& [node, free_at] : free_at_) time = std::max(time, free_at);
    }
    const double length_s = duration_of(step);
    const bool metered = is_metered(plan_, step);
    if (metered) time += 1;  // so that its watch does not touch the one before
    if (metered) begin_watch(step, time);
    run_.journal.attempts.push_back(attempt(step, ++attempts_[step.id], time, time + length_s, metered));
    time += length_s;
    for (auto& [node, free_at] : free_at_) {
      if (step.alone) free_at = time;
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
    run_.journal_text += lines_.line(watch.begin, judge::JournalEntry::watch_begin(watch.number, watch.probe));
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
    run_.journal_text += lines_.line(watch.end, judge::JournalEntry::watch_end(watch));
  }

  judge::Attempt attempt(const plan::Step& step, int number, double begin, double end, bool metered) {
    if (metered) times_->attempts.emplace(std::pair(step.id, number), seconds_of(moment(begin)));
    judge::Attempt attempt = ended(step, number, begin, end);
    attempt.second_stage = run_.journal.second_stage;
    run_.journal_text += lines_.line(attempt.begin, judge::JournalEntry::attempt_begin(step.id, number, attempt.node));
    if (metered) end_watch(end);
    run_.journal_text += lines_.line(attempt.end, judge::JournalEntry::attempt_end(attempt));
    return attempt;
  }

  /// An attempt of a step or of a test, with the evidence that it leaves.
  judge::Attempt ended(const plan::Step& step, int number, double begin, double end) {
    judge::Attempt attempt{.step = step.id,
                           .number = number,
                           .node = step.nodes.front(),
                           .outcome = AttemptOutcome::exited,
                           .begin = moment(begin),
                           .end = moment(end)};
    for (std::size_t rank = 0; rank < step.nodes.size(); ++rank) {
      const auto held = times_->attempts.find({step.id, number});
      const std::string bytes = model_->record(
          step, number, rank, held == times_->attempts.end() ? std::nullopt : std::optional(held->second));
      attempt.evidence.push_back({.path = judge::record_path(step.id, number, static_cast<int>(rank)),
                                  .sha256 = files::sha256(bytes),
                                  .bytes = bytes.size()});
    }
    return attempt;
  }

  /// The searches after the steps. Tests that are open together run side by side, as long as the longest of them.
  void localise() {
    if (plan_.searches.empty()) return;
    judge::Searches searches(plan_, judge::judge_cells(plan_, run_.journal, evidence_), run_.journal, evidence_);
    auto tests = searches.open();
    if (tests.empty()) return;
    double time = run_.duration_s;
    run_.journal.localising = true;
    run_.journal_text += lines_.line(moment(time), judge::JournalEntry::localise_begin());
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
    const plan::Step& step = tests_->emplace(id, test_step(*model_, id, test.step.nodes).value()).first->second;
    judge::Attempt attempt = ended(step, 1, begin, begin + step.typical_s);
    attempt.nodes = step.nodes;
    attempt.purpose = test.test.purpose;
    run_.journal_text += lines_.line(attempt.begin, judge::JournalEntry::test_begin(attempt));
    run_.journal_text += lines_.line(attempt.end, judge::JournalEntry::attempt_end(attempt));
    searches.take(id, searches.shown(test, part_of(step, {attempt}), evidence_).value());
    run_.journal.attempts.push_back(std::move(attempt));
  }

  /// The judge's inputs of a step: its attempts, and the facts of its nodes.
  [[nodiscard]] judge::Journal part_of(const plan::Step& step, std::vector<judge::Attempt> attempts) const {
    judge::Journal part;
    part.simulated = true;
    part.attempts = std::move(attempts);
    for (const auto& node : step.nodes) part.node_facts[node] = run_.journal.node_facts.at(node);
    return part;
  }

  const plan::Plan& plan_;
  plan::Passes passes_;
  std::shared_ptr<const FleetModel> model_;
  std::shared_ptr<TestSteps> tests_;
  std::shared_ptr<VirtualTimes> times_;
  judge::EvidenceReader evidence_;
  judge::JournalLines lines_;
  SimulatedRun run_;
  std::unordered_map<std::string, double> free_at_;
  std::unordered_map<std::string_view, int> attempts_;  ///< of each step, so far
};

/// Port `rail` of node `i` in a plane. Every rail has leaf switches of its own.
site::Port port_on(const FleetShape& shape, std::size_t i, std::size_t plane, std::size_t rail) {
  const std::size_t number = plane * shape.rails + rail;
  constexpr std::size_t kOctet = 256;
  return {
      .interface = fmt::format("eth{}", number),
      .device = fmt::format("rdma{}", number),
      .address =
          fmt::format("10.{}.{}.{}", (number * 2 + i / (kOctet * kOctet)) % kOctet, i / kOctet % kOctet, i % kOctet),
      .rail = std::to_string(rail),
      .leaf = shape.per_leaf == 0 ? "" : fmt::format("{}-l{:04}-rail{}", shape.planes[plane], i / shape.per_leaf, rail),
      .switch_port = shape.per_leaf == 0 ? "" : std::to_string(i % shape.per_leaf)};
}

}  // namespace

FleetShape shape_for(const plan::Profile& profile, FleetShape shape) {
  constexpr std::size_t kPerLeaf = 16;
  bool leaves = false, racks = judges_by_meters(profile);
  for (const auto& requirement : profile.requirements) {
    racks = racks || requirement.by == plan::Grouping::rack;
    leaves = leaves || !requirement.plane.empty() || requirement.pairs || requirement.by == plan::Grouping::leaf;
    if (requirement.plane.empty() || std::ranges::find(shape.planes, requirement.plane) != shape.planes.end()) continue;
    shape.planes.push_back(requirement.plane);
  }
  if (shape.rails == 0 && !shape.planes.empty()) shape.rails = 1;
  constexpr std::size_t kPerRack = 18;  // compute trays of a rack of 72 GPUs
  if (shape.per_rack == 0 && racks) shape.per_rack = std::clamp<std::size_t>(shape.nodes, 1, kPerRack);
  if (shape.per_leaf == 0 && leaves) shape.per_leaf = std::clamp<std::size_t>(shape.nodes / 2, 1, kPerLeaf);
  return shape;
}

site::Site simulated_site(const FleetShape& shape) {
  site::Site site{.name = plan::kSimulated, .known_hosts = "", .nodes = {}};
  for (std::size_t i = 0; i < shape.nodes; ++i) {
    const std::string name = fmt::format("n{:05}", i);
    site.nodes.push_back({.name = name,
                          .launcher = site::Launcher::ssh,
                          .address = name,
                          .directory = site::kDefaultDirectory,
                          .rack = shape.per_rack == 0 ? "" : fmt::format("r{:04}", i / shape.per_rack),
                          .leaf = shape.per_leaf == 0 ? "" : fmt::format("l{:04}", i / shape.per_leaf),
                          .rendezvous = name});
    for (std::size_t plane = 0; plane < shape.planes.size(); ++plane) {
      for (std::size_t rail = 0; rail < shape.rails; ++rail)
        site.nodes.back().planes[shape.planes[plane]].push_back(port_on(shape, i, plane, rail));
    }
  }
  return site;
}

void tell_parts(const plan::Profile& profile, site::Site& site) {
  constexpr int kParts = 8;
  for (const auto& [kind, count] : profile.per_node) {
    if (count != plan::kOfSite || kind == "pair") continue;
    for (auto& node : site.nodes) node.parts[kind] = kParts;
  }
  if (judges_by_meters(profile)) add_meters(profile, site);
}

judge::EvidenceReader simulated_evidence(const plan::Plan& plan, const judge::Journal& journal) {
  auto model = std::make_shared<const FleetModel>(plan);
  auto tests = std::make_shared<TestSteps>();
  for (const auto& attempt : journal.attempts) {
    if (!attempt.is_extra()) continue;
    if (auto step = test_step(*model, attempt.step, attempt.nodes))
      tests->insert_or_assign(attempt.step, std::move(*step));
  }
  auto times = std::make_shared<VirtualTimes>();
  for (const auto& attempt : journal.attempts) {
    const plan::Step* const step = model->step(attempt.step);
    if (attempt.is_extra() || step == nullptr || !is_metered(plan, *step)) continue;
    const double begin_s = seconds_of(attempt.begin);
    times->attempts.emplace(std::pair(attempt.step, attempt.number), begin_s);
    for (const auto& watch : journal.watches)
      if (watch.begin == attempt.begin) times->watches.emplace(watch.number, std::pair(step, begin_s));
  }
  return RecordMaker(plan, std::move(model), std::move(tests), std::move(times));
}

SimulatedRun simulate(const plan::Plan& plan, const std::string& plan_sha256) {
  return VirtualRun(plan, plan_sha256).go();
}

}  // namespace assay::simulate
