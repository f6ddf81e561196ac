// apply: the order of steps that a kill at any point leaves recoverable.
#include "orchestrator/drain/apply.h"

#include "probes/core/text.h"
#include "probes/core/utc_time.h"

namespace assay::drain {
namespace {

using Nodes = std::map<std::string, NodeNow>;

Line line_of(const Decision& decision, drift::Date night, Entry entry, std::chrono::system_clock::time_point time) {
  return {.time = utc_text(time),
          .night = night,
          .entry = entry,
          .action = decision.ruling == Ruling::drain ? Action::drain : Action::release,
          .node = decision.node,
          .flag = decision.flag,
          .reason = decision.reason};
}

bool is_ours(const Nodes& now, const std::string& node, const std::string& reason) {
  const auto found = now.find(node);
  return found != now.end() && found->second.drained && found->second.reason == reason;
}

/// Whether the scheduler shows what `action` was to bring about.
bool has_happened(Action action, const Nodes& now, const std::string& node, const std::string& reason) {
  if (action == Action::drain) return is_ours(now, node, reason);
  return now.contains(node) && !is_ours(now, node, reason);
}

/// Why the decision no longer fits the node; empty if it does.
std::string change_of(const Decision& decision, const Nodes& now) {
  const auto found = now.find(decision.node);
  if (found == now.end()) return "the scheduler does not know it any more";
  if (decision.ruling == Ruling::drain) {
    if (found->second.drained) return "another user drained it meanwhile: " + printable(found->second.reason);
    return found->second.down ? "it went down meanwhile" : "";
  }
  if (!is_ours(now, decision.node, decision.reason)) return "it does not carry our reason any more";
  return found->second.busy ? "jobs run on it" : "";
}

/// One decision; a reason if it failed, an error if the journal did.
std::expected<std::string, InputError> carry_out(const Decision& decision, drift::Date night, Actor& actor,
                                                 Books& books, std::chrono::system_clock::time_point time) {
  const auto before = actor.read({decision.node});
  if (!before) return before.error().text();
  if (std::string changed = change_of(decision, *before); !changed.empty()) return changed;
  if (auto problem = books.write(line_of(decision, night, Entry::begin, time))) return std::unexpected(*problem);
  const bool drains = decision.ruling == Ruling::drain;
  const auto refused =
      drains ? actor.drain(decision.node, decision.reason) : actor.release(decision.node, decision.reason);
  const auto after = actor.read({decision.node});
  if (!after) return "not known whether it worked: " + after.error().text();  // settled by the next call
  const bool done = has_happened(drains ? Action::drain : Action::release, *after, decision.node, decision.reason);
  if (auto problem = books.write(line_of(decision, night, done ? Entry::done : Entry::failed, time)))
    return std::unexpected(*problem);
  if (done) return std::string();
  return refused ? refused->text() : std::string("the scheduler does not show it");
}

}  // namespace

std::expected<Books, InputError> Books::open(const std::string& path) {
  auto log = files::LineLog::open(path);
  if (!log) return std::unexpected(log.error());
  auto account = Account::from(log->lines(), path);
  if (!account) return std::unexpected(account.error());
  return Books(std::move(*log), std::move(*account));
}

std::optional<InputError> Books::write(const Line& line) {
  if (auto problem = log_.append(text_of(line))) return problem;
  account_.take(line);
  return std::nullopt;
}

std::optional<InputError> settle(Books& books, const Nodes& now, std::chrono::system_clock::time_point time) {
  for (Line line : books.account().open()) {
    line.entry = has_happened(line.action, now, line.node, line.reason) ? Entry::done : Entry::failed;
    line.time = utc_text(time);
    if (auto problem = books.write(line)) return problem;
  }
  const auto drained = books.account().drained();
  for (const auto& [node, own] : drained) {
    // A node that the scheduler does not know for the moment may come back with its reason.
    if (!now.contains(node) || is_ours(now, node, own.reason)) continue;
    const Line line{.time = utc_text(time),
                    .night = own.night,
                    .entry = Entry::lifted,
                    .action = Action::drain,
                    .node = node,
                    .flag = own.flag,
                    .reason = own.reason};
    if (auto problem = books.write(line)) return problem;
  }
  return std::nullopt;
}

std::expected<Done, InputError> apply(const Decisions& decisions, drift::Date night, Actor& actor, Books& books,
                                      std::chrono::system_clock::time_point time) {
  Done result;
  for (const auto& decision : decisions.nodes) {
    if (decision.ruling != Ruling::drain && decision.ruling != Ruling::release) continue;
    const auto failure = carry_out(decision, night, actor, books, time);
    if (!failure) return std::unexpected(failure.error());
    if (failure->empty()) {
      result.done.push_back(decision);
    } else {
      result.failed.push_back(decision);
      result.failed.back().why = *failure;
    }
  }
  return result;
}

}  // namespace assay::drain
