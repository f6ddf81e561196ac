// progress: the display of a run for people and programs.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "orchestrator/plan/forecast.h"
#include "orchestrator/plan/plan.h"
#include "orchestrator/run/board.h"
#include "probes/core/attempt_outcome.h"

namespace assay::run {

/// Outcomes of a step's cells.
struct StepWords {
  std::string text = {};  ///< a few words
  bool missed = false;    ///< a judged figure fails
  bool error = false;     ///< a figure could not be judged, because an attempt broke
  CellCounts cells = {};  ///< of the step, once its attempts are made; else of no step
};

/// Follows a run on stderr: a live line per node and an ETA on a terminal, plain lines otherwise; with `json`, one
/// event a line on stdout instead.
class Progress {
 public:
  enum class Mode { terminal, plain, json, quiet };

  /// json; else terminal or plain, by the kind of stderr.
  static Mode mode_for(bool json);

  Progress(const plan::Plan& plan, Mode mode);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// The state of a node's agent changed; `state` is a few words.
  void node(const std::string& node, const std::string& state);
  /// A step begins on its nodes.
  void step_begin(const plan::Step& step, int attempt);
  /// A step ended; `outcome` as in the journal, `reason` empty if it exited normally, `results` the outcomes of its
  /// cells.
  void step_end(const plan::Step& step, int attempt, AttemptOutcome outcome, const std::string& reason,
                const StepWords& results = {});
  /// From now on also writes the page `path`, every few seconds. An error when it cannot be written. With
  /// `more_follows` the page does not say that assay has ended when this does: another run continues to write it, or
  /// end_board ends it.
  std::optional<InputError> show_on(const std::string& path, bool more_follows = false);
  /// Content of the page now.
  [[nodiscard]] BoardView view();
  /// Whether people read it, so that words for results are worth their time.
  [[nodiscard]] bool is_for_people() const {
    return mode_ == Mode::terminal || mode_ == Mode::plain || !board_.empty();
  }
  /// `made` attempts of a step were found in the journal of a resumed run, and so many are left. `took_s`: how long
  /// each that went well took. `words`: the outcomes of its cells.
  void step_kept(const plan::Step& step, int made, int left, const std::vector<double>& took_s = {},
                 const StepWords& words = {});
  /// The step's attempts that are left will not start: one broke, a node was given up, or the deadline is too near.
  void step_dropped(const plan::Step& step);
  /// These steps are measured again.
  void second_stage(const std::vector<const plan::Step*>& steps);
  /// Searches may request at most `tests` more extra tests; each takes the time of the longest step. Usually they take
  /// far fewer, and both times are shown.
  void tests_left(std::size_t tests);
  /// Redraws the time on a terminal; called once a second.
  void tick();

 private:
  [[nodiscard]] double remaining_s();
  [[nodiscard]] bool is_planned(const plan::Step& step) const { return planned_.contains(step.id); }
  void add(const plan::Step& step, int attempts);
  void count(const plan::Step& step, const StepWords& words);
  [[nodiscard]] double most_s();
  [[nodiscard]] std::vector<std::pair<double, std::string_view>> busiest() const;
  void line(const std::string& text);
  void event(const char* kind, const nlohmann::ordered_json& body);
  void erase();
  void draw();
  /// How many nodes do what, and where something failed; the second in red where colours are wanted.
  [[nodiscard]] std::vector<std::string> fleet_lines(std::size_t width) const;
  void renew_board(bool at_once);
  static void note(std::vector<std::string>& lines, std::string line);
  void note_failure(const std::string& where, std::string said);

  static constexpr const char *kWaiting = "waiting", *kStarting = "starting the agent", *kReady = "ready";

  using Clock = std::chrono::steady_clock;
  struct NodeProgress {
    std::string state;
    Clock::time_point begin;  ///< of the step that runs
    double running_s = 0;     ///< typical time of the step that runs, 0 when none
    std::size_t done = 0, total = 0;
    std::size_t broken = 0, missed = 0;  ///< attempts that broke; steps with a failed figure
    Activity activity = Activity::waiting;
  };
  Mode mode_;
  std::map<std::string, NodeProgress> nodes_;
  /// By the ids of the plan's steps, their cells; a step of another id is an extra test of a search.
  std::map<std::string_view, CellCounts> planned_;
  CellCounts cells_;                  ///< of all of them
  std::size_t done_ = 0, total_ = 0;  ///< attempts of steps
  std::size_t tests_done_ = 0, tests_left_ = 0;
  double usual_share_ = 0;  ///< of the planned tests, that searches usually take
  double usual_tests_ = 0;  ///< of the searches that are due
  double longest_test_s_ = 0;
  plan::Forecast forecast_;
  Clock::time_point forecast_at_;  ///< when remaining_s_ was calculated
  double remaining_s_ = 0;
  int drawn_ = 0;
  std::string site_, profile_;
  std::string board_;           ///< path of the page; empty: none
  Clock::time_point board_at_;  ///< when it was written
  /// Failures with the same words: the last place and their number.
  struct Failure {
    std::string where, said;
    std::size_t times = 1;
  };
  std::vector<Failure> failures_;    ///< the latest first
  std::vector<std::string> recent_;  ///< likewise
  bool over_ = false;
  bool more_follows_ = false;
  Clock::time_point begin_ = Clock::now();
};

}  // namespace assay::run
