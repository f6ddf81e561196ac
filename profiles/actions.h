// actions: the action that each finding asks for: a dated table from findings to actions, each with its source. It is
// read when advice is shown; nothing is judged by it, and no verdict holds any of it.
#pragma once

#include <expected>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "probes/core/error.h"
#include "probes/core/words.h"

namespace assay::profiles {

/// Actions, the most urgent first. isolate: out of service at once. rma: out of service, and replaced by its maker.
/// drain: out of service when its jobs have ended, then examined. not_known precedes actions that can wait: a
/// finding without a row does not hide behind one.
enum class Action { isolate, rma, drain, reset, reseat, update, reconfigure, not_known, watch, none };

constexpr auto words_of(Action) {
  using enum Action;
  return std::to_array<Word<Action>>({{isolate, "isolate"},
                                      {rma, "rma"},
                                      {drain, "drain"},
                                      {reset, "reset"},
                                      {reseat, "reseat"},
                                      {update, "update"},
                                      {reconfigure, "reconfigure"},
                                      {not_known, "not known"},
                                      {watch, "watch"},
                                      {none, "none"}});
}

/// Kind of a finding. probe: any other finding of a probe.
enum class Found { metric, condition, culprit, probe };

constexpr auto words_of(Found) { return names_as_words<Found>(); }

/// The action that one finding asks for. All texts are of the table, none of a node.
struct Advice {
  Action action = Action::not_known;
  std::string finding;       ///< "xid_numbers 48"; empty: of no row
  std::string says, source;  ///< one sentence, and the name of its source; empty if not known
};

/// The more urgent one; of equals the first.
const Advice& more_urgent(const Advice& a, const Advice& b);

/// "reset (xid_numbers 48)", "not known".
std::string short_words(const Advice& advice);

/// Where an action is from.
struct ActionSource {
  std::string document, address, date;
  std::string status;  ///< sourced or advisory
};

/// One line of the table: an action, or in `by` the condition of the same record that has it.
struct ActionRow {
  Found found = Found::metric;
  std::string name, probe;          ///< probe empty: of any
  std::vector<std::string> values;  ///< of a condition; empty: any value
  std::string by;
  Advice advice;
  std::size_t place = 0;  ///< in the document, which has one row for several metrics
};

/// The table.
class ActionTable {
 public:
  /// Refused: violations of the schema "actions.schema", two rows for one finding, a source or a condition that
  /// is not there, a day that does not exist.
  static std::expected<ActionTable, InputError> read(std::string_view text, const std::string& where);

  [[nodiscard]] const std::string& date() const { return date_; }
  [[nodiscard]] const std::map<std::string, ActionSource>& sources() const { return sources_; }
  [[nodiscard]] const std::vector<ActionRow>& rows() const { return rows_; }

  /// The row of this finding, exactly: of the probe, else of any probe; nullptr if there is none.
  [[nodiscard]] const ActionRow* find(Found found, const std::string& name, const std::string& probe = "",
                                      const std::string& value = "") const;
  /// The advice for a metric of `probe` that misses its limit. Where its row names a condition, by its `value`, which
  /// is empty if it was not recorded.
  [[nodiscard]] Advice of_metric(const std::string& probe, const std::string& metric,
                                 std::string_view value = "") const;
  /// The same of a condition with `value`: a number or word, or several with commas or blanks, of which the most urgent
  /// counts. A number of times in brackets and the number of a lane are passed over.
  [[nodiscard]] Advice of_condition(const std::string& probe, const std::string& name, std::string_view value) const;
  /// The same of "node", "pair", "leaf" or "common_cause".
  [[nodiscard]] Advice of_culprit(const std::string& kind) const;
  /// "NVIDIA …, 2026-11-27": the source of `advice`; empty without one.
  [[nodiscard]] std::string source_words(const Advice& advice) const;
  /// "table of 2026-11-27", and that it is old where `today`, a date or a time of UTC, is over kOldAfter_days later.
  [[nodiscard]] std::string age_words(std::string_view today) const;

 private:
  using Key = std::tuple<Found, std::string, std::string, std::string>;
  std::optional<InputError> index(const std::string& where);
  [[nodiscard]] Advice of_probe(const std::string& probe) const;
  std::string date_;
  std::map<std::string, ActionSource> sources_;
  std::vector<ActionRow> rows_;
  std::map<Key, std::size_t> places_;  ///< by kind, name, probe and value
};

/// Days after which a table is called old: half a year, in which makers of GPUs revise theirs.
inline constexpr int kOldAfter_days = 180;

/// The name of the table among embedded_documents().
inline constexpr const char* kActionsDocument = "actions";

/// The table of this version. Throws when it is damaged, which a test rules out.
const ActionTable& actions();

}  // namespace assay::profiles
