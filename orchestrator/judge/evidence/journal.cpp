// journal: appends one line for each event and calls fsync after it.
#include "orchestrator/judge/evidence/journal.h"

#include <set>

#include <fmt/format.h>

#include "orchestrator/judge/evidence/journal_guard.h"
#include "orchestrator/plan/simulation.h"
#include "probes/core/host_facts.h"

namespace assay::judge {
namespace {

using nlohmann::json;

// steps_left_out may name every step of a plan.
constexpr std::size_t kMostValuesOfLine = 2'000'000;

struct RefusedLine {
  std::string why;
};

[[noreturn]] void refuse(const std::string& why) { throw RefusedLine{why}; }

/// Reads line after line and refuses lines that a run cannot have written: only an attempt that this run began can end,
/// numbers of attempts follow each other, and nothing happens after the end but a resumption.
class Account {
 public:
  explicit Account(Journal& journal) : journal_(journal) {}

  /// Takes one line. Throws RefusedLine or json::exception on anything unexpected.
  void take(const json& line) {
    const std::string kind = line.at("kind");
    const std::string time = line.at("time");
    if (journal_.finished && kind != "run_resume") refuse("something happens after run_end");
    if (kind == "run_begin") {
      if (!journal_.run_id.empty()) refuse("a second run begins");
      journal_.run_id = line.at("run_id");
      journal_.plan_sha256 = line.at("plan_sha256");
      journal_.begin = time;
      journal_.by = line.value("by", "");
      if (const auto said = line.find("kind_of_run"); said != line.end()) {
        if (*said != plan::kSimulated) refuse("unknown kind_of_run " + said->dump());
        journal_.simulated = true;
      }
    } else if (kind == "run_resume") {
      ++journal_.resumed;
      journal_.finished = false;
      journal_.by = line.value("by", "");
      journal_.left_out.clear();
      journal_.interrupted = false;
      watched_.clear();
      open_.clear();
    } else if (kind == "node_up") {
      node_up(line, time);
    } else if (kind == "node_down") {
      journal_.node_events.push_back({.node = line.at("node"), .time = time, .reason = line.at("reason")});
    } else if (kind == "attempt_begin") {
      begin(line, time);
    } else if (kind == "attempt_end") {
      end(line, time);
    } else if (kind == "watch_begin") {
      watch_begin(line, time);
    } else if (kind == "watch_end") {
      watch_end(line, time);
    } else if (kind == "second_stage_begin") {
      second_stage(line);
    } else if (kind == "localise_begin") {
      if (journal_.localising || !open_.empty())
        refuse("a search begins while an attempt runs, or for the second time");
      journal_.localising = true;
    } else if (kind == "steps_left_out") {
      for (const std::string step : line.at("steps")) journal_.left_out[step] = line.at("reason");
    } else if (kind == "run_interrupt") {
      journal_.interrupted = true;
      each_open([](Attempt& one) { one.reason = "the run was interrupted by a signal, such as Ctrl-C, while it ran"; });
    } else if (kind == "clock_jump") {
      journal_.clock_jumps.push_back({.time = time, .by_s = line.at("by_s")});
      each_open([&](Attempt& one) { one.jumped_s += journal_.clock_jumps.back().by_s; });
    } else if (kind == "run_end") {
      if (!open_.empty() || !watched_.empty()) refuse("the run ends while an attempt runs or the meters are read");
      journal_.finished = true;
      journal_.end = time;
    } else {
      refuse("unknown kind '" + kind + "'");
    }
  }

 private:
  /// Changes the attempts that run.
  template <class Act>
  void each_open(const Act& act) {
    for (const auto& [step, index] : open_) journal_.attempts.change(index, act);
  }

  /// An agent's facts of its node. Another boot than before means that the machine went down in between.
  void node_up(const json& line, const std::string& time) {
    const std::string node = line.at("node");
    const json& said = line.at("facts");
    const auto values = values_from(said);
    if (!values) refuse(fmt::format("the facts of {} are not an object of scalars", node));
    if (const auto problem = problem_of_facts(*values)) refuse(fmt::format("the facts of {}: {}", node, *problem));
    const auto before = journal_.node_facts.find(node);
    const auto boot_of = [](const json& facts) { return facts.value("boot_id", ""); };
    if (before != journal_.node_facts.end()) {
      const std::string old = boot_of(before->second);
      const std::string fresh = boot_of(said);
      if (!old.empty() && !fresh.empty() && old != fresh) {
        journal_.node_events.push_back(
            {.node = node,
             .time = time,
             .reason = fmt::format("it was rebooted in between: boot \"{}\" before, \"{}\" now", old, fresh)});
      }
    }
    journal_.node_facts[node] = said;
  }

  void second_stage(const json& line) {
    if (journal_.second_stage || journal_.localising || !open_.empty())
      refuse("a second stage begins while an attempt runs, after the searches did, or for the second time");
    journal_.second_stage = true;
    journal_.more_attempts = line.at("steps").get<std::map<std::string, std::string>>();
  }

