// journal: one fsynced line for each thing that happened.
#include "orchestrator/judge/journal.h"

#include <cmath>
#include <map>
#include <set>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "orchestrator/judge/journal_guard.h"
#include "orchestrator/plan/simulation.h"
#include "probes/core/host_facts.h"
#include "probes/core/utc_time.h"

namespace assay::judge {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

// steps_left_out may name every step of a plan.
constexpr std::size_t kMostValuesOfLine = 2'000'000;

constexpr const char* kJournalSchema = "assay.journal/1";

[[noreturn]] void fail(const std::string& what) { throw std::system_error(errno, std::generic_category(), what); }

[[noreturn]] void refuse(const std::string& what) { throw json::other_error::create(501, what, nullptr); }

/// Reads line after line and refuses what a run cannot have written: only an attempt that this run began can end,
/// numbers of attempts follow each other, and nothing happens after the end but a resumption.
class Account {
 public:
  explicit Account(Journal& journal) : journal_(journal) {}

  /// Takes one line. Throws json::exception on anything unexpected.
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
      open_.clear();
    } else if (kind == "node_up") {
      node_up(line, time);
    } else if (kind == "node_down") {
      journal_.node_events.push_back({.node = line.at("node"), .time = time, .reason = line.at("reason")});
    } else if (kind == "attempt_begin") {
      begin(line, time);
    } else if (kind == "attempt_end") {
      end(line, time);
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
      for (const auto& [step, index] : open_)
        journal_.attempts[index].reason = "the run was interrupted by a signal, such as Ctrl-C, while it ran";
    } else if (kind == "clock_jump") {
      journal_.clock_jumps.push_back({.time = time, .by_s = line.at("by_s")});
    } else if (kind == "run_end") {
      if (!open_.empty()) refuse("the run ends while an attempt runs");
      journal_.finished = true;
      journal_.end = time;
    } else {
      refuse("unknown kind '" + kind + "'");
    }
  }

 private:
  /// What an agent says of its node. Another boot than before means that the machine went down in between.
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
    journal_.attempts.push_back({.step = step,
                                 .number = number,
                                 .node = line.at("node"),
                                 .outcome = AttemptOutcome::interrupted,
                                 .reason = "assay was killed while it ran",
                                 .begin = time,
                                 .end = "",
                                 .evidence = {}});
    Attempt& attempt = journal_.attempts.back();
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
  }

  void end(const json& line, const std::string& time) {
    const auto running = open_.find(line.at("step").get<std::string>());
    if (running == open_.end() || journal_.attempts[running->second].number != line.at("attempt"))
      refuse("an attempt ends that never began");
    Attempt& attempt = journal_.attempts[running->second];
    attempt.outcome = line.at("outcome");
    if (attempt.outcome == AttemptOutcome::interrupted)
      refuse("an attempt ends as interrupted, which is never written");
    attempt.reason = line.at("reason");
    attempt.end = time;
    for (const auto& file : line.at("evidence")) {
      attempt.evidence.push_back(
          {.path = file.at("path"), .sha256 = file.at("sha256"), .bytes = Whole(file.at("bytes"))});
      if (!paths_.insert(attempt.evidence.back().path).second)
        refuse(attempt.evidence.back().path + " is journalled twice");
    }
    open_.erase(running);
  }

  Journal& journal_;
  std::map<std::string, std::size_t> open_;  ///< step to the index of its running attempt
  std::map<std::string, int> attempts_;      ///< step to how many began
  std::set<std::string> paths_;
};

}  // namespace

std::vector<const Attempt*> Journal::of(std::string_view step) const {
  std::vector<const Attempt*> found;
  for (const auto& attempt : attempts) {
    if (attempt.step == step) found.push_back(&attempt);
  }
  return found;
}

std::expected<Journal, InputError> read_journal(std::string_view text, const std::string& where) {
  Journal journal;
  JournalGuard guard(journal);
  Account account(journal);
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
    } catch (const json::exception& error) {
      return std::unexpected(InputError{here, error.what(), kHint});
    }
    text.remove_prefix(length + 1);
  }
  if (journal.run_id.empty()) return std::unexpected(InputError{where, "has no whole line", kHint});
  return journal;
}

JournalWriter::JournalWriter(const std::string& path, Clocks clocks)
    : clocks_(clocks), wall_(clocks.wall()), steady_(clocks.steady()) {
  file_ = Descriptor(::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!file_) fail(path);
  const auto text = read_file(path);
  if (::flock(file_.number(), LOCK_EX | LOCK_NB) != 0) {
    const int problem = errno;
    if (problem != EWOULDBLOCK) throw std::system_error(problem, std::generic_category(), path);
    const auto journal = text ? read_journal(*text, path) : std::unexpected(InputError{});
    throw JournalInUse(journal && !journal->by.empty() ? journal->by : "another process");
  }
  if (!text) throw std::system_error(EIO, std::generic_category(), text.error().text());
  // A line without its end was never fsynced, so nothing was done because of it: it goes.
  const auto last = text->rfind('\n');
  const auto whole = last == std::string::npos ? 0 : last + 1;
  lines_ = JournalLines(whole == 0);
  if (whole != text->size() && ::ftruncate(file_.number(), static_cast<off_t>(whole)) != 0) fail(path);
}

