// journal: the append-only, fsynced account of a run, from which it resumes.
#pragma once

#include <algorithm>
#include <chrono>
#include <expected>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "orchestrator/files/digest.h"
#include "orchestrator/judge/evidence/attempts.h"
#include "probes/core/descriptor.h"
#include "probes/core/error.h"
#include "probes/core/json_io.h"

namespace assay::judge {

/// The schema name in the first line of every journal.
inline constexpr const char* kJournalSchema = "assay.journal/1";

/// The site's meters were read by the companion of the head: from when to when, and its output.
struct Watch {
  int number = 1;     ///< from 1
  std::string probe;  ///< power_feed
  AttemptOutcome outcome = AttemptOutcome::interrupted;
  std::string reason;      ///< for people; empty if it ended as it should
  std::string begin, end;  ///< UTC by the head's clock; end is empty if interrupted
  std::vector<EvidenceFile> evidence;
};

/// A node that could not be reached or was lost, as often as it happened.
struct NodeEvent {
  std::string node, time, reason;
};

/// The wall clock of the machine that runs assay went another way than its monotonic one.
struct ClockJump {
  std::string time;  ///< UTC after the jump
  double by_s = 0;   ///< forward, or backward when negative
};

/// A journal as read: the events in order.
struct Journal {
  std::string run_id;      ///< UUID
  bool simulated = false;  ///< nothing was measured: the records are made up
  std::string plan_sha256;
  std::string begin;  ///< UTC of the first line
  std::string end;    ///< UTC of run_end; empty while unfinished
  std::string last;   ///< UTC of the last line
  bool finished = false;
  bool interrupted = false;                          ///< by a signal, and not resumed since
  int resumed = 0;                                   ///< how often the run was resumed
  bool torn = false;                                 ///< the last line was cut off and passed over
  std::string by;                                    ///< last writer: "process 4711 on head1"; empty if unknown
  bool second_stage = false;                         ///< the planned attempts are over, and some steps get more
  std::map<std::string, std::string> more_attempts;  ///< steps of the second stage, and the cell that asks for it
  bool localising = false;                      ///< the plan's steps are over, and searches for nodes at fault began
  std::map<std::string, std::string> left_out;  ///< steps that were not to start any more, and why, by id
  std::vector<ClockJump> clock_jumps;
  Attempts attempts;
  std::vector<Watch> watches;          ///< of meters and switches; those of one probe one after another
  std::vector<NodeEvent> node_events;  ///< a node that was rebooted between two starts of its agent is among them
  std::map<std::string, nlohmann::json> node_facts;  ///< each agent's facts of its node, by node name

  /// Calls `act` for every file that attempts and watches left, in the order of the journal within each.
  template <class Act>
  void each_file(const Act& act) const {
    for (const auto& attempt : attempts) std::ranges::for_each(attempt.evidence, act);
    for (const auto& watch : watches) std::ranges::for_each(watch.evidence, act);
  }
};

/// Reads a journal. A cut-off last line is passed over and flagged (it was never acted upon); any other damage is an
/// error with its line: a member that is not known, times that go back (journal_guard.h), attempts that end without a
/// beginning, out of their order or twice, anything after the run's end. An attempt that began and never ended is
/// `interrupted`.
std::expected<Journal, InputError> read_journal(std::string_view text, const std::string& where);

/// The content of a line of a journal besides its time.
struct JournalEntry {
  const char* kind;
  std::string members;  ///< the others, as JSON without its braces

  /// A run begins; `simulated` says in its first line that nothing is measured in it; `by`: its user.
  static JournalEntry run_begin(const std::string& run_id, const std::string& plan_sha256, const std::string& by = "",
                                bool simulated = false);
  /// A killed run continues.
  static JournalEntry run_resume(const std::string& by = "");
  /// An agent answered and said `facts` of its node.
  static JournalEntry node_up(const std::string& node, const nlohmann::json& facts);
  /// A node could not be reached, or was lost.
  static JournalEntry node_down(const std::string& node, const std::string& reason);
  /// An attempt is about to start.
  static JournalEntry attempt_begin(const std::string& step, int number, const std::string& node);
  /// The same of one that asks hardware; `secret_sha256` of the secret to recover, empty if there is none.
  static JournalEntry question_begin(const std::string& step, int number, const std::string& node,
                                     const std::string& secret_sha256);
  /// An extra test of a search is about to start.
  static JournalEntry test_begin(const Attempt& test);
  /// The planned attempts are over; these steps get those of the second stage, each for its reason.
  static JournalEntry second_stage_begin(const std::map<std::string, std::string>& steps);
  /// The plan's steps are over; extra tests of searches follow.
  static JournalEntry localise_begin();
  /// These steps do not start any more, for `reason`.
  static JournalEntry steps_left_out(const std::string& reason, const std::vector<std::string>& steps);
  /// The wall clock jumped.
  static JournalEntry clock_jump(double by_s);
  /// An attempt ended and its evidence is on disk.
  static JournalEntry attempt_end(const Attempt& attempt);
  /// The site's meters are about to be read.
  static JournalEntry watch_begin(int number, const std::string& probe);
  /// They are read no longer, and the evidence is on disk.
  static JournalEntry watch_end(const Watch& watch);
  /// A signal asked the run to stop: running steps finish unless it comes again.
  static JournalEntry run_interrupt();
  /// Every step was tried.
  static JournalEntry run_end();
};

/// The lines of a journal, each with its newline, the first with the schema: appended by JournalWriter, and gathered by
/// a simulation.
class JournalLines {
 public:
  /// `fresh`: the next line is the journal's first.
  explicit JournalLines(bool fresh) : fresh_(fresh) {}

  /// Whether the next line is the journal's first.
  [[nodiscard]] bool is_fresh() const { return fresh_; }
  /// The line of `entry` at `time`.
  std::string line(const std::string& time, const JournalEntry& entry);

 private:
  bool fresh_;
};

/// Two clocks of the machine that runs assay; tests give others.
struct Clocks {
  std::chrono::system_clock::time_point (*wall)() = std::chrono::system_clock::now;
  std::chrono::steady_clock::time_point (*steady)() = std::chrono::steady_clock::now;
};

/// Thrown when another process writes to the same journal.
struct JournalInUse : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The journal being written. write() appends one line and fsyncs before it returns; one that fails throws
/// std::system_error, because a run without its account must stop. A wall clock that went another way than the
/// monotonic one by more than a second since the line before gets a line of its own.
class JournalWriter {
 public:
  /// Opens `path` for appending, creates it when missing, locks it, cuts a torn last line off. Throws JournalInUse,
  /// with the writer's name by the journal.
  explicit JournalWriter(const std::string& path, Clocks clocks = {});

  /// Appends `entry` at the time that it is. Returns the time.
  std::string write(const JournalEntry& entry);
  /// SHA-256 of all lines so far, 64 hexadecimal digits.
  [[nodiscard]] std::string head() const { return written_.so_far(); }
  /// The sum of the jumps that it has written, in s.
  [[nodiscard]] double jumped_s() const { return jumped_s_; }

 private:
  std::string now();
  void append(const std::string& line);
  JournalLines lines_{true};
  files::Sha256 written_;
  Descriptor file_;
  Clocks clocks_;
  std::chrono::system_clock::time_point wall_;
  std::chrono::steady_clock::time_point steady_;
  double jumped_s_ = 0;
};

}  // namespace assay::judge
