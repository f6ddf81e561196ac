// progress_board: the fleet in a few lines, and the content of a run's page.

#include <algorithm>

#include <unistd.h>

#include <fmt/format.h>

#include "orchestrator/files/terminal.h"
#include "orchestrator/run/progress.h"
#include "probes/core/how_many.h"
#include "probes/core/text.h"
#include "probes/core/utc_time.h"

namespace assay::run {

namespace {

constexpr std::size_t kMostLines = 40;

}  // namespace

void Progress::note(std::vector<std::string>& lines, std::string line) {
  lines.insert(lines.begin(), std::move(line));
  if (lines.size() > kMostLines) lines.resize(kMostLines);
}

/// Equal words are one line, however many steps end with them.
void Progress::note_failure(const std::string& where, std::string said) {
  Failure latest{.where = where, .said = std::move(said)};
  if (const auto known = std::ranges::find(failures_, latest.said, &Failure::said); known != failures_.end()) {
    latest.times += known->times;
    failures_.erase(known);
  }
  failures_.insert(failures_.begin(), std::move(latest));
  if (failures_.size() > kMostLines) failures_.resize(kMostLines);
}

std::vector<std::string> Progress::fleet_lines(std::size_t width) const {
  std::size_t running = 0, idle = 0, waiting = 0, lost = 0;
  std::string failed;
  std::size_t bad = 0;
  for (const auto& [name, node] : nodes_) {
    running += node.activity == Activity::running ? 1 : 0;
    idle += node.activity == Activity::idle ? 1 : 0;
    waiting += node.activity == Activity::waiting ? 1 : 0;
    lost += node.activity == Activity::lost ? 1 : 0;
    if (node.broken + node.missed == 0 && node.activity != Activity::lost) continue;
    constexpr std::size_t kNamed = 8;
    if (++bad <= kNamed) failed += fmt::format("{}{}", bad == 1 ? "" : ", ", name);
  }
  std::vector<std::string> lines = {fmt::format("  {}: {} at work, {} between steps, {} not started, {} lost",
                                                how_many(nodes_.size(), "node"), running, idle, waiting, lost)};
  if (bad == 0) return lines;
  const std::string text = harmless(without_controls(fmt::format("  failed on {}: {}", bad, failed), width));
  lines.push_back(files::terminal_of(STDERR_FILENO).colour ? "\x1b[31m" + text + "\x1b[0m" : text);
  return lines;
}

BoardView Progress::view() {
  BoardView view{.site = site_,
                 .profile = profile_,
                 .time = utc_text(std::chrono::system_clock::now()),
                 .elapsed_s = std::chrono::duration<double>(Clock::now() - begin_).count(),
                 .remaining_s = over_ ? 0 : remaining_s(),
                 .done = done_,
                 .total = total_,
                 .tests = tests_done_,
                 .cells = cells_,
                 .steps = planned_.size(),
                 .over = over_,
                 .recent = recent_};
  for (const auto& one : failures_)
    view.failures.push_back(one.times == 1 ? one.where + one.said
                                           : fmt::format("{} times, last {}{}", one.times, one.where, one.said));
  for (const auto& [name, node] : nodes_) {
    view.nodes.push_back(
        {.name = name,
         .state = node.state,
         .activity = node.activity,
         .done = node.done,
         .total = node.total,
         .broken = node.broken,
         .missed = node.missed,
         .ran_s = node.running_s > 0 ? std::chrono::duration<double>(Clock::now() - node.begin).count() : 0,
         .usual_s = node.running_s});
  }
  return view;
}

std::optional<InputError> Progress::show_on(const std::string& path, bool more_follows) {
  more_follows_ = more_follows;
  if (auto problem = write_board(path, board_html(view()))) return problem;
  board_ = path;
  board_at_ = Clock::now();
  return std::nullopt;
}

/// A page that cannot be written any more is given up: the run continues.
void Progress::renew_board(bool at_once) {
  if (board_.empty() || (!at_once && Clock::now() - board_at_ < std::chrono::seconds(kBoardPeriod_s))) return;
  board_at_ = Clock::now();
  if (const auto problem = write_board(board_, board_html(view()))) {
    board_.clear();
    line(problem->text());
  }
}

}  // namespace assay::run
