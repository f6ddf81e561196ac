// run_journal: the journal of a run, on disk and in memory; each event also goes to the progress display.
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <nlohmann/json.hpp>

#include "orchestrator/judge/cells/second_stage.h"
#include "orchestrator/judge/evidence/journal.h"
#include "orchestrator/judge/verdict.h"
#include "orchestrator/plan/passes.h"
#include "orchestrator/plan/plan.h"
#include "orchestrator/run/progress.h"

namespace assay::run {

/// Attempts in a row that gave no figure, all for the same cause.
struct SameCause {
  std::string cause;  ///< without the names of nodes
  int attempts = 0;
  std::set<std::string> nodes = {};  ///< that took part
};

/// Events of a run, and the judgement of a step's attempts so far. Calls that append to the journal throw
/// std::system_error when it cannot be written.
class RunJournal {
 public:
  /// `journal` is what `writer` holds so far; evidence is read under `directory` and kept in `records`. `plan` and
  /// `progress` must outlive it.
  RunJournal(const plan::Plan& plan, const std::string& directory, judge::Journal journal, judge::JournalWriter writer,
             Progress& progress, judge::KeptRecords records = {});

  /// The agent of `node` is connected and reported `facts` of its node.
  void node_up(const std::string& node, const nlohmann::json& facts);
  /// `node` could not be reached, or was lost.
  void node_down(const std::string& node, const std::string& reason);
  /// An attempt of `step` starts; an extra test of a search has a purpose. One that asks hardware has the SHA-256 of
  /// the secret to recover, which may be empty. Returns the attempt's number.
  int begin_attempt(const plan::Step& step, const std::string& purpose, const std::string* secret_sha256 = nullptr);
  /// The question for the hardware of the node of `step` in the attempt that has begun (attempt_nonce).
  [[nodiscard]] std::string nonce_of(const plan::Step& step) const;
  /// An attempt of `step` ended and its evidence is on disk. `measured`: every rank says that its record is complete.
  void end_attempt(const plan::Step& step, judge::Attempt attempt, bool measured);
  /// The site's meters are about to be read by `probe`. Returns the watch's number.
  int begin_watch(const std::string& probe);
  /// They are read no longer, and the evidence of `watch` is on disk.
  void end_watch(judge::Watch watch);
  /// The planned attempts are over; these steps are measured again.
  void begin_second_stage(const judge::SecondStage& steps);
  /// The plan's steps are over; extra tests of searches follow.
  void begin_localising();
  /// These steps do not start any more, for `reason`.
  void leave_out(const std::string& reason, const std::vector<std::string>& steps);
  /// A signal asked the run to stop.
  void interrupt();
  /// Every step was tried.
  void end_run();

  /// The whole journal.
  [[nodiscard]] const judge::Journal& journal() const { return journal_; }
  /// The part of it that the judge needs for `step`: its attempts, and the facts of its nodes.
  [[nodiscard]] judge::Journal part_of(const plan::Step& step) const;
  /// Reads evidence of this run.
  [[nodiscard]] const judge::EvidenceReader& evidence() const { return evidence_; }
  /// The stage that the run is in.
  [[nodiscard]] plan::Stage stage() const { return journal_.second_stage ? plan::Stage::second : plan::Stage::first; }
  /// The results of the step's cells, from its attempts so far.
  [[nodiscard]] judge::Results results_of(const plan::Step& step) const;
  /// Their outcomes, once the step has had the attempts of the stage; nothing before.
  [[nodiscard]] StepWords words_of(const plan::Step& step) const;
  /// The latest attempts, as far as they broke for one cause; none after one that gave a figure.
  [[nodiscard]] const SameCause& same_cause() const { return same_cause_; }
  /// How many more attempts of `step` this stage asks for. None after one that broke or measured nothing: a step that
  /// failed once in a stage is not tried until it works.
  [[nodiscard]] int wanted(const plan::Step& step) const;

 private:
  void count_cause(const plan::Step& step, const judge::Attempt& attempt, const judge::Results& results, bool figure);

  const plan::Plan& plan_;
  Progress& progress_;
  judge::Journal journal_;
  judge::JournalWriter writer_;
  judge::EvidenceReader evidence_;
  std::unordered_map<std::string, std::vector<std::size_t>> attempts_;   ///< of each step, by index in journal_
  std::unordered_map<std::string_view, std::vector<plan::Cell>> cells_;  ///< of each step
  std::unordered_map<std::string, std::string> begun_;  ///< when the running attempt of each step began, UTC
  std::unordered_map<std::string, double> jumped_s_;    ///< JournalWriter::jumped_s then
  std::unordered_map<std::string, std::string> asked_;  ///< of attempts that ask hardware: as Attempt::asked
  std::set<std::string> unmeasured_;                    ///< steps whose attempt of this stage measured nothing
  SameCause same_cause_;
  bool has_figure_ = false;  ///< some attempt gave one
};

}  // namespace assay::run
