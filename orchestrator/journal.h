// journal: the append-only, fsynced account of a run, from which it resumes.
#pragma once

#include <expected>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "probes/core/json_io.h"

namespace assay {

/// A file that an attempt left, as journalled once its bytes were on disk.
struct EvidenceFile {
  std::string path;  ///< relative to the run directory
  std::string sha256;
  std::uint64_t bytes = 0;
};

/// How one attempt ended, in the orchestrator's words; what the probe says stands in its record.
/// exited: the probe ran to its own end (its record says how). deadline, output_limit, crashed: it was killed or died.
/// lost: the node or its agent went away. refused: the agent would not run it. interrupted: the run was killed.
struct Attempt {
  std::string step;
  int number = 1;          ///< from 1
  std::string node;        ///< rank 0's
  std::string outcome;     ///< exited | deadline | output_limit | crashed | lost | refused | interrupted
  std::string reason;      ///< for people; empty when exited
  std::string begin, end;  ///< UTC; end is empty when interrupted
  std::vector<EvidenceFile> evidence;
};

/// A node that could not be reached or was lost, as often as it happened.
struct NodeEvent {
  std::string node, time, reason;
};

/// A journal as read: what happened, in order.
struct Journal {
  std::string run_id;       ///< UUID
  bool simulated = false;   ///< nothing was measured: the records are made up
  std::string plan_sha256;
  std::string begin;        ///< UTC of the first line
  std::string end;          ///< UTC of run_end; empty while unfinished
  bool finished = false;
  int resumed = 0;          ///< how often the run was resumed
  bool torn = false;        ///< the last line was cut off and passed over
  std::vector<Attempt> attempts;
  std::vector<NodeEvent> node_events;
  std::map<std::string, nlohmann::json> node_facts;  ///< what each agent said of its node, by node name

  /// All attempts of one step, in order.
  [[nodiscard]] std::vector<const Attempt*> of(std::string_view step) const;
};

/// Reads a journal. A cut-off last line is passed over and flagged (it was never acted upon); any other damage is an
/// error with its line: attempts that end without a beginning, out of their order or twice, anything after the run's end.
/// An attempt that began and never ended is `interrupted`.
std::expected<Journal, InputError> read_journal(std::string_view text, const std::string& where);

/// The lines of a journal, each with its newline, the first with the schema: what JournalWriter appends, and what a simulation
/// gathers. Times are those that the caller names.
class JournalLines {
 public:
  /// `fresh`: the next line is the journal's first.
  explicit JournalLines(bool fresh) : fresh_(fresh) {}

  /// A run begins; `simulated` says in its first line that nothing is measured in it.
  std::string run_begin(const std::string& time, const std::string& run_id, const std::string& plan_sha256, bool simulated);
  /// A killed run goes on.
  std::string run_resume(const std::string& time);
  /// An agent answered and said `facts` of its node.
  std::string node_up(const std::string& time, const std::string& node, const nlohmann::json& facts);
  /// A node could not be reached, or was lost.
  std::string node_down(const std::string& time, const std::string& node, const std::string& reason);
  /// An attempt is about to start.
  std::string attempt_begin(const std::string& time, const std::string& step, int number, const std::string& node);
  /// An attempt ended.
  std::string attempt_end(const std::string& time, const Attempt& attempt);
  /// Every step was tried.
  std::string run_end(const std::string& time);

 private:
  std::string line(const std::string& time, const char* kind, const nlohmann::ordered_json& body);
  bool fresh_;
};

/// The journal being written. Every call appends one line and fsyncs before it returns; a write that fails throws
/// std::system_error, because a run without its account must stop.
class JournalWriter {
 public:
  /// Opens `path` for appending, creates it when missing, cuts a torn last line off.
  explicit JournalWriter(const std::string& path);
  ~JournalWriter();
  JournalWriter(const JournalWriter&) = delete;
  JournalWriter& operator=(const JournalWriter&) = delete;

  /// A fresh run begins.
  void run_begin(const std::string& run_id, const std::string& plan_sha256);
  /// A killed run goes on.
  void run_resume();
  /// An agent answered and said `facts` of its node.
  void node_up(const std::string& node, const nlohmann::json& facts);
  /// A node could not be reached, or was lost.
  void node_down(const std::string& node, const std::string& reason);
  /// An attempt is about to start.
  void attempt_begin(const std::string& step, int number, const std::string& node);
  /// An attempt ended and its evidence is on disk.
  void attempt_end(const Attempt& attempt);
  /// Every step was tried.
  void run_end();

 private:
  void append(const std::string& line);
  JournalLines lines_{true};
  int file_ = -1;
};

}  // namespace assay
