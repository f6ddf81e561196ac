// flag_register: confirms or withdraws a flag by a sequential test of later visits (evidence_of_fault()), closes it
// after clean visits that follow a repair, and counts relapses.
#include "orchestrator/drift/flag_register.h"

#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "orchestrator/drift/charts.h"
#include "orchestrator/files/digest.h"
#include "probes/core/portable_math.h"

namespace assay::drift {
namespace {

constexpr int kTests = 3;             // at least, before a flag is confirmed or refuted
constexpr int kMostUndecided = 28;    // tests that neither confirm nor refute: nothing to act on
constexpr int kTestsOfFlapping = 14;  // of an intermittent fault
constexpr int kBadTestsOfFlapping = 2;
constexpr int kCleanVisits = 2;  // after a repair
constexpr double kCleanResidual = -3;
constexpr double kBadWithPartner = 1.5;  // deviations, at least; or half of the flag's
constexpr int kRelapseNights = 28;
constexpr int kLemonRelapses = 3;
constexpr std::size_t kMostTests = 40;  // that are kept

bool of_another_night(const Flag& flag) {
  return std::ranges::any_of(flag.retests, [&](const RetestSeen& test) { return test.night != flag.raised; });
}

void add_partner(Flag& flag, const std::string& partner) {
  const auto at = std::ranges::lower_bound(flag.partners, partner);
  if (!partner.empty() && (at == flag.partners.end() || *at != partner)) flag.partners.insert(at, partner);
}

/// How much of a test's variance all tests of its night share: the error of the cohort's shift, a median of so many
/// peers (pi/2 of their variance over their number). If no shift is taken out, the night's own part.
double shared_in_a_night(std::size_t peers) {
  constexpr double kMedian = 1.5707963267948966, kUnknown = 0.5;
  return peers < kPeersForShift ? kUnknown : kMedian / (kMedian + static_cast<double>(peers));
}

/// Wald's sequential test (Sequential Tests of Statistical Hypotheses, 1945): how much likelier the tests are for a
/// unit that is as bad as the flag says, less a quarter for the luck by which it was flagged, than for a healthy one.
/// The tests of a night are compared with the mean of all visits and tests before it, of those that raised the flag
/// too. Of a healthy unit that mean does not depend on differences between visits (Basu 1955), and nothing but
/// differences raises a flag: of however many series it is the one with the unluckiest reference, its tests are not
/// more likely to confirm it. Tests of the night of the raise shared its cause. One outlier does not decide.
double evidence_of_fault(const OpenFlag& one, const std::string& without = {}) {
  constexpr double kLeastSize = 1.2, kShareOfEffect = 0.75, kOutlier = 1.5;
  const auto& tests = one.flag.retests;
  const double sick = std::max(kLeastSize, kShareOfEffect * one.size / one.noise);
  const double shared = shared_in_a_night(one.flag.arithmetic.peers);
  double visits = one.pooled;
  double mean = one.pooled_mean / one.noise;
  double evidence = 0;
  for (std::size_t begin = 0, end = 0; begin < tests.size(); begin = end) {
    double sum = 0;
    double count = 0;
    for (; end < tests.size() && tests[end].night == tests[begin].night; ++end) {
      if (!without.empty() && tests[end].partner == without) continue;
      sum += tests[end].residual / one.noise;
      count += 1;
    }
    if (tests[begin].night == one.flag.raised || count == 0) continue;
    const double variance = shared + (1 - shared) / count;
    // A state has no mean that could be wrong. Of a faulty unit the mean holds the fault, too, in what is not
    // reference.
    const double wide = std::sqrt(variance + (visits > 0 ? 1 / visits : 0));
    const double expected = sick * (visits > 0 ? std::min(one.visits / visits, 1.0) : 1) / wide;
    evidence += expected * (std::min((mean - sum / count) / wide, expected + kOutlier) - expected / 2);
    if (visits == 0) continue;
    visits += 1 / variance;
    mean += (sum / count - mean) / (visits * variance);
  }
  return evidence;
}

/// A node is short with whomever it is measured: without the tests with any one partner the others must still say so.
/// With one partner only, it may be the path, or the other node.
bool with_any_partner(const OpenFlag& one) {
  constexpr double kStill = 2.3;  // ten times as likely
  return !one.pair || std::ranges::all_of(one.flag.partners, [&](const std::string& partner) {
    return evidence_of_fault(one, partner) >= kStill;
  });
}

/// From which night on no visit of a flag of events had any; empty if the last one had.
std::string words_of_end(const Flag& flag) {
  const auto last_bad = std::ranges::find_if(flag.retests.rbegin(), flag.retests.rend(),
                                             [](const RetestSeen& test) { return test.residual < 0; });
  if (last_bad == flag.retests.rbegin()) return "";
  return fmt::format(" None since {}.", date_text(last_bad.base()->night));
}

/// The same of an intermittent fault: bad tests with two partners.
bool bad_with_two(const OpenFlag& one, double limit) {
  std::set<std::string> partners;
  for (const RetestSeen& test : one.flag.retests) {
    if (test.residual <= limit) partners.insert(test.partner);
  }
  return !one.pair || partners.size() > 1;
}

/// Whether the tests so far decide: 1 confirmed, -1 refuted, 0 open.
int decision(const OpenFlag& one, const Policy& policy) {
  const Flag& flag = one.flag;
  const auto count = std::ssize(flag.retests);
  const auto bad = [&](double limit) {
    return std::ranges::count_if(flag.retests, [&](const RetestSeen& test) { return test.residual <= limit; });
  };
  if (flag.rule == Rule::intermittent || flag.rule == Rule::count) {
    // Of 14 tests of a healthy unit one is as bad in 2 to 8 of 100 cases, two in one of 300 at most.
    const bool again = flag.rule == Rule::count ? bad(-1) > 0 : bad(-policy.intermittent.z) >= kBadTestsOfFlapping;
    if (again && of_another_night(flag) && bad_with_two(one, -policy.intermittent.z)) return 1;
    return count >= (flag.rule == Rule::count ? kTests : kTestsOfFlapping) ? -1 : 0;
  }
  if (count < kTests || !of_another_night(flag)) return 0;
  // Logarithms of 1 / 0.001 and of 0.1 / (1 - 0.001): of the budget of false flags a thousandth is confirmed.
  constexpr double kConfirmed = 6.91, kRefuted = -2.3;
  const double evidence = evidence_of_fault(one);
  if (evidence >= kConfirmed) return with_any_partner(one) ? 1 : 0;
  return evidence <= kRefuted || count >= kMostUndecided ? -1 : 0;
}

}  // namespace

OpenFlag& FlagRegister::raise(OpenFlag flag, Day day) {
  const FlagKey key{flag.flag.unit, flag.flag.metric};
  flag.flag.raised = date_of(day);
  const std::string name = key.first + '\0' + key.second + '\0' + date_text(flag.flag.raised);
  constexpr std::size_t kDigits = 12;
  flag.flag.id = files::sha256(name).substr(0, kDigits);
  OpenFlag& kept = open.insert_or_assign(key, std::move(flag)).first->second;
  relapse(kept, day);
  return kept;
}

void FlagRegister::relapse(OpenFlag& one, Day day) {
  auto& nights = raised[{one.flag.unit, one.flag.metric}];
  std::erase_if(nights, [&](Day night) { return night < day - kRelapseNights; });
  one.flag.relapses = static_cast<int>(nights.size());
  nights.push_back(day);
  if (one.flag.relapses >= kLemonRelapses) one.flag.state = UnitState::lemon;
}

void FlagRegister::raise_again(OpenFlag& one, const Observation& seen) {
  Flag& flag = one.flag;
  flag.state = UnitState::flagged;
  flag.raised = date_of(seen.day);
  if (flag.rule == Rule::count) {
    flag.onset = flag.raised;
    flag.ratio = flag.ratio_low = flag.ratio_high = flag.arithmetic.x = seen.ratio;
  }
  flag.retests.clear();
  one.clean = 0;
  relapse(one, seen.day);
}

bool FlagRegister::observe(OpenFlag& one, const Observation& seen, const Policy& policy) {
  Flag& flag = one.flag;
  if (flag.retests.size() < kMostTests || flag.state == UnitState::repaired)
    flag.retests.push_back({.night = date_of(seen.day),
                            .ratio = seen.ratio,
                            .residual = seen.residual,
                            .regular = seen.regular,
                            .partner = seen.partner,
                            .run_sha256 = seen.run_sha256});
  flag.last_visit = std::max(flag.last_visit, date_of(seen.day));
  if (one.pair && seen.residual < -std::max(kBadWithPartner, one.size / 2)) add_partner(flag, seen.partner);
  if (flag.state == UnitState::repaired) {
    if (seen.residual > kCleanResidual) return ++one.clean >= kCleanVisits;
    raise_again(one, seen);
    return false;
  }
  if (flag.state == UnitState::watch && flag.rule == Rule::count && seen.residual < 0) raise_again(one, seen);
  if (flag.state != UnitState::flagged) return false;
  const int decided = decision(one, policy);
  if (decided > 0) flag.state = UnitState::confirmed;
  if (decided < 0 && flag.rule == Rule::count) {
    flag.state = UnitState::watch;  // events that happened are not undone by none; new ones raise it again
    return false;
  }
  return decided < 0;
}

bool FlagRegister::settle(OpenFlag& one, double effect, bool clear, bool learning) {
  Flag& flag = one.flag;
  const bool waits = flag.state == UnitState::watch || flag.state == UnitState::flagged;
  if (!waits || flag.type != MetricClass::level) return false;
  if (flag.rule == Rule::small_shift || flag.rule == Rule::large_shift) {
    one.effect = effect;
    const double moved = effect - portable_log(flag.ratio);
    flag.ratio_low *= portable_exp(moved);
    flag.ratio_high *= portable_exp(moved);
    flag.ratio = portable_exp(effect);
  }
  if (flag.state != UnitState::watch) return false;
  if (!learning && 1 - flag.ratio >= one.min_effect) flag.state = UnitState::flagged;
  return flag.state == UnitState::watch && clear;
}

int tests_wanted(const OpenFlag& one) {
  if (one.flag.state == UnitState::repaired) return kCleanVisits - one.clean;
  if (one.flag.state != UnitState::flagged) return 0;
  const int most = one.flag.rule == Rule::intermittent ? kTestsOfFlapping : kTests;
  return std::max(1, most - static_cast<int>(one.flag.retests.size()));
}

std::string words_of_flag(const OpenFlag& one) {
  const Flag& flag = one.flag;
  const std::string since = date_text(flag.onset);
  switch (flag.rule) {
    case Rule::count:
      return fmt::format("{:g} events since the visit before, where {:.3g} are usual.{}", flag.ratio, flag.arithmetic.m,
                         words_of_end(flag));
    case Rule::state:
      if (flag.type == MetricClass::level)
        return fmt::format("It never changed, and is {:.2f} % of that now.", 100 * flag.ratio);
      return fmt::format("It is {:g}, and {:g} is expected.", flag.arithmetic.x, flag.arithmetic.m);
    case Rule::intermittent:
      return fmt::format("At times it falls to {:.2f} % of its own level: {:g} bad visits since {}.", 100 * flag.ratio,
                         flag.arithmetic.C, since);
    case Rule::cliff:
      return fmt::format(
          "It fell to {:.2f} % of its own level in one night, below all of {:g} visits, and fresh tests "
          "of that night agree.",
          100 * flag.ratio, flag.arithmetic.n);
    case Rule::below_fleet:
      return fmt::format("New here, it is at {:.2f} % of the level of {:g} units like it.", 100 * flag.ratio,
                         flag.arithmetic.n);
    case Rule::small_shift:
    case Rule::large_shift:
      break;
  }
  return fmt::format("It is at {:.2f} % of its own level since about {} ({:.2f} to {:.2f} %).", 100 * flag.ratio, since,
                     100 * flag.ratio_low, 100 * flag.ratio_high);
}

}  // namespace assay::drift
