// runner_searches: extra tests, once the plan's steps are over: who is at fault where nodes that work together fell
// short.
#include <algorithm>

#include <fmt/format.h>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "orchestrator/judge/judge.h"
#include "orchestrator/run/runner.h"

namespace assay::run {

namespace asio = boost::asio;

/// Makes every test that the searches ask for. A search whose node is gone stays open, and so do those of the same
/// nodes behind it.
asio::awaitable<void> Runner::localise() {
  if (plan_.searches.empty()) co_return;
  searches_.emplace(plan_, judge::judge_cells(plan_, memory_, evidence_), memory_);
  if (searches_->open().empty()) co_return;
  if (!memory_.localising) journal_.localise_begin();
  memory_.localising = true;
  std::set<std::string> begun;
  for (;;) {
    bool known = false;  // from before the run was killed
    for (auto& test : searches_->open()) {
      if (!begun.insert(test.step.id).second) continue;
      if (const auto shown = searches_->shown(test, part_of(test.step), evidence_)) {
        searches_->take(test.step.id, *shown);
        known = true;
      } else if (!stopping_) {
        ++tests_running_;
        spawn(perform_test(std::move(test)));
      }
    }
    progress_.tests_left(searches_->most_left());
    if (known) continue;
    if (tests_running_ == 0) co_return;
    co_await change();
  }
}

/// One extra test, when its nodes can be had and there are power and time for it.
asio::awaitable<void> Runner::perform_test(judge::ExtraTest test) {
  const plan::Step& step = test.step;
  if (co_await gather(step)) {
    while (!fits_power(step) && !stopping_) co_await change();
    if (!stopping_ && !fits_time(step)) {
      stopping_ = true;
      too_late_.push_back(step.id);
      progress_.node("all nodes", "the deadline is too near for more tests of searches");
    }
    if (!stopping_) {
      power_w_ += step.power_w;
      const auto lost = co_await attempt(step, test.test.purpose);
      power_w_ -= step.power_w;
      for (const auto& node : lost) {
        lane_of(node).agent.reset();
        node_down(node, "the connection was lost in test " + step.id);
      }
      if (const auto shown = searches_->shown(test, part_of(step), evidence_)) searches_->take(step.id, *shown);
    }
  }
  --tests_running_;
  changed();
}

/// Whether every node of `step` has an agent, started where there is none.
asio::awaitable<bool> Runner::gather(const plan::Step& step) {
  for (const auto& node : step.nodes) {
    Lane& lane = lane_of(node);
    lane.gone = lane.gone || (!lane.agent && !lane.busy && lane.starts > kMostReconnects);
    if (!lane.agent && !lane.gone && !lane.busy && !stopping_) begin(lane);
  }
  const auto settled = [this](const std::string& node) { return !lane_of(node).busy; };
  while (!std::ranges::all_of(step.nodes, settled)) co_await change();
  co_return std::ranges::all_of(step.nodes, [this](const std::string& node) { return lane_of(node).agent != nullptr; });
}

}  // namespace assay::run
