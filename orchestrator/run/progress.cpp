// progress: the same events as a live display, as plain lines or as JSON lines.
#include "orchestrator/run/progress.h"

#include <algorithm>
#include <cmath>
#include <iostream>

#include <unistd.h>

#include <fmt/format.h>

#include "probes/core/text.h"
#include "probes/core/utc_time.h"

namespace assay::run {
namespace {

constexpr int kShownNodes = 16;  // more lines than that do not fit beside a shell prompt
constexpr double kForecastAge_s = 1;
constexpr std::size_t kWidth = 100;  // longer lines would wrap and spoil the redrawing

std::string clock_text(double seconds) {
  const auto whole = static_cast<int>(std::lround(std::max(0.0, seconds)));
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

/// Replaces control characters, which text from a node may contain and a terminal would execute.
std::string printable(std::string text) {
  std::ranges::replace_if(
      text, [](unsigned char c) { return c < 0x20 || c == 0x7f; }, ' ');
  return text;
}

}  // namespace

Progress::Mode Progress::mode_for(bool json) {
  if (json) return Mode::json;
  return ::isatty(STDERR_FILENO) == 1 ? Mode::terminal : Mode::plain;
}

Progress::Progress(const plan::Plan& plan, Mode mode) : mode_(mode), total_(plan.steps.size()), forecast_(plan) {
  for (const auto& node : plan.site.nodes) nodes_[node.name].state = "waiting";
  for (const auto& step : plan.steps) {
    planned_.insert(step.id);
    for (const auto& node : step.nodes) ++nodes_[node].total;
  }
  for (const auto& search : plan.searches) {
    if (const plan::Step* step = plan.step(search.step); search.budget > 0)
      longest_test_s_ = std::max(longest_test_s_, step->typical_s);
  }
}

Progress::~Progress() { erase(); }

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
  std::cout << object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << std::endl;
}

void Progress::line(const std::string& text) {
  if (mode_ != Mode::terminal && mode_ != Mode::plain) return;
  erase();
  std::cerr << printable(text) << '\n' << std::flush;
  draw();
}

void Progress::node(const std::string& name, const std::string& state) {
  nodes_[name].state = state;
  event("node", {{"node", name}, {"state", state}});
  if (mode_ == Mode::plain) line(fmt::format("[{:>3}/{}] {}: {}", done_, total_, name, state));
  tick();
}

void Progress::step_begin(const plan::Step& step, int attempt) {
  for (const auto& node : step.nodes) {
    NodeProgress& node_progress = nodes_[node];
    node_progress.state = step.probe;
    node_progress.begin = Clock::now();
    node_progress.running_s = step.typical_s;
  }
  forecast_.begin(step, std::chrono::duration<double>(Clock::now() - begin_).count());
  event("step_begin", {{"step", step.id}, {"attempt", attempt}});
  if (mode_ == Mode::plain)
    line(fmt::format("[{:>3}/{}] {} begins, {} left", done_, total_, step.id, clock_text(remaining_s())));
  tick();
}

void Progress::step_end(const plan::Step& step, int attempt, AttemptOutcome outcome, const std::string& reason) {
  const double took = std::chrono::duration<double>(Clock::now() - nodes_[step.nodes.front()].begin).count();
  const bool planned = is_planned(step);
  for (const auto& node : step.nodes) {
    NodeProgress& node_progress = nodes_[node];
    node_progress.running_s = 0;
    node_progress.state = "between steps";
    if (attempt == 1 && planned) ++node_progress.done;
  }
  forecast_.end(step.id);
  if (attempt == 1) ++(planned ? done_ : tests_done_);
  event("step_end",
        {{"step", step.id}, {"attempt", attempt}, {"outcome", outcome}, {"reason", reason}, {"took_s", took}});
  line(fmt::format("[{:>3}/{}] {} {} after {:.1f} s{}{}", done_, total_, step.id, outcome, took,
                   reason.empty() ? "" : ": ", reason));
}

void Progress::step_kept(const plan::Step& step) {
  for (const auto& node : step.nodes) ++nodes_[node].done;
  ++done_;
  forecast_.end(step.id);
  event("step_kept", {{"step", step.id}});
}

void Progress::step_dropped(const plan::Step& step) {
  forecast_.end(step.id);
  event("step_dropped", {{"step", step.id}});
}

void Progress::tests_left(std::size_t tests) {
  tests_left_ = tests;
  forecast_.tests_left(tests, longest_test_s_);
  forecast_at_ = {};
  event("localise", {{"tests_done", tests_done_}, {"tests_left_at_most", tests}});
}

void Progress::tick() {
  if (mode_ != Mode::terminal) return;
  erase();
  draw();
}

void Progress::erase() {
  if (drawn_ > 0) std::cerr << "\x1b[" << drawn_ << "A\x1b[J" << std::flush;
  drawn_ = 0;
}

void Progress::draw() {
  if (mode_ != Mode::terminal) return;
  std::string block;
  for (const auto& [name, node] : nodes_) {
    if (drawn_ == kShownNodes) break;
    const double ran = node.running_s > 0 ? std::chrono::duration<double>(Clock::now() - node.begin).count() : 0;
    std::string text = fmt::format("  {:<20} {:>3}/{:<3} {}", name, node.done, node.total, node.state);
    if (node.running_s > 0) text += fmt::format("  {} of about {}", clock_text(ran), clock_text(node.running_s));
    block += printable(text).substr(0, kWidth) + "\n";
    ++drawn_;
  }
  if (static_cast<int>(nodes_.size()) > drawn_) {
    block += fmt::format("  … and {} more nodes\n", nodes_.size() - static_cast<std::size_t>(drawn_));
    ++drawn_;
  }
  const double elapsed = std::chrono::duration<double>(Clock::now() - begin_).count();
  const std::string tests = tests_done_ + tests_left_ == 0 ? "" : fmt::format(" and {} tests of searches", tests_done_);
  block += fmt::format("  {} of {} steps{}, {} elapsed, {} {} left\n", done_, total_, tests, clock_text(elapsed),
                       tests_left_ > 0 ? "at most" : "about", clock_text(remaining_s()));
  ++drawn_;
  std::cerr << block << std::flush;
}

}  // namespace assay::run