void JournalWriter::append(const std::string& line) {
  for (std::size_t done = 0; done < line.size();) {
    const ssize_t written = ::write(file_.number(), line.data() + done, line.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail("journal");
    done += static_cast<std::size_t>(written);
  }
  if (::fsync(file_.number()) != 0) fail("journal");
}

std::string JournalWriter::now() {
  const auto wall = clocks_.wall();
  const auto steady = clocks_.steady();
  const double by_s = std::chrono::duration<double>(wall - std::exchange(wall_, wall)).count() -
                      std::chrono::duration<double>(steady - std::exchange(steady_, steady)).count();
  // A journal's first line is its beginning; there is nothing to compare it with.
  if (std::abs(by_s) > kMostDrift_s && !lines_.is_fresh()) append(lines_.clock_jump(utc_text(wall), by_s));
  return utc_text(wall);
}

void JournalWriter::run_begin(const std::string& run_id, const std::string& plan_sha256, const std::string& by) {
  append(lines_.run_begin(now(), run_id, plan_sha256, false, by));
}
void JournalWriter::run_resume(const std::string& by) { append(lines_.run_resume(now(), by)); }
void JournalWriter::node_up(const std::string& node, const json& facts) { append(lines_.node_up(now(), node, facts)); }
void JournalWriter::node_down(const std::string& node, const std::string& reason) {
  append(lines_.node_down(now(), node, reason));
}
void JournalWriter::attempt_begin(const std::string& step, int number, const std::string& node) {
  append(lines_.attempt_begin(now(), step, number, node));
}
void JournalWriter::test_begin(const Attempt& test) { append(lines_.test_begin(now(), test)); }
void JournalWriter::second_stage_begin(const std::map<std::string, std::string>& steps) {
  append(lines_.second_stage_begin(now(), steps));
}
void JournalWriter::localise_begin() { append(lines_.localise_begin(now())); }
void JournalWriter::steps_left_out(const std::string& reason, const std::vector<std::string>& steps) {
  append(lines_.steps_left_out(now(), reason, steps));
}
void JournalWriter::attempt_end(const Attempt& attempt) { append(lines_.attempt_end(now(), attempt)); }
void JournalWriter::run_interrupt() { append(lines_.run_interrupt(now())); }
void JournalWriter::run_end() { append(lines_.run_end(now())); }

std::string JournalLines::line(const std::string& time, const char* kind, const ordered_json& body) {
  ordered_json line;
  if (std::exchange(fresh_, false)) line["schema"] = kJournalSchema;
  line["time"] = time;
  line["kind"] = kind;
  line.update(body);
  return line.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

std::string JournalLines::run_begin(const std::string& time, const std::string& run_id, const std::string& plan_sha256,
                                    bool simulated, const std::string& by) {
  ordered_json body = {{"run_id", run_id}, {"plan_sha256", plan_sha256}};
  if (!by.empty()) body["by"] = by;
  if (simulated) body["kind_of_run"] = plan::kSimulated;
  return line(time, "run_begin", body);
}
std::string JournalLines::run_resume(const std::string& time, const std::string& by) {
  return line(time, "run_resume", by.empty() ? ordered_json::object() : ordered_json{{"by", by}});
}
std::string JournalLines::node_up(const std::string& time, const std::string& node, const json& facts) {
  return line(time, "node_up", {{"node", node}, {"facts", facts}});
}
std::string JournalLines::node_down(const std::string& time, const std::string& node, const std::string& reason) {
  return line(time, "node_down", {{"node", node}, {"reason", reason}});
}
std::string JournalLines::attempt_begin(const std::string& time, const std::string& step, int number,
                                        const std::string& node) {
  return line(time, "attempt_begin", {{"step", step}, {"attempt", number}, {"node", node}});
}
std::string JournalLines::test_begin(const std::string& time, const Attempt& test) {
  return line(time, "attempt_begin",
              {{"step", test.step},
               {"attempt", test.number},
               {"node", test.node},
               {"nodes", test.nodes},
               {"purpose", test.purpose}});
}
std::string JournalLines::second_stage_begin(const std::string& time, const std::map<std::string, std::string>& steps) {
  return line(time, "second_stage_begin", {{"steps", steps}});
}
std::string JournalLines::localise_begin(const std::string& time) {
  return line(time, "localise_begin", ordered_json::object());
}
std::string JournalLines::steps_left_out(const std::string& time, const std::string& reason,
                                         const std::vector<std::string>& steps) {
  return line(time, "steps_left_out", {{"reason", reason}, {"steps", steps}});
}
std::string JournalLines::clock_jump(const std::string& time, double by_s) {
  return line(time, "clock_jump", {{"by_s", by_s}});
}
std::string JournalLines::attempt_end(const std::string& time, const Attempt& attempt) {
  ordered_json files = ordered_json::array();
  for (const auto& file : attempt.evidence)
    files.push_back({{"path", file.path}, {"sha256", file.sha256}, {"bytes", file.bytes}});
  return line(time, "attempt_end",
              {{"step", attempt.step},
               {"attempt", attempt.number},
               {"outcome", attempt.outcome},
               {"reason", attempt.reason},
               {"evidence", std::move(files)}});
}
std::string JournalLines::run_interrupt(const std::string& time) {
  return line(time, "run_interrupt", ordered_json::object());
}
std::string JournalLines::run_end(const std::string& time) { return line(time, "run_end", ordered_json::object()); }

}  // namespace assay::judge
