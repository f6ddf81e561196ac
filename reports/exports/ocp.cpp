// ocp: the output of OCP diagnostics 2.0 (opencomputeproject/ocp-diag-core, json_spec/output).
#include <nlohmann/json.hpp>

#include <fmt/format.h>

#include "probes/core/json_io.h"
#include "reports/exports/cells.h"
#include "reports/exports/exports.h"

namespace assay::exports {
namespace {

using nlohmann::ordered_json;

constexpr const char* kTogether = "@together";  // no name of a node begins so

/// One stream: artifacts are numbered, and each has a time of the run.
class Stream {
 public:
  explicit Stream(std::string time) : time_(std::move(time)) { put({{"schemaVersion", {{"major", 2}, {"minor", 0}}}}); }
  void at(const std::string& time) {
    if (time > time_) time_ = time;  // times of a stream do not go back
  }
  void run(ordered_json artifact) { put({{"testRunArtifact", std::move(artifact)}}); }
  void step(const std::string& id, ordered_json artifact) {
    artifact["testStepId"] = id;
    put({{"testStepArtifact", std::move(artifact)}});
  }
  [[nodiscard]] std::string text() && { return std::move(text_); }

 private:
  void put(ordered_json line) {
    line["sequenceNumber"] = sequence_++;
    line["timestamp"] = time_;
    text_ += line.dump(-1, ' ', true, ordered_json::error_handler_t::replace) + "\n";
  }
  std::string time_, text_;
  std::size_t sequence_ = 0;
};

ordered_json validators_of(const judge::Result& result) {
  ordered_json validators = ordered_json::array();
  const auto add = [&](const char* type, const std::optional<double>& accepted, const std::optional<double>& limit) {
    if (!accepted || !limit) return;
    validators.push_back({{"name", "acceptance limit"},
                          {"type", type},
                          {"value", *accepted},
                          {"metadata", {{"assay", {{"limit", *limit}}}}}});
  };
  add("GREATER_THAN_OR_EQUAL", result.acceptance_low, result.limit_low);
  add("LESS_THAN_OR_EQUAL", result.acceptance_high, result.limit_high);
  return validators;
}

ordered_json subcomponent_of(const judge::Result& result) {
  return {{"name", result.subject.kind + " " + result.subject.id}, {"location", result.node}};
}

ordered_json measurement_of(const judge::Result& result, const plan::Requirement& requirement) {
  ordered_json own = {{"requirement", result.requirement},
                      {"statistic", word_of(requirement.statistic)},
                      {"each_attempt", result.each},
                      {"samples", result.samples},
                      {"attempts", result.attempts}};
  if (result.uncertainty) own["standard_uncertainty"] = *result.uncertainty;
  ordered_json measurement = {{"name", requirement.contrast ? requirement.figure() : requirement.judged()}};
  if (result.is_of_demand()) {
    measurement["value"] = judge::seen_text(result);
    own["demanded"] = judge::demanded_text(result);
  } else {
    measurement["value"] = *result.value;
    measurement["unit"] = result.unit;
  }
  if (auto validators = validators_of(result); !validators.empty()) measurement["validators"] = std::move(validators);
  measurement["subcomponent"] = subcomponent_of(result);
  measurement["metadata"] = {{"assay", std::move(own)}};
  return measurement;
}

ordered_json diagnosis_of(const judge::Result& result, const std::string& action) {
  using enum judge::Outcome;
  const char* type = result.outcome == pass ? "PASS" : result.outcome == fail ? "FAIL" : "UNKNOWN";
  return {
      {"verdict", fmt::format("{}-{}", result.requirement, judge::to_string(result.outcome))},
      {"type", type},
      {"message", (result.required ? "" : "Advisory. ") + result.reason + (action.empty() ? "" : " Action: " + action)},
      {"subcomponent", subcomponent_of(result)}};
}

using Results = std::vector<const judge::Result*>;

void write_step(Stream& stream, const dossier::OpenedRun& run, const std::string& id, const Results& results) {
  const std::string name = id.empty() ? "not planned" : id;
  stream.step(name, {{"testStepStart", {{"name", name}}}});
  for (const auto& attempt : run.content.run.journal.attempts.of(id)) stream.at(attempt.end);
  bool measured = false, broken = false;
  std::map<std::string, bool> listed;
  for (const auto* result : results) {
    const bool has_value = result->value || (result->is_of_demand() && !result->conditions.empty());
    measured = measured || has_value;
    broken = broken || result->outcome == judge::Outcome::error;
    if (has_value)
      stream.step(name, {{"measurement", measurement_of(*result, run.content.requirement(result->requirement))}});
    if (result->outcome == judge::Outcome::error)
      stream.step(name, {{"error", {{"symptom", "probe-error"}, {"message", result->reason}}}});
    stream.step(name, {{"diagnosis", diagnosis_of(*result, action_of(run, *result))}});
    for (const auto& path : result->evidence) {
      if (listed.emplace(path, true).second)
        stream.step(name, {{"file", {{"displayName", path}, {"uri", path}, {"isSnapshot", true}}}});
    }
  }
  stream.step(name, {{"testStepEnd", {{"status", broken ? "ERROR" : measured ? "COMPLETE" : "SKIP"}}}});
}

ordered_json end_of(const char* status, const char* result) {
  return {{"testRunEnd", {{"status", status}, {"result", result}}}};
}

/// How a stream ends: of a node as its verdict says, of several as their cells do. Only COMPLETE goes with PASS or
/// FAIL.
ordered_json end_of(const dossier::OpenedRun& run, const std::string& node, const Results& results) {
  if (!never_accepts(run).empty()) return end_of("ERROR", "NOT_APPLICABLE");
  judge::Overall overall = judge::Overall::accepted;
  if (node == kTogether) {
    for (const auto* result : results) {
      if (!result->required || result->outcome == judge::Outcome::pass) continue;
      if (result->outcome == judge::Outcome::fail) overall = judge::Overall::rejected;
      if (overall == judge::Overall::accepted) overall = judge::Overall::incomplete;
    }
  } else {
    overall = judge::Overall::incomplete;
    for (const auto& one : run.content.verdict.nodes) {
      if (one.node == node) overall = one.outcome;
    }
  }
  if (overall == judge::Overall::accepted) return end_of("COMPLETE", "PASS");
  return overall == judge::Overall::rejected ? end_of("COMPLETE", "FAIL") : end_of("ERROR", "NOT_APPLICABLE");
}

/// The agent's facts of its node.
ordered_json dut_of(const dossier::OpenedRun& run, const std::string& node) {
  ordered_json dut = {{"dutInfoId", node == kTogether ? run.content.run.plan.site.name : node}, {"name", node}};
  const auto facts = run.content.run.journal.node_facts.find(node);
  if (facts == run.content.run.journal.node_facts.end() || !facts->second.is_object()) return dut;
  const auto text = [&](const char* name) {
    const auto found = facts->second.find(name);
    return found != facts->second.end() && found->is_string() ? found->get<std::string>() : std::string();
  };
  if (!text("cpu_model").empty()) dut["platformInfos"] = {{{"info", text("cpu_model")}}};
  if (!text("kernel").empty())
    dut["softwareInfos"] = {{{"name", text("kernel")}, {"softwareInfoId", "kernel"}, {"softwareType", "SYSTEM"}}};
  dut["metadata"] = {{"assay", ordered_json(facts->second)}};
  return dut;
}

std::string stream_of(const dossier::OpenedRun& run, const std::string& node, const Results& results) {
  const auto& plan = run.content.run.plan;
  Stream stream(run.content.run.journal.begin);
  stream.run({{"testRunStart",
               {{"name", plan.profile.name},
                {"version", plan.assay_version},
                {"commandLine", "assay run"},
                {"parameters",
                 {{"run_id", run.content.run.journal.run_id},
                  {"plan_sha256", run.content.run.plan_sha256},
                  {"profile_revision", plan.profile.revision},
                  {"site", plan.site.name},
                  {"quick", plan.quick}}},
                {"dutInfo", dut_of(run, node)},
                {"metadata", {{"assay", {{"simulated", plan.simulation.has_value()}, {"standing", run.standing}}}}}}}});
  if (const auto why = never_accepts(run); !why.empty())
    stream.run({{"log", {{"severity", "WARNING"}, {"message", why}}}});
  std::vector<std::string> order;
  std::map<std::string, Results> by_step;
  for (const auto* result : results) {
    if (!by_step.contains(result->step)) order.push_back(result->step);
    by_step[result->step].push_back(result);
  }
  for (const auto& step : order) write_step(stream, run, step, by_step.at(step));
  stream.at(run.content.run.journal.last);
  stream.run(end_of(run, node, results));
  return std::move(stream).text();
}

}  // namespace

std::map<std::string, std::string> ocp(const dossier::OpenedRun& run) {
  std::map<std::string, Results> of_node;
  for (const auto& node : run.content.run.plan.site.nodes) of_node[node.name];
  for (const auto& result : run.content.verdict.results) {
    const auto own = of_node.find(result.node);
    const bool together = plan::is_together(result.subject.kind) && result.subject.id != result.node;
    const auto* step = run.content.run.plan.step(result.step);
    const bool several = step != nullptr ? step->nodes.size() > 1 : together;
    (several || own == of_node.end() ? of_node[kTogether] : own->second).push_back(&result);
  }
  std::map<std::string, std::string> files;
  for (const auto& [node, results] : of_node) files[node + ".jsonl"] = stream_of(run, node, results);
  return files;
}

}  // namespace assay::exports
