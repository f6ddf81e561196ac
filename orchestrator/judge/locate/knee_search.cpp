// knee_search: bisection over prefixes, then groups with the last nodes in place of others; see knee_search.h.
#include "orchestrator/judge/locate/knee_search.h"

#include <algorithm>
#include <utility>

namespace assay::judge {
namespace {

/// Of the limit: twice the least difference of alike groups (Controls::difference). A smaller part of the last nodes
/// explains no fall, and half of it separates two groups.
constexpr double kClear = 0.04;
/// The same in deviations between attempts: twice those of Controls::difference.
constexpr double kClearDeviations = 8;
constexpr std::size_t kMostExchanges = 2;
constexpr const char* kBisection = "bisection of a knee";
constexpr const char* kExchange = "last nodes in place of others";

}  // namespace

bool KneeSearch::is_clear() const { return ends_.kept_share - ends_.lost_share >= kClear; }

bool KneeSearch::exchanges() const {
  return bad_ + good_ > 0 || ends_.lost - ends_.kept == 1 || tests_.size() + 1 >= most_;
}

std::optional<Test> KneeSearch::next() const {
  if (broken_ || tests_.size() >= most_) return std::nullopt;
  Test test{.number = tests_.size() + 1, .purpose = kBisection};
  const auto add = [&](std::size_t from, std::size_t to) {
    for (std::size_t i = from; i < to; ++i) test.nodes.push_back(i);
  };
  const std::size_t last = ends_.lost - ends_.kept;
  if (!exchanges()) {
    add(0, ends_.kept + last / 2);
    return test;
  }
  if (!is_clear() || good_ > 0 || bad_ == kMostExchanges) return std::nullopt;
  test.purpose = kExchange;
  const std::size_t others = ends_.kept - std::min(last, ends_.kept);
  const std::size_t first = bad_ == 0 ? 0 : ends_.kept - others;  // other companions the second time
  add(first, first + others);
  add(ends_.kept, ends_.kept + std::min(last, ends_.kept));
  return test;
}

void KneeSearch::take(const Reading& reading) {
  Tested tested{.test = next().value(), .reading = reading, .outcome = TestOutcome::broken, .share = {}};
  broken_ = reading.broken || reading.shares.empty();
  if (!broken_) {
    const double share = reading.shares.front();
    const bool exchanged = exchanges();
    const bool is_short = share < (exchanged ? (ends_.kept_share + ends_.lost_share) / 2 : 1);
    tested.outcome = is_short ? TestOutcome::short_of_limit : TestOutcome::good;
    tested.share = share;
    if (exchanged) {
      tested.control = ends_.kept_share;
      ++(is_short ? bad_ : good_);
    } else if (is_short) {
      ends_.lost = tested.test.nodes.size();
      ends_.lost_share = share;
    } else {
      ends_.kept = tested.test.nodes.size();
      ends_.kept_share = share;
    }
  }
  tests_.push_back(std::move(tested));
}

FallCause KneeSearch::cause() const {
  if (broken_ || next() || (bad_ > 0 && good_ > 0)) return FallCause::open;
  const double clear = kClearDeviations * ends_.scatter * ends_.kept_share;
  if (bad_ > 0) return ends_.kept_share - ends_.lost_share >= clear ? FallCause::nodes : FallCause::open;
  return good_ > 0 || !is_clear() ? FallCause::count : FallCause::open;
}

}  // namespace assay::judge
