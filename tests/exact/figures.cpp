// figures: prints every kind of computed number that reaches a verdict, a statement or a report, over many inputs, for
// comparison with what another build, another processor or another libm prints. `figures --libm` prints libm's own
// results, as the control: where those do not differ, a comparison says nothing of them.
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "orchestrator/drift/detector.h"
#include "orchestrator/judge/decide/decision.h"
#include "orchestrator/judge/decide/steadiness.h"
#include "orchestrator/rehearse/nights.h"
#include "orchestrator/simulate/random.h"
#include "probes/core/portable_math.h"
#include "probes/core/scale.h"
#include "probes/core/small_samples.h"
#include "probes/core/statistics.h"
#include "reports/figures/axis.h"
#include "reports/figures/curve.h"
#include "reports/figures/plot.h"

namespace assay {
namespace {

std::string words(const std::optional<double>& number) { return number ? fmt::format("{}", *number) : "none"; }

std::string words(const std::optional<Interval>& interval) {
  return interval ? fmt::format("{} {} {}", interval->low, interval->high, interval->level) : "none";
}

void print_intervals() {
  constexpr std::size_t kMost = 2000;
  std::vector<double> samples;
  for (std::size_t n = 1; n <= kMost; ++n) {
    samples.push_back(static_cast<double>(n));
    for (const double fraction : {0.01, 0.05, 0.5, 0.95, 0.99}) {
      for (const double confidence : {0.95, 0.99}) {
        fmt::print("interval {} {} {}: {}\n", n, fraction, confidence,
                   words(order_statistic_interval(samples, fraction, confidence)));
      }
    }
  }
}

void print_normal() {
  for (int i = -3800; i <= 900; ++i) fmt::print("cdf {}: {}\n", i, normal_cdf(i / 100.0));
  for (int i = 1; i < 2000; ++i)
    fmt::print("quantile {}: {} {}\n", i, normal_quantile(i / 2000.0), normal_quantile(std::ldexp(1.0, -i / 4)));
  for (const double factor : {0.0, 1.0, 1.6448536269514722, 2.0, 3.0, 5.0})
    fmt::print("risk {}: {} {}\n", factor, judge::risk_of(factor, false), judge::risk_of(factor, true));
}

void print_small_samples() {
  for (int i = 1; i <= 400; ++i) {
    const double degrees = i < 300 ? i / 3.0 : portable_exp((i - 280) / 8.0);
    for (const double p : {0.6, 0.95, 0.975, 0.999})
      fmt::print("student {} {}: {} {}\n", degrees, p, student_quantile(p, degrees), student_cdf(p * 4, degrees));
    fmt::print("tails {}: {} {} {}\n", i, f_upper_tail(i / 20.0, 2, degrees), portable_log_gamma(i / 7.0),
               binomial_at_least(400, 0.01, static_cast<std::size_t>(i)));
  }
}

void print_elementary() {
  simulate::SeededRandom random(11);
  for (int i = 0; i < 20'000; ++i) {
    const double x = (random.share() - 0.5) * 1400, y = portable_exp(x / 3);
    fmt::print("elementary {} {} {} {} {}\n", portable_exp(x), portable_log(y), portable_hypot(x, y),
               to_12_digits(x * y), y == 0 ? 0 : decimal_exponent(y));
  }
  for (int i = 0; i < 20'000; ++i) fmt::print("normal {}\n", random.normal());
}

std::vector<double> some_samples(simulate::SeededRandom& random, std::size_t count, double centre) {
  std::vector<double> samples;
  for (std::size_t i = 0; i < count; ++i) samples.push_back(centre * (1 + 0.01 * random.normal()));
  return samples;
}

/// What a fleet with faults comes to in months: every figure of every flag, of large and of small cohorts.
void print_drift() {
  for (const std::size_t nodes : {8, 150}) {
    rehearse::NightFaults faults{.noise = rehearse::NoiseKind::t5, .rho = 0.3};
    for (const auto kind :
         {rehearse::NightFaultKind::step, rehearse::NightFaultKind::ramp, rehearse::NightFaultKind::flap})
      faults.faults.push_back({.kind = kind,
                               .unit = fmt::format("n{:05}", 1 + faults.faults.size()),
                               .metric = "simulated.m00",
                               .from_night = 30,
                               .sigma = 4,
                               .p = 0.3});
    rehearse::Nights source({.nodes = nodes, .metrics = 4, .seed = 5}, std::move(faults));
    drift::Detector detector(source.fleet(), {});
    constexpr int kNights = 90;
    for (int night = 0; night < kNights; ++night) detector.add(source.next());
    fmt::print("{}", drift::report_text(detector.report()));
  }
}

void print_decisions() {
  simulate::SeededRandom random(12);
  for (int i = 0; i < 4000; ++i) {
    const double centre = portable_exp((random.share() - 0.5) * 60);
    std::vector<Measurement> attempts;
    const std::size_t count = 1 + random.below(5);
    while (attempts.size() < count) {
      attempts.push_back({.metric = "m",
                          .unit = "B/s",
                          .subject = {},
                          .at = {},
                          .samples = some_samples(random, 6 + random.below(300), centre),
                          .warmup = {},
                          .stopped = random.happens(0.5) ? "stable" : "time_cap"});
    }
    std::vector<const Measurement*> measured;
    for (const auto& attempt : attempts) measured.push_back(&attempt);
    const auto& samples = attempts.front().samples;
    using enum plan::Statistic;
    const plan::Statistic statistic = std::vector{median, p01, p99, min, max}[random.below(5)];
    const auto seen = judge::estimate_attempts(measured, statistic, {.confidence = 0.95, .risk = 0.025});
    fmt::print("samples {}: {} {} {} {}\n", i, percentile(samples, random.share()), robust_sigma(samples),
               moments(samples).mean, moments(samples).standard_deviation());
    if (!seen) continue;
    plan::Limit limit;
    const double stated = 1 + 0.02 * (random.share() - 0.5);
    (random.happens(0.5) ? limit.at_least : limit.at_most) = stated;
    limit.reference = plan::Reference::metric;
    judge::Result result;
    const double instrument = random.happens(0.5) ? 0 : 0.003;
    judge::decide(limit, *seen, judge::own_scatter(*seen, {}), instrument,
                  {.value = centre, .uncertainty = centre * 0.001 * random.share(), .degrees = 4}, 0.025, result);
    judge::note_findings(judge::steadiness_of(measured), *seen, false, statistic, result);
    fmt::print("between {} {} {} {} {}\n", words(result.between), words(result.degrees_of_freedom),
               words(result.guard_factor), words(result.bound_low), words(result.bound_high));
    for (const auto& finding : result.findings) fmt::print("{} {}\n", word_of(finding.kind), finding.words);
    fmt::print("decision {} {}: {} {} {} {} {} {} {} {} {}\n", i, judge::to_string(result.outcome), words(result.value),
               words(result.interval), words(result.uncertainty), words(result.limit_low), words(result.limit_high),
               words(result.acceptance_low), words(result.acceptance_high), words(result.margin),
               words(result.false_accept));
    fmt::print("{}\n", result.reason);
  }
}

figures::Curve some_curve(simulate::SeededRandom& random) {
  figures::Curve curve{.title = "Curve",
                       .description = "of a test",
                       .x_name = "size",
                       .y_name = "value",
                       .unit = "B/s",
                       .points = {},
                       .lines = {}};
  const double scale = portable_exp(random.share() * 25), rise = random.share() * 2;
  for (int i = 0; i < 12; ++i) {
    figures::CurvePoint point{.x = std::ldexp(8.0, 2 * i),
                              .label = figures::size_words(std::ldexp(8.0, 2 * i)),
                              .subjects = 2,
                              .low = {},
                              .high = {},
                              .value = {},
                              .interval = {},
                              .limit = {},
                              .acceptance = {},
                              .passes = random.happens(0.5)};
    point.value = scale * portable_exp(rise * i) * (1 + 0.1 * random.share());
    point.low = *point.value * 0.97;
    point.high = *point.value * 1.02;
    point.limit = *point.value * 0.9;
    curve.points.push_back(point);
  }
  return curve;
}

void print_charts() {
  simulate::SeededRandom random(13);
  for (int i = 0; i < 300; ++i) {
    const double low = (random.share() - 0.5) * portable_exp((random.share() - 0.5) * 60);
    const double high = low + (0.001 + random.share()) * portable_hypot(low, low);
    const auto marks = figures::Axis(low, high).marks();
    const Scale scale = figures::scale_for_marks(marks, "s");
    for (const double mark : marks) fmt::print("mark {} {}\n", mark, scale.number(mark));
    fmt::print("{} {} {} {}\n", for_people(low, "B/s"), for_people(high, "s"), figures::exact_text(high, "W"),
               figures::percent(random.share()));
  }
  for (int i = 0; i < 100; ++i) {
    fmt::print("{}", figures::curve_svg(some_curve(random)));
    figures::Plot plot{.title = "Plot", .unit = "B/s", .rows = {}};
    for (int row = 0; row < 3; ++row) {
      const auto samples = some_samples(random, 12, portable_exp(random.share() * 25));
      plot.rows.push_back({.label = "n",
                           .samples = samples,
                           .value = median(samples),
                           .interval = order_statistic_interval(samples, 0.5, 0.95),
                           .limit_low = median(samples) * 0.9,
                           .limit_high = {},
                           .acceptance_low = median(samples) * 0.95,
                           .acceptance_high = {},
                           .outcome = "passes",
                           .passes = true});
    }
    fmt::print("{}{}", figures::strip_plot(plot), figures::distribution_plot(plot));
  }
}

void print_libm() {
  simulate::SeededRandom random(14);
  for (int i = 0; i < 200'000; ++i) {
    const double x = (random.share() - 0.5) * 80;
    fmt::print("{} {} {} {}\n", std::exp(x), std::log(x * x), std::pow(x * x, 0.3), std::sin(x));
  }
}

}  // namespace
}  // namespace assay

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "--libm") == 0) {
    assay::print_libm();
    return 0;
  }
  assay::print_intervals();
  assay::print_normal();
  assay::print_small_samples();
  assay::print_elementary();
  assay::print_drift();
  assay::print_decisions();
  assay::print_charts();
  return 0;
}
