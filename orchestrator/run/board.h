// board: a page on which a browser follows a run: running steps, failures, time left.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "probes/core/error.h"
#include "probes/core/words.h"

namespace assay::run {

/// Seconds between two writes of the page, and between two looks of the browser at it.
inline constexpr int kBoardPeriod_s = 3;

/// State of a node.
enum class Activity { waiting, running, idle, lost };
constexpr auto words_of(Activity) { return names_as_words<Activity>(); }

/// One node of the page.
struct BoardNode {
  std::string name, state;
  Activity activity = Activity::waiting;
  std::size_t done = 0, total = 0;     ///< attempts
  std::size_t broken = 0, missed = 0;  ///< attempts that broke; figures that failed
  double ran_s = 0, usual_s = 0;       ///< of the step that runs
};

/// Required cells of steps that have had the attempts of their stage, each judged without the other steps: limits
/// relative to others are open, and the scatter of the whole run is not known yet. The verdict decides.
struct CellCounts {
  std::size_t steps = 0;  ///< that they are of
  std::size_t passed = 0, failed = 0, open = 0;

  void add(const CellCounts& other);
  void remove(const CellCounts& other);
  /// "40 of 60 steps judged: 120 required cells pass, 2 fail, 1 open".
  [[nodiscard]] std::string text(std::size_t all_steps) const;
};

/// Everything that the page shows.
struct BoardView {
  std::string site, profile;
  std::string time;  ///< UTC, of this view
  double elapsed_s = 0, remaining_s = 0;
  std::size_t done = 0, total = 0, tests = 0;
  CellCounts cells = {};
  std::size_t steps = 0;  ///< of the plan
  bool over = false;      ///< nothing follows any more
  std::vector<BoardNode> nodes;
  std::vector<std::string> failures, recent;  ///< the latest first
};

/// The page: it loads nothing, has no script, and asks the browser to read it again until the run is over.
std::string board_html(const BoardView& view);

/// Replaces the file in one step, without waiting for the disk: the storage may be under test.
std::optional<InputError> write_board(const std::string& path, const std::string& html);

/// Writes `view` as the last state of the page; a page that cannot be written any more is left as it is.
void end_board(const std::string& path, BoardView view);

/// "1:02:03" or "4:05".
std::string clock_text(double seconds);

}  // namespace assay::run
