// evidence: reading a run directory, trusting nothing that the journal does not vouch for.
#include "orchestrator/evidence.h"

#include <algorithm>

#include <fmt/format.h>

#include "orchestrator/digest.h"
#include "probes/core/record_reader.h"

namespace assay {
namespace {

/// A run killed more often than that in one step is no accident of the head node, but retesting until something passes.
constexpr int kMostInterruptions = 3;

std::string last_event(const Journal& journal, const std::vector<std::string>& nodes) {
  for (auto event = journal.node_events.rbegin(); event != journal.node_events.rend(); ++event) {
    if (std::ranges::find(nodes, event->node) != nodes.end()) return fmt::format("Node {}: {}", event->node, event->reason);
  }
  return "The run ended before this step began.";
}

/// The node of the site that is the same machine as `node`, by what their agents said: host name and boot. Nothing when
/// there is none. Containers share their machine's boot and have host names of their own; they are nodes like others.
std::optional<std::string> twin_of(const std::string& node, const nlohmann::json& facts, const Journal& journal) {
  for (const auto& [other, said] : journal.node_facts) {
    if (other == node) continue;
    if (said.value("name", "") == facts.value("name", "") && said.value("boot_id", "") == facts.value("boot_id", "")) return other;
  }
  return std::nullopt;
}

/// Whether a record is what was asked for on that node; the words of the mismatch otherwise.
std::optional<std::string> mismatch(const Record& record, const Step& step, const Journal& journal, std::size_t rank) {
  const std::string& node = step.nodes[rank];
  if (record.start.parameters != step.parameters) return "the record's parameters are not those of the step";
  if (record.start.rank != static_cast<int>(rank) || record.start.world != static_cast<int>(step.nodes.size())) {
    return "the record has another rank or world than the step";
  }
  const auto facts = journal.node_facts.find(node);
  if (facts == journal.node_facts.end()) return "the node's agent never said what the node is";
  const std::string said = facts->second.value("name", "");
  const auto& host = std::get<std::string>(record.start.host.at("name"));
  if (said != host) return fmt::format("the record is of host '{}', the node's agent said '{}'", host, said);
  if (const auto twin = twin_of(node, facts->second, journal)) {
    return fmt::format("the nodes {} and {} are one machine: host name {}, boot {}", node, *twin, said, facts->second.value("boot_id", "unknown"));
  }
  return std::nullopt;
}

/// What is wrong with one rank's record. When a rank goes wrong the others often end in errors that follow from it, so a
/// refused record (weight 0) tells more than a skip (1), and that more than an error (2).
struct Fault {
  int weight = 0;
  Outcome outcome = Outcome::error;
  std::string reason;
};

std::optional<Fault> fault_of(const std::expected<Record, InputError>& record, const Step& step, const Journal& journal, std::size_t rank) {
  const std::string who = step.nodes.size() == 1 ? "" : fmt::format("rank {} on {}: ", rank, step.nodes[rank]);
  if (!record) return Fault{.weight = 0, .outcome = Outcome::error, .reason = who + "the record is refused: " + record.error().text()};
  if (const auto problem = mismatch(*record, step, journal, rank)) return Fault{.weight = 0, .outcome = Outcome::error, .reason = who + *problem};
  if (record->end.status == Status::skip) return Fault{.weight = 1, .outcome = Outcome::not_measured, .reason = who + "the probe skipped: " + record->end.reason};
  if (record->end.status == Status::error) return Fault{.weight = 2, .outcome = Outcome::error, .reason = who + "the probe failed: " + record->end.reason};
  return std::nullopt;
}

void take(StepEvidence& found, const Plan& plan, const Step& step, const Attempt& attempt, const Journal& journal,
          const EvidenceReader& evidence) {
  const auto failed = [&](Outcome outcome, const std::string& reason) {
    found.absence = outcome;
    found.reason = fmt::format("Attempt {} on {}: {}", attempt.number, attempt.node, reason);
    found.skipped = found.skipped || outcome == Outcome::not_measured;
    found.broken = found.broken || outcome == Outcome::error || (found.skipped && !found.records.empty());
  };
  if (attempt.node != step.nodes.front()) return failed(Outcome::error, "the journal says another node than the plan");
  if (attempt.outcome == "interrupted") {
    if (++found.interrupted > kMostInterruptions) return failed(Outcome::error, fmt::format("interrupted {} times", found.interrupted));
    if (!found.records.empty() || found.broken) return;
    found.absence = Outcome::not_measured;
    found.reason = fmt::format("Attempt {} on {}: interrupted: {}", attempt.number, attempt.node, attempt.reason);
    return;
  }
  if (++found.attempts > step.looks) return failed(Outcome::error, fmt::format("{} attempts where {} were planned", found.attempts, step.looks));
  if (attempt.outcome != "exited") return failed(Outcome::error, fmt::format("{}: {}", attempt.outcome, attempt.reason));
  std::vector<Record> ranks;
  std::optional<Fault> worst;
  for (std::size_t rank = 0; rank < step.nodes.size(); ++rank) {
    auto record = record_of(plan, attempt, evidence, static_cast<int>(rank));
    auto fault = fault_of(record, step, journal, rank);
    if (fault && (!worst || fault->weight < worst->weight)) worst = std::move(fault);
    if (record) ranks.push_back(std::move(*record));
  }
  if (worst) return failed(worst->outcome, worst->reason);
  found.records.push_back(std::move(ranks.front()));
  ranks.erase(ranks.begin());
  found.others.push_back(std::move(ranks));
  found.broken = found.broken || found.skipped;
}

}  // namespace

std::expected<Run, InputError> read_run(const std::string& directory) {
  const auto plan_bytes = read_file(directory + "/plan.json");
  if (!plan_bytes) return std::unexpected(plan_bytes.error());
  auto plan = read_plan(*plan_bytes, directory + "/plan.json");
  if (!plan) return std::unexpected(plan.error());
  const auto journal_bytes = read_file(directory + "/journal.jsonl");
  if (!journal_bytes) return std::unexpected(journal_bytes.error());
  auto journal = read_journal(*journal_bytes, directory + "/journal.jsonl");
  if (!journal) return std::unexpected(journal.error());
  Run run{.plan = std::move(*plan), .plan_sha256 = sha256(*plan_bytes), .journal = std::move(*journal)};
  if (run.journal.plan_sha256 != run.plan_sha256) {
    return std::unexpected(InputError{directory, "journal.jsonl belongs to another plan than plan.json",
                                      "the plan was frozen when the run began; restore it"});
  }
  for (const auto& attempt : run.journal.attempts) {
    if (run.plan.step(attempt.step) != nullptr) continue;
    return std::unexpected(InputError{directory + "/journal.jsonl", fmt::format("has an attempt of '{}', which is no step of the plan", attempt.step), ""});
  }
  return run;
}

EvidenceReader evidence_in(const std::string& directory) {
  return [directory](const EvidenceFile& file) -> std::expected<std::string, InputError> {
    auto bytes = read_file(directory + "/" + file.path);
    if (!bytes) return bytes;
    if (bytes->size() != file.bytes || sha256(*bytes) != file.sha256) {
      return std::unexpected(InputError{file.path, "is not the file that was journalled", "the evidence was changed after the run"});
    }
    return bytes;
  };
}

std::string record_path(const std::string& step, int attempt, int rank, const std::string& companion) {
  return fmt::format("records/{}/{}/{}{}.jsonl", step, attempt, companion.empty() ? "" : companion + ".", rank);
}

std::string log_path(const std::string& step, int attempt, int rank, const std::string& companion) {
  return fmt::format("logs/{}/{}/{}{}.log", step, attempt, companion.empty() ? "" : companion + ".", rank);
}

std::expected<Record, InputError> record_of(const Plan& plan, const Attempt& attempt, const EvidenceReader& evidence,
                                            int rank, const std::string& companion) {
  const std::string path = record_path(attempt.step, attempt.number, rank, companion);
  const auto file = std::ranges::find(attempt.evidence, path, &EvidenceFile::path);
  if (file == attempt.evidence.end()) return std::unexpected(InputError{path, "was never journalled", ""});
  const Step* step = plan.step(attempt.step);
  if (step == nullptr) return std::unexpected(InputError{path, "belongs to no step of the plan", ""});
  const auto bytes = evidence(*file);
  if (!bytes) return std::unexpected(bytes.error());
  const auto& probe = plan.probes.at(companion.empty() ? step->probe : companion);
  auto record = read_record(*bytes, probe.description);
  if (!record) record.error().where = path + ": " + record.error().where;
  return record;
}

bool is_judged(const Measurement& measured, const Requirement& requirement) {
  if (measured.metric != requirement.metric || measured.at != requirement.at) return false;
  const auto together = [](const std::string& kind) { return kind == "pair" || kind == "group" || kind == "cluster"; };
  return measured.subject.kind == requirement.scope || (together(measured.subject.kind) && together(requirement.scope));
}

StepEvidence collect(const Plan& plan, const Step& step, const std::vector<const Attempt*>& attempts,
                     const Journal& journal, const EvidenceReader& evidence) {
  StepEvidence found;
  found.reason = last_event(journal, step.nodes);
  int number = 0;
  for (const Attempt* attempt : attempts) {
    if (attempt->number != ++number) {
      found.broken = true;
      found.absence = Outcome::error;
      found.reason = fmt::format("The journal has attempt {} of {} where {} was due.", attempt->number, step.id, number);
      return found;
    }
    for (const auto& file : attempt->evidence) found.paths.push_back(file.path);
    take(found, plan, step, *attempt, journal, evidence);
  }
  return found;
}

}  // namespace assay