  void begin(const json& line, const std::string& time) {
    const std::string step = line.at("step");
    const int number = Whole(line.at("attempt"));
    if (open_.contains(step)) refuse("an attempt of " + step + " begins while another runs");
    if (number != ++attempts_[step])
      refuse(fmt::format("attempt {} of {} begins where {} is due", number, step, attempts_[step]));
    open_[step] = journal_.attempts.size();
    Attempt attempt{.step = step,
                    .number = number,
                    .node = line.at("node"),
                    .outcome = AttemptOutcome::interrupted,
                    .reason = "assay was killed while it ran",
                    .begin = time};
    if (const auto asked = line.find("asked"); asked != line.end()) {
      const std::string secret_sha256 = *asked;
      if (!secret_sha256.empty() && !files::is_sha256(secret_sha256)) refuse("'asked' of " + step + " is no SHA-256");
      attempt.asked = ":" + secret_sha256;  // read_journal puts the digest of the lines so far before it
    }
    if (line.contains("purpose")) {
      attempt.nodes = line.at("nodes");
      attempt.purpose = line.at("purpose");
      if (attempt.nodes.size() < 2 || attempt.nodes.front() != attempt.node || attempt.purpose.empty())
        refuse("a test of " + step + " has no nodes or no purpose");
    }
    attempt.second_stage = journal_.second_stage && !attempt.is_extra();
    if (attempt.second_stage && !journal_.more_attempts.contains(step))
      refuse("an attempt of " + step + " begins in a second stage that it has no part in");
    if (attempt.is_extra() != journal_.localising) {
      refuse(attempt.is_extra() ? "a test of a search begins before the searches do"
                                : "a step begins after the searches did");
    }
    journal_.attempts.push_back(attempt);
  }

  void end(const json& line, const std::string& time) {
    const auto running = open_.find(line.at("step").get<std::string>());
    if (running == open_.end() || journal_.attempts[running->second].number != line.at("attempt"))
      refuse("an attempt ends that never began");
    journal_.attempts.change(running->second, [&](Attempt& attempt) {
      attempt.outcome = line.at("outcome");
      if (attempt.outcome == AttemptOutcome::interrupted)
        refuse("an attempt ends as interrupted, which is never written");
      attempt.reason = line.at("reason");
      attempt.end = time;
      attempt.evidence = files_of(line);
    });
    open_.erase(running);
  }

  void watch_begin(const json& line, const std::string& time) {
    const int number = Whole(line.at("watch"));
    const std::string probe = line.at("probe");
    if (watched_.contains(probe)) refuse("the meters begin to be read while they are");
    if (number != static_cast<int>(journal_.watches.size()) + 1)
      refuse(fmt::format("watch {} begins where {} is due", number, journal_.watches.size() + 1));
    watched_[probe] = journal_.watches.size();
    journal_.watches.push_back({.number = number,
                                .probe = probe,
                                .outcome = AttemptOutcome::interrupted,
                                .reason = "assay was killed while the meters were read",
                                .begin = time});
  }

  void watch_end(const json& line, const std::string& time) {
    const auto open = std::ranges::find_if(
        watched_, [&](const auto& one) { return journal_.watches[one.second].number == line.at("watch"); });
    if (open == watched_.end()) refuse("a watch ends that never began");
    Watch& watch = journal_.watches[open->second];
    watch.outcome = line.at("outcome");
    if (watch.outcome == AttemptOutcome::interrupted) refuse("a watch ends as interrupted, which is never written");
    watch.reason = line.at("reason");
    watch.end = time;
    watch.evidence = files_of(line);
    watched_.erase(open);
  }

  /// The files of `line`, none of which was journalled before.
  std::vector<EvidenceFile> files_of(const json& line) {
    std::vector<EvidenceFile> files;
    for (const auto& file : line.at("evidence")) {
      files.push_back({.path = file.at("path"), .sha256 = file.at("sha256"), .bytes = Whole(file.at("bytes"))});
      if (!paths_.insert(files.back().path).second) refuse(files.back().path + " is journalled twice");
    }
    return files;
  }

  Journal& journal_;
  std::map<std::string, std::size_t> open_;  ///< step to the index of its running attempt
  std::map<std::string, int> attempts_;      ///< step to how many began
  std::set<std::string> paths_;
  std::map<std::string, std::size_t> watched_;  ///< probe to the index of its running watch
};

}  // namespace

std::expected<Journal, InputError> read_journal(std::string_view text, const std::string& where) {
  Journal journal;
  JournalGuard guard(journal);
  Account account(journal);
  files::Sha256 lines;
  std::string_view not_added = text;
  constexpr const char* kHint = "the journal is append-only; restore it from the dossier's evidence if there is one";
  for (std::size_t number = 1; !text.empty(); ++number) {
    const auto length = text.find('\n');
    if (length == std::string_view::npos) {
      journal.torn = true;
      break;
    }
    const std::string here = fmt::format("{}: line {}", where, number);
    const auto line = parse_json(text.substr(0, length), here, {.max_values = kMostValuesOfLine});
    if (!line) return std::unexpected(line.error());
    try {
      if (number == 1 && (line->at("schema") != kJournalSchema || line->at("kind") != "run_begin")) {
        return std::unexpected(InputError{here, "is not the beginning of an assay.journal/1", kHint});
      }
      if (auto problem = guard.problem_of(*line)) return std::unexpected(InputError{here, *problem, kHint});
      account.take(*line);
      if (line->contains("asked")) {
        const auto whole = static_cast<std::size_t>(text.data() - not_added.data()) + length + 1;
        lines.add(not_added.substr(0, whole));
        not_added.remove_prefix(whole);
        journal.attempts.change_last([&](Attempt& attempt) { attempt.asked.insert(0, lines.so_far()); });
      }
    } catch (const json::exception& error) {
      return std::unexpected(InputError{here, error.what(), kHint});
    } catch (const RefusedLine& refused) {
      return std::unexpected(InputError{here, refused.why, kHint});
    }
    text.remove_prefix(length + 1);
  }
  if (journal.run_id.empty()) return std::unexpected(InputError{where, "has no whole line", kHint});
  return journal;
}

}  // namespace assay::judge
