// journal_lines: the journal's lines as JSON, in both directions.
#include <cerrno>
#include <cmath>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "orchestrator/judge/evidence/journal.h"
#include "orchestrator/judge/evidence/journal_guard.h"
#include "orchestrator/plan/simulation.h"
#include "probes/core/utc_time.h"

namespace assay::judge {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

[[noreturn]] void fail(const std::string& what) { throw std::system_error(errno, std::generic_category(), what); }

ordered_json to_json(const std::vector<EvidenceFile>& files) {
  ordered_json list = ordered_json::array();
  for (const auto& file : files) list.push_back({{"path", file.path}, {"sha256", file.sha256}, {"bytes", file.bytes}});
  return list;
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
std::string JournalWriter::attempt_begin(const std::string& step, int number, const std::string& node) {
  std::string time = now();
  append(lines_.attempt_begin(time, step, number, node));
  return time;
}
std::string JournalWriter::test_begin(const Attempt& test) {
  std::string time = now();
  append(lines_.test_begin(time, test));
  return time;
}
void JournalWriter::second_stage_begin(const std::map<std::string, std::string>& steps) {
  append(lines_.second_stage_begin(now(), steps));
}
void JournalWriter::localise_begin() { append(lines_.localise_begin(now())); }
void JournalWriter::steps_left_out(const std::string& reason, const std::vector<std::string>& steps) {
  append(lines_.steps_left_out(now(), reason, steps));
}
std::string JournalWriter::attempt_end(const Attempt& attempt) {
  std::string time = now();
  append(lines_.attempt_end(time, attempt));
  return time;
}
std::string JournalWriter::watch_begin(int number, const std::string& probe) {
  std::string time = now();
  append(lines_.watch_begin(time, number, probe));
  return time;
}
std::string JournalWriter::watch_end(const Watch& watch) {
  std::string time = now();
  append(lines_.watch_end(time, watch));
  return time;
}
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
  return line(time, "attempt_end",
              {{"step", attempt.step},
               {"attempt", attempt.number},
               {"outcome", attempt.outcome},
               {"reason", attempt.reason},
               {"evidence", to_json(attempt.evidence)}});
}
std::string JournalLines::watch_begin(const std::string& time, int number, const std::string& probe) {
  return line(time, "watch_begin", {{"watch", number}, {"probe", probe}});
}
std::string JournalLines::watch_end(const std::string& time, const Watch& watch) {
  return line(time, "watch_end",
              {{"watch", watch.number},
               {"outcome", watch.outcome},
               {"reason", watch.reason},
               {"evidence", to_json(watch.evidence)}});
}
std::string JournalLines::run_interrupt(const std::string& time) {
  return line(time, "run_interrupt", ordered_json::object());
}
std::string JournalLines::run_end(const std::string& time) { return line(time, "run_end", ordered_json::object()); }

}  // namespace assay::judge
