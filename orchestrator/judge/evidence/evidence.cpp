// evidence: reads the files of a run directory that the journal names, after comparing their SHA-256, and sorts the
// records by step and attempt.
#include "orchestrator/judge/evidence/evidence.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <set>

#include <fmt/format.h>

#include "orchestrator/files/digest.h"
#include "orchestrator/judge/evidence/gpu_answer.h"
#include "orchestrator/judge/evidence/journal_guard.h"
#include "orchestrator/judge/evidence/tpm_answer.h"
#include "probes/core/text.h"
#include "probes/core/utc_time.h"
#include "probes/core/whole_number.h"

namespace assay::judge {
namespace {

namespace fs = std::filesystem;

/// A run killed more often than that in one step is no accident of the head node, but retesting until something passes.
constexpr int kMostInterruptions = 3;
/// Of a reason in a verdict, in bytes: it is repeated in every cell of the step.
constexpr std::size_t kLongestWords = 1000;

/// A connection may break once. A node that goes away twice in one step goes away because of it.
constexpr int kMostLosses = 1;

/// Why a step has no attempt.
std::string reason_not_started(const Journal& journal, const plan::Step& step) {
  const auto& nodes = step.nodes;
  if (const auto left_out = journal.left_out.find(step.id); left_out != journal.left_out.end()) return left_out->second;
  for (auto event = journal.node_events.rbegin(); event != journal.node_events.rend(); ++event) {
    if (std::ranges::find(nodes, event->node) != nodes.end())
      return fmt::format("Node {}: {}", event->node, event->reason);
  }
  return "The run ended before this step began.";
}

/// Expectations of the evidence of one step.
struct StepContext {
  const plan::Plan& plan;
  const plan::Step& step;
  const Journal& journal;
  const Machines& machines;
  const EvidenceReader& evidence;
};

/// Whether a record is the requested one of that node; the words of the mismatch otherwise.
std::optional<std::string> mismatch(const Record& record, const StepContext& context, std::size_t rank) {
  const plan::Plan& plan = context.plan;
  const plan::Step& step = context.step;
  const auto made_up = record.start.host.find(plan::kSimulated);
  if ((made_up != record.start.host.end()) != plan.simulation.has_value()) {
    return plan.simulation ? "the record was measured, and the run is a simulation"
                           : "the record is made up by a simulation";
  }
  const std::string& node = step.nodes[rank];
  if (record.start.parameters != plan::parameters_of(plan.site, step, rank))
    return "the record's parameters are not those of the step";
  if (record.start.rank != static_cast<int>(rank) || record.start.world != static_cast<int>(step.nodes.size())) {
    return "the record has another rank or world than the step";
  }
  const auto facts = context.journal.node_facts.find(node);
  if (facts == context.journal.node_facts.end()) return "the agent reported no facts of the node";
  const std::string said = facts->second.value("name", "");
  const auto& host = std::get<std::string>(record.start.host.at("name"));
  if (said != host) return fmt::format("the record is of host '{}', the agent reported '{}'", host, said);
  if (const auto twin = context.machines.twin_of(node)) {
    return fmt::format("the nodes {} and {} are one machine: host name {}, boot {}", node, *twin, said,
                       facts->second.value("boot_id", "unknown"));
  }
  return std::nullopt;
}

/// The error in one rank's record. When a rank fails the others often end in errors that follow from it, so a refused
/// record (weight 0) explains more than a skip (1), and that more than an error (2).
struct RankFault {
  int weight = 0;
  Outcome outcome = Outcome::error;
  std::string reason;
};

std::optional<RankFault> fault_of(const std::expected<TimedRecord, InputError>& timed, const StepContext& context,
                                  std::size_t rank) {
  const auto& nodes = context.step.nodes;
  const std::string who = nodes.size() == 1 ? "" : fmt::format("rank {} on {}: ", rank, nodes[rank]);
  if (!timed)
    return RankFault{
        .weight = 0, .outcome = Outcome::error, .reason = who + "the record is refused: " + timed.error().text()};
  const Record& record = timed->record;
  if (const auto problem = mismatch(record, context, rank))
    return RankFault{.weight = 0, .outcome = Outcome::error, .reason = who + *problem};
  if (record.end.status == Status::skip)
    return RankFault{
        .weight = 1, .outcome = Outcome::not_measured, .reason = who + "the probe skipped: " + record.end.reason};
  if (record.end.status == Status::error)
    return RankFault{.weight = 2, .outcome = Outcome::error, .reason = who + "the probe failed: " + record.end.reason};
  return std::nullopt;
}

/// A record of a probe that asks hardware, in which a statement is no answer to this attempt: the node cannot have been
/// asked, or another one answered. A GPU without a report is for the requirement to judge. A made-up record of a
/// simulation has none.
std::optional<RankFault> unanswered(const Record& record, const StepContext& context, const Attempt& attempt) {
  if (!plan::asks_hardware(context.step.probe) || context.plan.simulation) return std::nullopt;
  const std::string nonce =
      attempt_nonce(context.plan.challenge, context.journal.plan_sha256, attempt.node, attempt.asked);
  const auto fault = [](std::string words) {
    return RankFault{.weight = 0, .outcome = Outcome::error, .reason = std::move(words)};
  };
  if (context.step.probe == plan::kIdentityProbe) {
    const TpmAnswer answer = tpm_answer_in(record, nonce, attempt.asked);
    return answer.outcome == AnswerOutcome::answered ? std::nullopt : std::optional(fault("the TPM: " + answer.words));
  }
  const GpuAnswers answers = gpu_answers_in(record, nonce);
  for (const auto& [uuid, answer] : answers.gpus) {
    if (answer.outcome != AnswerOutcome::answered && answer.outcome != AnswerOutcome::no_answer)
      return fault(fmt::format("the GPU {}: {}", uuid, answer.words));
  }
  const auto said = texts_of(record, "node", "attested");
  const bool says_all = said.empty() || said.begin()->second == "all";
  return says_all && answers.outcome != AnswerOutcome::answered ? std::optional(fault("the GPUs: " + answers.words))
                                                                : std::nullopt;
}

/// The largest load_share of any subject: a small one of another subject than the judged one shortens no load.
std::optional<double> load_share(const Record& record) {
  std::optional<double> largest;
  for (const auto& one : record.measurements) {
    if (one.metric == "load_share") largest = std::max(largest.value_or(0), std::ranges::max(one.samples));
  }
  return largest;
}

/// Why an attempt cannot have spent the times of its parameters, or as much as its load_share says; empty if it can. A
/// simulation's time is virtual.
std::string too_short(const Record& record, const StepContext& context, const Attempt& attempt) {
  constexpr double kRate = 0.01;  // that two clocks may differ by
  const auto begin = utc_time(attempt.begin), end = utc_time(attempt.end);
  if (context.plan.simulation || !begin || !end) return "";
  double load_s = context.plan.probes.at(context.step.probe).description.spent_s(context.step.parameters);
  if (const auto share = load_share(record)) load_s *= std::min(1.0, *share);
  const double lasted_s = std::chrono::duration<double>(*end - *begin).count() - attempt.jumped_s;
  if (lasted_s >= (1 - kRate) * load_s - kMostDrift_s) return "";
  return fmt::format("the record is of {:.4g} s under load, and the attempt lasted {:.4g} s by the head's clock",
                     load_s, lasted_s);
}

/// Whether a fault that it counted may have ended the load of `record` early. One with a load_share says it by that.
bool ends_by_fault(const Record& record, const Description& probe) {
  return !load_share(record) && std::ranges::any_of(record.measurements, [&](const Measurement& one) {
    const auto* metric = probe.metric(one.metric);
    return metric != nullptr && metric->kind == MetricKind::fault && std::ranges::max(one.samples) > 0;
  });
}

/// The record that `attempt` left at `path`.
std::expected<TimedRecord, InputError> record_at(const std::string& path, const Attempt& attempt,
                                                 const EvidenceReader& evidence, const plan::PlannedProbe& probe) {
  const auto file = std::ranges::find(attempt.evidence, path, &EvidenceFile::path);
  if (file == attempt.evidence.end()) return std::unexpected(InputError{path, "was never journalled", ""});
  return evidence.record(*file, probe.description, path);
}

/// Remembers a record of another time than its attempt. A simulation's time is virtual.
void compare_clocks(StepEvidence& found, const StepContext& context, const LineTimes& times, const Attempt& attempt,
                    std::size_t rank) {
  if (context.plan.simulation) return;
  const double outside_s = outside_of_attempt_s(times, attempt);
  if (std::abs(outside_s) <= kMostClockDifference_s) return;
  double& furthest_s = found.outside_s[context.step.nodes[rank]];
  if (std::abs(outside_s) > std::abs(furthest_s)) furthest_s = outside_s;
}

void take(StepEvidence& found, const StepContext& context, const Attempt& attempt) {
  const plan::Step& step = context.step;
  const auto failed = [&](Outcome outcome, const std::string& reason) {
    found.absence = outcome;
    found.reason =
        without_controls(fmt::format("Attempt {} on {}: {}", attempt.number, attempt.node, reason), kLongestWords);
    found.skipped = found.skipped || outcome == Outcome::not_measured;
    found.broken = found.broken || outcome == Outcome::error || (found.skipped && !found.records.empty());
  };
  if (attempt.node != step.nodes.front()) return failed(Outcome::error, "the journal names another node than the plan");
  if (attempt.outcome == AttemptOutcome::interrupted) {
    if (++found.interrupted > kMostInterruptions)
      return failed(Outcome::error, fmt::format("interrupted {} times", found.interrupted));
    if (!found.records.empty() || found.broken) return;
    found.absence = Outcome::not_measured;
    found.reason = fmt::format("Attempt {} on {}: interrupted: {}", attempt.number, attempt.node, attempt.reason);
    return;
  }
  ++found.attempts;
  if (attempt.second_stage) ++found.more_attempts;
  const int made = attempt.second_stage ? found.more_attempts : found.attempts - found.more_attempts;
  const int planned = attempt.second_stage ? step.more_attempts : step.attempts;
  if (made > planned) {
    return failed(Outcome::error, fmt::format("{} attempts where {} were planned{}", made, planned,
                                              attempt.second_stage ? " in the second stage" : ""));
  }
  if (attempt.outcome == AttemptOutcome::lost && ++found.lost <= kMostLosses) {
    // The cells need as many attempts as planned without it; the second stage may supply one.
    if (!found.records.empty() || found.broken || found.skipped) return;
    found.absence = Outcome::error;
    found.reason = fmt::format("Attempt {} on {}: lost: {}", attempt.number, attempt.node, attempt.reason);
    return;
  }
  if (attempt.outcome != AttemptOutcome::exited)
    return failed(Outcome::error, fmt::format("{}: {}", attempt.outcome, attempt.reason));
  std::vector<Record> ranks;
  std::optional<RankFault> worst;
  for (std::size_t rank = 0; rank < step.nodes.size(); ++rank) {
    const std::string path = record_path(attempt.step, attempt.number, static_cast<int>(rank));
    auto timed = record_at(path, attempt, context.evidence, context.plan.probes.at(step.probe));
    auto fault = fault_of(timed, context, rank);
    if (!fault) fault = unanswered(timed->record, context, attempt);
    if (fault && (!worst || fault->weight < worst->weight)) worst = std::move(fault);
    if (!timed) continue;
    compare_clocks(found, context, timed->times, attempt, rank);
    ranks.push_back(std::move(timed->record));
  }
  if (worst) return failed(worst->outcome, worst->reason);
  if (const std::string words = too_short(ranks.front(), context, attempt); !words.empty()) {
    if (!ends_by_fault(ranks.front(), context.plan.probes.at(step.probe).description))
      return failed(Outcome::error, words);
    found.cut_short = fmt::format("A fault ended attempt {} early: {}.", attempt.number, words);
  }
  found.records.push_back(std::move(ranks.front()));
  ranks.erase(ranks.begin());
  found.others.push_back(std::move(ranks));
  found.numbers.push_back(attempt.number);
  if (!attempt.second_stage) ++found.first_stage;
  found.broken = found.broken || found.skipped;
}

}  // namespace

std::optional<InputError> check_kind(const plan::Plan& plan, const Journal& journal) {
  if (plan.simulation.has_value() == journal.simulated) return std::nullopt;
  return InputError{journal.simulated ? "journal.jsonl" : "plan.json", "is of a simulation, and its neighbour is not",
                    "a simulation is never a measurement, and the other way round; restore the file"};
}

Machines::Machines(const Journal& journal) {
  for (const auto& [node, said] : journal.node_facts) {
    // Containers share their machine's boot and have host names of their own; they are nodes like others.
    const std::string machine = said.value("name", "") + "\n" + said.value("boot_id", "");
    machine_of_[node] = machine;
    nodes_of_[machine].push_back(node);
  }
}

std::optional<std::string> Machines::twin_of(const std::string& node) const {
  const auto machine = machine_of_.find(node);
  if (machine == machine_of_.end()) return std::nullopt;
  const auto& nodes = nodes_of_.at(machine->second);
  const auto other = std::ranges::find_if(nodes, [&](const std::string& one) { return one != node; });
  return other == nodes.end() ? std::nullopt : std::optional(*other);
}

std::expected<Run, InputError> read_run(const std::string& directory) {
  const auto plan_bytes = read_file(directory + "/plan.json");
  std::error_code unknown;
  if (!plan_bytes && fs::is_directory(directory, unknown) && !fs::exists(directory + "/plan.json", unknown))
    return std::unexpected(
        InputError{directory, "is no folder of a run: it has no plan.json", "name the folder given as --out"});
  if (!plan_bytes) return std::unexpected(plan_bytes.error());
  auto plan = plan::read_plan(*plan_bytes, directory + "/plan.json");
  if (!plan) return std::unexpected(plan.error());
  const auto journal_bytes = read_file(directory + "/journal.jsonl");
  if (!journal_bytes) return std::unexpected(journal_bytes.error());
  auto journal = read_journal(*journal_bytes, directory + "/journal.jsonl");
  if (!journal) return std::unexpected(journal.error());
  Run run{.plan = std::move(*plan), .plan_sha256 = files::sha256(*plan_bytes), .journal = std::move(*journal)};
  if (run.journal.plan_sha256 != run.plan_sha256) {
    return std::unexpected(InputError{directory, "journal.jsonl belongs to another plan than plan.json",
                                      "the plan was frozen when the run began; restore it"});
  }
  if (auto problem = check_kind(run.plan, run.journal)) return std::unexpected(*problem);
  std::set<std::string_view> steps;
  for (const auto& step : run.plan.steps) steps.insert(step.id);
  for (const auto& attempt : run.journal.attempts) {
    if (attempt.is_extra() || steps.contains(attempt.step))
      continue;  // judging says whether an extra test was to be made
    return std::unexpected(InputError{directory + "/journal.jsonl",
                                      fmt::format("has an attempt of '{}', which is no step of the plan", attempt.step),
                                      ""});
  }
  return run;
}

EvidenceReader evidence_in(const std::string& directory, KeptRecords records) {
  const auto read = [directory](const EvidenceFile& file) -> std::expected<std::string, InputError> {
    auto bytes = read_file(directory + "/" + file.path);
    if (!bytes) return bytes;
    if (bytes->size() != file.bytes || files::sha256(*bytes) != file.sha256) {
      return std::unexpected(
          InputError{file.path, "is not the file that was journalled", "the evidence was changed after the run"});
    }
    return bytes;
  };
  return {read, std::move(records)};
}

std::string record_path(const std::string& step, int attempt, int rank, const std::string& companion) {
  return fmt::format("records/{}/{}/{}{}.jsonl", step, attempt, companion.empty() ? "" : companion + ".", rank);
}

std::string log_path(const std::string& step, int attempt, int rank, const std::string& companion) {
  return fmt::format("logs/{}/{}/{}{}.log", step, attempt, companion.empty() ? "" : companion + ".", rank);
}

std::optional<int> rank_in(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  const std::string_view stem = name.substr(0, name.rfind('.'));
  const std::string_view digits = stem.substr(stem.rfind('.') + 1);  // behind a companion's name, if there is one
  return whole_number<int>(digits);
}

std::expected<Record, InputError> record_of(const plan::Plan& plan, const plan::Step& step, const Attempt& attempt,
                                            const EvidenceReader& evidence, int rank, const std::string& companion) {
  const std::string path = record_path(attempt.step, attempt.number, rank, companion);
  auto timed = record_at(path, attempt, evidence, plan.probes.at(companion.empty() ? step.probe : companion));
  if (!timed) return std::unexpected(std::move(timed.error()));
  return std::move(timed->record);
}

double outside_of_attempt_s(const LineTimes& times, const Attempt& attempt) {
  const auto first = utc_time(times.first), last = utc_time(times.last);
  const auto begin = utc_time(attempt.begin);
  const auto end = utc_time(attempt.end);
  if (!first || !last || !begin || !end) return 0;
  const double before_s = std::chrono::duration<double>(*begin - *first).count();
  const double after_s = std::chrono::duration<double>(*last - *end).count();
  if (before_s <= 0 && after_s <= 0) return 0;
  return before_s > after_s ? -before_s : after_s;
}

bool is_judged(const Measurement& measured, const plan::Requirement& requirement) {
  if (measured.metric != requirement.metric || !(requirement.at_every || measured.at == requirement.at)) return false;
  const auto kind = from_word<plan::JudgedScope>(measured.subject.kind);
  return kind && (kind == requirement.scope || (is_together(*kind) && is_together(requirement.scope)));
}

void read_ahead(const plan::Plan& plan, const plan::Step& step, const std::vector<Attempt>& attempts,
                const EvidenceReader& evidence) {
  for (const Attempt& attempt : attempts) {
    if (attempt.outcome != AttemptOutcome::exited) continue;
    for (std::size_t rank = 0; rank < step.nodes.size(); ++rank) {
      const auto file = std::ranges::find(
          attempt.evidence, record_path(step.id, attempt.number, static_cast<int>(rank)), &EvidenceFile::path);
      if (file != attempt.evidence.end() && !evidence.records().has(*file))
        (void)evidence.record(*file, plan.probes.at(step.probe).description, "");  // refused again when it is collected
    }
  }
}

StepEvidence collect(const plan::Plan& plan, const plan::Step& step, const std::vector<Attempt>& attempts,
                     const Journal& journal, const Machines& machines, const EvidenceReader& evidence, int first) {
  const StepContext context{.plan = plan, .step = step, .journal = journal, .machines = machines, .evidence = evidence};
  StepEvidence found;
  found.reason = reason_not_started(journal, step);
  std::vector<std::string> paths;
  int number = first - 1;
  for (const Attempt& attempt : attempts) {
    if (attempt.number != ++number) {
      found.broken = true;
      found.absence = Outcome::error;
      found.reason = fmt::format("The journal has attempt {} of {} where {} was due.", attempt.number, step.id, number);
      break;
    }
    for (const auto& file : attempt.evidence) paths.push_back(file.path);
    take(found, context, attempt);
  }
  found.paths = std::move(paths);
  return found;
}

}  // namespace assay::judge
