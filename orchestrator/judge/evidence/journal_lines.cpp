// journal_lines: the journal's lines as JSON, in both directions.
#include <algorithm>
#include <cerrno>
#include <cmath>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <fmt/format.h>

#include "orchestrator/judge/evidence/journal.h"
#include "orchestrator/judge/evidence/journal_guard.h"
#include "orchestrator/plan/simulation.h"
#include "probes/core/utc_time.h"

namespace assay::judge {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

[[noreturn]] void fail(const std::string& what) { throw std::system_error(errno, std::generic_category(), what); }

/// `text` as JSON. Most have nothing to escape: a fleet's journal has millions of them.
std::string json_text(std::string_view text) {
  const bool plain =
      std::ranges::all_of(text, [](unsigned char c) { return c >= ' ' && c < 0x7f && c != '"' && c != '\\'; });
  return plain ? fmt::format("\"{}\"", text) : json(text).dump(-1, ' ', false, json::error_handler_t::replace);
}

/// The end of an attempt or a watch, whose outcome and files `one` has.
template <class Ended>
std::string end_of(const Ended& one) {
  std::string text =
      fmt::format(R"("outcome":{},"reason":{},"evidence":[)", json_text(word_of(one.outcome)), json_text(one.reason));
  for (const auto& file : one.evidence)
    text += fmt::format(R"({}{{"path":{},"sha256":{},"bytes":{}}})", &file == one.evidence.data() ? "" : ",",
                        json_text(file.path), json_text(file.sha256), file.bytes);
  return text + "]";
}

/// An object without its braces.
std::string members_of(const ordered_json& object) {
  const std::string text = object.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
  return text.substr(1, text.size() - 2);
}

}  // namespace

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
  written_.add(std::string_view(*text).substr(0, whole));
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
  written_.add(line);
}

std::string JournalWriter::now() {
  const auto wall = clocks_.wall();
  const auto steady = clocks_.steady();
  const double by_s = std::chrono::duration<double>(wall - std::exchange(wall_, wall)).count() -
                      std::chrono::duration<double>(steady - std::exchange(steady_, steady)).count();
  // A journal's first line is its beginning; there is nothing to compare it with.
  if (std::abs(by_s) > kMostDrift_s && !lines_.is_fresh()) {
    append(lines_.line(utc_text(wall), JournalEntry::clock_jump(by_s)));
    jumped_s_ += by_s;
  }
  return utc_text(wall);
}

std::string JournalWriter::write(const JournalEntry& entry) {
  std::string time = now();
  append(lines_.line(time, entry));
  return time;
}

std::string JournalLines::line(const std::string& time, const JournalEntry& entry) {
  const std::string schema = std::exchange(fresh_, false) ? fmt::format(R"("schema":"{}",)", kJournalSchema) : "";
  return fmt::format("{{{}\"time\":{},\"kind\":\"{}\"{}{}}}\n", schema, json_text(time), entry.kind,
                     entry.members.empty() ? "" : ",", entry.members);
}

JournalEntry JournalEntry::run_begin(const std::string& run_id, const std::string& plan_sha256, const std::string& by,
                                     bool simulated) {
  ordered_json body = {{"run_id", run_id}, {"plan_sha256", plan_sha256}};
  if (!by.empty()) body["by"] = by;
  if (simulated) body["kind_of_run"] = plan::kSimulated;
  return {"run_begin", members_of(body)};
}
JournalEntry JournalEntry::run_resume(const std::string& by) {
  return {"run_resume", by.empty() ? "" : members_of({{"by", by}})};
}
JournalEntry JournalEntry::node_up(const std::string& node, const json& facts) {
  return {"node_up", members_of({{"node", node}, {"facts", facts}})};
}
JournalEntry JournalEntry::node_down(const std::string& node, const std::string& reason) {
  return {"node_down", members_of({{"node", node}, {"reason", reason}})};
}
JournalEntry JournalEntry::attempt_begin(const std::string& step, int number, const std::string& node) {
  return {"attempt_begin",
          fmt::format(R"("step":{},"attempt":{},"node":{})", json_text(step), number, json_text(node))};
}
JournalEntry JournalEntry::question_begin(const std::string& step, int number, const std::string& node,
                                          const std::string& secret_sha256) {
  JournalEntry begin = attempt_begin(step, number, node);
  begin.members += fmt::format(R"(,"asked":{})", json_text(secret_sha256));
  return begin;
}
JournalEntry JournalEntry::test_begin(const Attempt& test) {
  return {"attempt_begin", members_of({{"step", test.step},
                                       {"attempt", test.number},
                                       {"node", test.node},
                                       {"nodes", test.nodes},
                                       {"purpose", test.purpose}})};
}
JournalEntry JournalEntry::second_stage_begin(const std::map<std::string, std::string>& steps) {
  return {"second_stage_begin", members_of({{"steps", steps}})};
}
JournalEntry JournalEntry::localise_begin() { return {"localise_begin", ""}; }
JournalEntry JournalEntry::steps_left_out(const std::string& reason, const std::vector<std::string>& steps) {
  return {"steps_left_out", members_of({{"reason", reason}, {"steps", steps}})};
}
JournalEntry JournalEntry::clock_jump(double by_s) { return {"clock_jump", members_of({{"by_s", by_s}})}; }
JournalEntry JournalEntry::attempt_end(const Attempt& attempt) {
  return {"attempt_end",
          fmt::format(R"("step":{},"attempt":{},{})", json_text(attempt.step), attempt.number, end_of(attempt))};
}
JournalEntry JournalEntry::watch_begin(int number, const std::string& probe) {
  return {"watch_begin", members_of({{"watch", number}, {"probe", probe}})};
}
JournalEntry JournalEntry::watch_end(const Watch& watch) {
  return {"watch_end", fmt::format(R"("watch":{},{})", watch.number, end_of(watch))};
}
JournalEntry JournalEntry::run_interrupt() { return {"run_interrupt", ""}; }
JournalEntry JournalEntry::run_end() { return {"run_end", ""}; }

}  // namespace assay::judge
