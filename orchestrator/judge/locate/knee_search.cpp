// knee_search: bisection over prefixes, then groups with the last nodes in place of others; see knee_search.h.
#include "orchestrator/judge/locate/knee_search.h"

#include <algorithm>
#include <utility>

namespace assay::judge {
namespace {

/// Of the limit: twice the least difference of alike groups (Controls::difference). A smaller part of the last nodes
/// explains no fall, and half of it separates two groups.
constexpr double kClear = 0.04;
constexpr std::size_t kMostExchanges = 2;
constexpr const char* kBisection = "bisection of a knee";
constexpr const char* kExchange = "last nodes in place of others";

}  // namespace

KneeSearch::KneeSearch(std::size_t kept, double kept_share, std::size_t lost, double lost_share, std::size_t most)
    : kept_(kept), lost_(lost), most_(most), kept_share_(kept_share), lost_share_(lost_share) {}

bool KneeSearch::is_clear() const { return kept_share_ - lost_share_ >= kClear; }

bool KneeSearch::exchanges() const { return bad_ + good_ > 0 || lost_ - kept_ == 1 || tests_.size() + 1 >= most_; }

std::optional<Test> KneeSearch::next() const {
  if (broken_ || tests_.size() >= most_) return std::nullopt;
  Test test{.number = tests_.size() + 1, .nodes = {}, .purpose = kBisection};
  const auto add = [&](std::size_t from, std::size_t to) {
    for (std::size_t i = from; i < to; ++i) test.nodes.push_back(i);
  };
  const std::size_t last = lost_ - kept_;
  if (!exchanges()) {
    add(0, kept_ + last / 2);
    return test;
  }
  if (!is_clear() || good_ > 0 || bad_ == kMostExchanges) return std::nullopt;
  test.purpose = kExchange;
  const std::size_t others = kept_ - std::min(last, kept_);
  const std::size_t first = bad_ == 0 ? 0 : kept_ - others;  // other companions the second time
  add(first, first + others);
  add(kept_, kept_ + std::min(last, kept_));
  return test;
}

void KneeSearch::take(const Reading& reading) {
  Tested tested{.test = next().value(), .reading = reading, .outcome = TestOutcome::broken, .share = {}, .control = {}};
  broken_ = reading.broken || reading.shares.empty();
  if (!broken_) {
    const double share = reading.shares.front();
    const bool exchanged = exchanges();
    const bool is_short = share < (exchanged ? (kept_share_ + lost_share_) / 2 : 1);
    tested.outcome = is_short ? TestOutcome::short_of_limit : TestOutcome::good;
    tested.share = share;
    if (exchanged) {
      tested.control = kept_share_;
      ++(is_short ? bad_ : good_);
    } else if (is_short) {
      lost_ = tested.test.nodes.size();
      lost_share_ = share;
    } else {
      kept_ = tested.test.nodes.size();
      kept_share_ = share;
    }
  }
  tests_.push_back(std::move(tested));
}

FallCause KneeSearch::cause() const {
  if (broken_ || next() || (bad_ > 0 && good_ > 0)) return FallCause::open;
  if (bad_ > 0) return FallCause::nodes;
  return good_ > 0 || !is_clear() ? FallCause::count : FallCause::open;
}

}  // namespace assay::judge
