// account: the journal of drains (assay.drain/1): every action is written down before it is taken and after it was seen
// to have worked.
#pragma once

#include <chrono>
#include <expected>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "orchestrator/drift/night.h"
#include "probes/core/error.h"
#include "probes/core/words.h"

namespace assay::drain {

/// Action on a node.
enum class Action { drain, release };

constexpr auto words_of(Action) { return names_as_words<Action>(); }

/// A line of the journal.
enum class Entry {
  begin,   ///< the action is about to be taken
  done,    ///< the scheduler shows it
  failed,  ///< the scheduler does not show it
  lifted,  ///< a drain of ours was ended or taken over by another user
};

constexpr auto words_of(Entry) { return names_as_words<Entry>(); }

/// One line.
struct Line {
  std::string time;        ///< UTC
  drift::Date night = {};  ///< of the report that it followed
  Entry entry = Entry::begin;
  Action action = Action::drain;
  std::string node, flag, reason;
  friend bool operator==(const Line&, const Line&) = default;
};

/// The line as JSON, and back; strict.
std::string text_of(const Line& line);
std::expected<Line, InputError> line_from(const std::string& text, const std::string& where);

/// A drain of ours.
struct OwnDrain {
  std::string node, flag, reason, time;
  drift::Date night = {};
};

/// State after the lines of a journal.
class Account {
 public:
  /// Errors name `where` and the line.
  static std::expected<Account, InputError> from(const std::vector<std::string>& lines, const std::string& where);
  /// Takes one line more.
  void take(const Line& line);

  /// Actions that began and of which nothing more is known: a process was killed.
  [[nodiscard]] std::vector<Line> open() const;
  /// Drains of ours that hold, by node.
  [[nodiscard]] const std::map<std::string, OwnDrain>& drained() const { return drained_; }
  /// Drains that were done because of reports of `night`, or within 12 hours before `time`, whatever their report was
  /// of: reports of several nights, acted on at once, have the cap of one.
  [[nodiscard]] int drains_of(drift::Date night, std::chrono::system_clock::time_point time) const;
  /// How often `node` was drained in the `days` up to `night`.
  [[nodiscard]] int drains_of(const std::string& node, drift::Date night, int days) const;
  /// Whether `node` was put back by other means although it was drained for `flag`.
  [[nodiscard]] bool is_lifted(const std::string& node, const std::string& flag) const;

 private:
  std::map<std::string, Line> begun_;  ///< by node
  std::map<std::string, OwnDrain> drained_;
  std::set<std::pair<std::string, std::string>> lifted_;
  std::vector<OwnDrain> drains_;
};

}  // namespace assay::drain
