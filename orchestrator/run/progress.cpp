// progress: the same events as a live display, as plain lines or as JSON lines.
#include "orchestrator/run/progress.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iostream>

#include <unistd.h>

#include <fmt/format.h>

#include "orchestrator/files/terminal.h"
#include "orchestrator/plan/search_budget.h"
#include "probes/core/how_many.h"
#include "probes/core/text.h"
#include "probes/core/utc_time.h"

namespace assay::run {
namespace {

constexpr int kShownNodes = 16;  // more lines than that do not fit above a shell prompt
constexpr double kForecastAge_s = 1;
constexpr std::size_t kWidth = 100;  // longer lines would wrap and spoil the redrawing

}  // namespace

Progress::Mode Progress::mode_for(bool json) {
  if (json) return Mode::json;
  const char* const kind = std::getenv("TERM");
  const bool can_redraw = kind != nullptr && std::string_view(kind) != "dumb";
  return can_redraw && ::isatty(STDERR_FILENO) == 1 ? Mode::terminal : Mode::plain;
}

Progress::Progress(const plan::Plan& plan, Mode mode) : mode_(mode), forecast_(plan) {
  site_ = plan.site.name;
  profile_ = plan.profile.title;
  for (const auto& node : plan.site.nodes) nodes_[node.name].state = kWaiting;
  for (const auto& step : plan.steps) {
    planned_.try_emplace(step.id);
    add(step, step.attempts);
  }
  double usual = 0, most = 0;
  for (const auto& search : plan.searches) {
    if (search.budget.most == 0) continue;
    const plan::Step* step = plan.step(search.step);
    longest_test_s_ = std::max(longest_test_s_, forecast_.typical_s(*step));
    usual += static_cast<double>(plan::usual_tests(step->nodes.size()));
    most += static_cast<double>(search.budget.most);
  }
  usual_share_ = most > 0 ? usual / most : 0;
}

Progress::~Progress() {
  erase();
  over_ = !more_follows_;
  renew_board(true);
}

/// The step has `attempts` more to make.
void Progress::add(const plan::Step& step, int attempts) {
  total_ += static_cast<std::size_t>(attempts);
  for (const auto& node : step.nodes) nodes_[node].total += static_cast<std::size_t>(attempts);
}

/// Its cells count once, however often the step is judged: a second stage replaces the counts of the first.
void Progress::count(const plan::Step& step, const StepWords& words) {
  const auto known = planned_.find(step.id);
  if (known == planned_.end() || words.cells.steps == 0) return;
  cells_.remove(known->second);
  known->second = words.cells;
  cells_.add(words.cells);
}

/// Calculated once a second: a forecast of 300,000 steps takes as long as some of the steps.
double Progress::remaining_s() {
  const auto now = Clock::now();
  const double since_s = std::chrono::duration<double>(now - forecast_at_).count();
  if (forecast_at_ != Clock::time_point{} && since_s < kForecastAge_s) return std::max(0.0, remaining_s_ - since_s);
  remaining_s_ = forecast_.remaining_s(std::chrono::duration<double>(now - begin_).count());
  forecast_at_ = Clock::now();
  return remaining_s_;
}

void Progress::event(const char* kind, const nlohmann::ordered_json& body) {
  if (mode_ != Mode::json) return;
  nlohmann::ordered_json object = {{"time", utc_text(std::chrono::system_clock::now())}, {"event", kind}};
  object.update(body);
  object["done"] = done_;
  object["total"] = total_;
  object["remaining_s"] = remaining_s();
  std::cout << object.dump(-1, ' ', true, nlohmann::ordered_json::error_handler_t::replace) << std::endl;
}

void Progress::line(const std::string& text) {
  if (mode_ != Mode::terminal && mode_ != Mode::plain) return;
  erase();
  std::cerr << harmless(text) << '\n' << std::flush;
  draw();
}

void Progress::node(const std::string& name, const std::string& state) {
  // A message of all nodes is no state of one.
  if (const auto found = nodes_.find(name); found != nodes_.end()) {
    found->second.state = state;
    found->second.activity = state == kReady ? Activity::idle : state == kStarting ? Activity::waiting : Activity::lost;
    if (found->second.activity == Activity::lost) note_failure(name, ": " + state);
  } else {
    note_failure(name, ": " + state);
  }
  event("node", {{"node", name}, {"state", state}});
  if (mode_ == Mode::plain) line(fmt::format("[{:>3}/{}] {}: {}", done_, total_, name, state));
  tick();
}

void Progress::step_begin(const plan::Step& step, int attempt) {
  for (const auto& node : step.nodes) {
    NodeProgress& node_progress = nodes_[node];
    node_progress.state = step.probe;
    node_progress.activity = Activity::running;
    node_progress.begin = Clock::now();
    node_progress.running_s = forecast_.typical_s(step);
  }
  forecast_.begin(step, std::chrono::duration<double>(Clock::now() - begin_).count());
  event("step_begin", {{"step", step.id}, {"attempt", attempt}});
  if (mode_ == Mode::plain)  // what was computed some seconds ago may not know of this step
    line(fmt::format("[{:>3}/{}] {} begins, {} left", done_, total_, step.id,
                     clock_text(std::max(remaining_s(), forecast_.typical_s(step)))));
  tick();
}

void Progress::step_end(const plan::Step& step, int attempt, AttemptOutcome outcome, const std::string& reason,
                        const StepWords& results) {
  const double took = std::chrono::duration<double>(Clock::now() - nodes_[step.nodes.front()].begin).count();
  const bool planned = is_planned(step);
  count(step, results);
  const bool broken = outcome != AttemptOutcome::exited || results.error;
  for (const auto& node : step.nodes) {
    NodeProgress& node_progress = nodes_[node];
    node_progress.running_s = 0;
    node_progress.state = "between steps";
    node_progress.activity = Activity::idle;
    node_progress.broken += broken ? 1 : 0;
    node_progress.missed += results.missed ? 1 : 0;
    if (planned) ++node_progress.done;
  }
  forecast_.end(step.id);
  if (!broken) forecast_.took(step, took);
  ++(planned ? done_ : tests_done_);
  event("step_end",
        {{"step", step.id}, {"attempt", attempt}, {"outcome", outcome}, {"reason", reason}, {"took_s", took}});
  const std::string_view ended = outcome != AttemptOutcome::exited ? word_of(outcome) : broken ? "error" : "done";
  const std::string& said = reason.empty() ? results.text : reason;
  const std::string words = fmt::format(" {}{}{}", ended, said.empty() ? "" : ": ", said);
  note(recent_, step.id + words);
  if (broken || results.missed) note_failure(step.id, words);
  line(fmt::format("[{:>3}/{}] {}{} {} after {:.1f} s{}{}", done_, total_, step.id,
                   attempt > 1 ? fmt::format(" (attempt {})", attempt) : "", ended, took, said.empty() ? "" : ": ",
                   said));
}

void Progress::step_kept(const plan::Step& step, int made, int left, const std::vector<double>& took_s,
                         const StepWords& words) {
  count(step, words);
  for (const auto& node : step.nodes) nodes_[node].missed += words.missed ? 1 : 0;
  for (const auto& node : step.nodes) nodes_[node].done += static_cast<std::size_t>(made);
  done_ += static_cast<std::size_t>(made);
  forecast_.set_left(step.id, left);
  for (const double seconds : took_s) forecast_.took(step, seconds);
  event("step_kept", {{"step", step.id}, {"attempts", made}, {"left", left}});
}

void Progress::second_stage(const std::vector<const plan::Step*>& steps) {
  for (const plan::Step* step : steps) add(*step, step->more_attempts);
  forecast_.add_second_stage(steps);
  forecast_at_ = {};
  event("second_stage", {{"steps", steps.size()}});
  line(fmt::format("[{:>3}/{}] measured again, for a required cell that does not pass: {}", done_, total_,
                   how_many(steps.size(), "step")));
}

void Progress::step_dropped(const plan::Step& step) {
  forecast_.set_left(step.id, 0);
  event("step_dropped", {{"step", step.id}});
}

void Progress::tests_left(std::size_t tests) {
  usual_tests_ = std::max(usual_tests_, usual_share_ * static_cast<double>(tests + tests_done_));
  tests_left_ = tests;
  const double usual = std::max(tests > 0 ? 1.0 : 0.0, usual_tests_ - static_cast<double>(tests_done_));
  forecast_.tests_left(std::min(tests, static_cast<std::size_t>(std::ceil(usual))), longest_test_s_);
  forecast_at_ = {};
  event("localise", {{"tests_done", tests_done_}, {"tests_left_at_most", tests}});
}

void Progress::tick() {
  renew_board(false);
  if (mode_ != Mode::terminal) return;
  erase();
  draw();
}

/// The nodes to be shown: those that run a step, the latest against its usual time first, then those that have most to
/// do.
std::vector<std::pair<double, std::string_view>> Progress::busiest() const {
  constexpr double kIdle = 1e9;  // behind every node that runs
  std::vector<std::pair<double, std::string_view>> order;
  const auto now = Clock::now();
  for (const auto& [name, node] : nodes_) {
    const double ran = std::chrono::duration<double>(now - node.begin).count();
    order.emplace_back(node.running_s > 0 ? -ran / node.running_s
                                          : kIdle - static_cast<double>(node.total - std::min(node.total, node.done)),
                       name);
  }
  const auto shown = static_cast<std::ptrdiff_t>(std::min<std::size_t>(order.size(), kShownNodes));
  std::ranges::partial_sort(order, order.begin() + shown);
  order.resize(static_cast<std::size_t>(shown));
  return order;
}

double Progress::most_s() {
  const double usual = std::max(0.0, std::ceil(usual_tests_ - static_cast<double>(tests_done_)));
  return remaining_s() + std::max(0.0, static_cast<double>(tests_left_) - usual) * longest_test_s_;
}

void Progress::erase() {
  if (drawn_ > 0) std::cerr << "\x1b[" << drawn_ << "A\x1b[J" << std::flush;
  drawn_ = 0;
}

void Progress::draw() {
  if (mode_ != Mode::terminal) return;
  std::string block;
  const std::size_t columns = files::terminal_of(STDERR_FILENO).width;
  const std::size_t width = columns > 1 ? std::min(kWidth, columns - 1) : kWidth;
  for (const auto& [late, name] : busiest()) {
    const NodeProgress& node = nodes_.at(std::string(name));
    const double ran = node.running_s > 0 ? std::chrono::duration<double>(Clock::now() - node.begin).count() : 0;
    std::string text = fmt::format("  {:<20} {:>3}/{:<3} {}", name, node.done, node.total, node.state);
    if (node.running_s > 0) text += fmt::format("  {} of about {}", clock_text(ran), clock_text(node.running_s));
    if (node.broken + node.missed > 0) text += fmt::format("  {} failed", node.broken + node.missed);
    block += harmless(without_controls(text, width)) + "\n";
    ++drawn_;
  }
  if (static_cast<int>(nodes_.size()) > drawn_) {
    block += fmt::format("  … and {} more nodes\n", nodes_.size() - static_cast<std::size_t>(drawn_));
    ++drawn_;
  }
  for (const auto& line : fleet_lines(width)) {
    block += line + "\n";
    ++drawn_;
  }
  if (cells_.steps > 0) {
    block += fmt::format("  {}\n", cells_.text(planned_.size()));
    ++drawn_;
  }
  const double elapsed = std::chrono::duration<double>(Clock::now() - begin_).count();
  const std::string tests = tests_done_ + tests_left_ == 0 ? "" : fmt::format(" and {} tests of searches", tests_done_);
  std::string left = fmt::format("about {} left", clock_text(remaining_s()));
  if (tests_left_ > 0) left += fmt::format(" (at most {})", clock_text(most_s()));
  block += fmt::format("  {} of {} attempts{}, {} elapsed, {}\n", done_, total_, tests, clock_text(elapsed), left);
  ++drawn_;
  std::cerr << block << std::flush;
}

}  // namespace assay::run
