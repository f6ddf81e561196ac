// runner_searches: extra tests after the plan's steps, which locate the faulty node of a group that missed its limit.
#include <algorithm>

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "orchestrator/run/runner.h"

namespace assay::run {

namespace asio = boost::asio;

/// Makes every test that the searches ask for. A search whose node is gone stays open, and so do later searches on
/// the same nodes.
asio::awaitable<void> Runner::localise(const judge::Results& results) {
  if (plan_.searches.empty()) co_return;
  searches_.emplace(plan_, results, journal_.journal(), journal_.evidence());
  if (searches_->open().empty()) co_return;
  journal_.begin_localising();
  std::set<std::string> begun;
  for (;;) {
    bool known = false;  // from before the run was killed
    for (auto& test : searches_->open()) {
      if (!begun.insert(test.step.id).second) continue;
      if (const auto shown = searches_->shown(test, journal_.part_of(test.step), journal_.evidence())) {
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

/// One extra test, once its nodes have agents and there is power for it.
asio::awaitable<void> Runner::perform_test(judge::ExtraTest test) {
  const plan::Step& step = test.step;
  if (co_await gather(step)) {
    while (!admission_.fits_power(step) && !stopping_) co_await change();
    if (!stopping_ && !admission_.fits_time(step)) {
      stopping_ = true;
      too_late_.push_back(step.id);
      progress_.node("all nodes", "the deadline is too near for more tests of searches");
    }
    if (!stopping_) co_await make_test(test);
  }
  --tests_running_;
  changed();
}

/// Makes the test now and gives its search the result.
asio::awaitable<void> Runner::make_test(const judge::ExtraTest& test) {
  const plan::Step& step = test.step;
  admission_.begin_test(step);
  const auto lost = co_await attempt(step, test.test.purpose);
  admission_.end_test(step);
  for (const auto& node : lost) work_of(node).agent.lose("the connection was lost in test " + step.id);
  if (const auto shown = searches_->shown(test, journal_.part_of(step), journal_.evidence()))
    searches_->take(step.id, *shown);
}

/// Whether every node of `step` has an agent, started if there is none.
asio::awaitable<bool> Runner::gather(const plan::Step& step) {
  for (const auto& node : step.nodes) {
    NodeWork& lane = work_of(node);
    const bool live = lane.agent.get() != nullptr;
    lane.gone = lane.gone || (!live && !lane.busy && !lane.agent.may_restart());
    if (!live && !lane.gone && !lane.busy && !stopping_) begin(lane);
  }
  const auto settled = [this](const std::string& node) { return !work_of(node).busy; };
  while (!std::ranges::all_of(step.nodes, settled)) co_await change();
  co_return std::ranges::all_of(step.nodes,
                                [this](const std::string& node) { return work_of(node).agent.get() != nullptr; });
}

}  // namespace assay::run
