// apply: carries decisions out, each in four steps: read, write down, act, read again.
#pragma once

#include <chrono>
#include <expected>
#include <string>
#include <vector>

#include "orchestrator/drain/account.h"
#include "orchestrator/drain/actor.h"
#include "orchestrator/drain/decide.h"
#include "orchestrator/files/line_log.h"

namespace assay::drain {

/// The journal, open and locked, and its state.
class Books {
 public:
  /// Opens the journal `path`. Errors: as LineLog::open, and lines that cannot be read.
  static std::expected<Books, InputError> open(const std::string& path);
  [[nodiscard]] const Account& account() const { return account_; }
  /// Appends a line. On disk when it returns.
  [[nodiscard]] std::optional<InputError> write(const Line& line);

 private:
  Books(files::LineLog log, Account account) : log_(std::move(log)), account_(std::move(account)) {}
  files::LineLog log_;
  Account account_;
};

/// Closes open entries of a killed process, by the scheduler's state `now`: an action that it shows is done, one that
/// it does not show did not happen. Then writes down which of our drains another user has ended or taken over.
std::optional<InputError> settle(Books& books, const std::map<std::string, NodeNow>& now,
                                 std::chrono::system_clock::time_point time);

/// Actions done.
struct Done {
  std::vector<Decision> done;
  std::vector<Decision> failed;  ///< `why` has the cause
};

/// Carries out the drains and releases of `decisions` one after the other; the others are passed over. Before each, the
/// node is read again: one that changed meanwhile is left. An error of the journal ends it; nothing is done that is not
/// written down.
std::expected<Done, InputError> apply(const Decisions& decisions, drift::Date night, Actor& actor, Books& books,
                                      std::chrono::system_clock::time_point time);

}  // namespace assay::drain
