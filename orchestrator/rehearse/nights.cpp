// nights: levels, noise and faults, night by night.
#include "orchestrator/rehearse/nights.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "orchestrator/simulate/random.h"
#include "probes/core/json_io.h"
#include "probes/core/portable_math.h"
#include "profiles/schema.h"

namespace assay::rehearse {
namespace {

constexpr double kLevel = 100;  // of every metric, in its unit
constexpr const char* kErrors = "simulated.errors";

std::string node_name(std::size_t node) { return fmt::format("n{:05}", node); }

}  // namespace

Nights::Nights(const NightsShape& shape, NightFaults faults) : shape_(shape), faults_(std::move(faults)) {
  fleet_.simulated = true;
  fleet_.cohorts = {"simulated", "simulated | driver 2"};
  levels_ = shape_.metrics;
  for (std::size_t m = 0; m < shape_.metrics; ++m)
    fleet_.metrics.push_back(
        {.name = fmt::format("simulated.m{:02}", m), .probe = "simulated", .revision = 1, .unit = "1/s"});
  if (std::ranges::any_of(faults_.faults, [](const auto& one) { return one.kind == NightFaultKind::counter; }))
    fleet_.metrics.push_back({.name = kErrors,
                              .probe = "simulated",
                              .revision = 1,
                              .unit = "1",
                              .type = drift::MetricClass::count,
                              .lower_is_better = true,
                              .fatal = true});
  simulate::SeededRandom random(shape_.seed, {"fleet"});
  for (std::size_t node = 0; node < shape_.nodes; ++node) {
    unit_of_.push_back(0);
    add_unit(node, "node:" + node_name(node));
    for (std::size_t m = 0; m < levels_; ++m) {
      level_.push_back(faults_.unit_spread * random.normal());
      sigma_.push_back(faults_.sigma * portable_exp(faults_.sigma_spread * random.normal()));
      last_.push_back(0);
    }
  }
  state_ = random.next();
}

void Nights::add_unit(std::size_t node, const std::string& id) {
  const auto number = static_cast<std::uint32_t>(fleet_.units.size());
  fleet_.units.push_back({.id = id,
                          .kind = "node",
                          .serial = true,
                          .node = node_name(node),
                          .leaf = shape_.per_leaf == 0 ? "" : fmt::format("l{:04}", node / shape_.per_leaf)});
  unit_of_[node] = number;
  first_series_.push_back(static_cast<std::uint32_t>(fleet_.series.size()));
  for (std::uint32_t m = 0; m < fleet_.metrics.size(); ++m) fleet_.series.push_back({.unit = number, .metric = m});
}

bool Nights::concerns(const NightFault& fault, std::size_t node, std::size_t metric) const {
  return night_ >= fault.from_night && (fault.unit.empty() || fault.unit == node_name(node)) &&
         (fault.metric.empty() || fault.metric == fleet_.metrics[metric].name);
}

FlagCause Nights::cause_of(const drift::Flag& flag) const {
  FlagCause cause = FlagCause::no_fault;
  const auto raised = (flag.raised - shape_.first).count();
  for (const NightFault& fault : faults_.faults) {
    const bool counter = fault.kind == NightFaultKind::counter;
    const bool own = counter || (fault.kind < NightFaultKind::fleet_step && !fault.unit.empty());
    if (!own || (!fault.unit.empty() && fault.unit != flag.node)) continue;
    const bool concerned = counter == (flag.metric == kErrors) && (fault.metric.empty() || fault.metric == flag.metric);
    const FlagCause found = !concerned                  ? FlagCause::other_metric
                            : raised < fault.from_night ? FlagCause::before_fault
                                                        : FlagCause::fault;
    cause = std::min(cause, found);
  }
  return cause;
}

double Nights::noise(simulate::SeededRandom& random) const {
  double e = random.normal();
  if (faults_.noise == NoiseKind::t5) {
    constexpr int kDegrees = 5;
    double squares = 0;
    for (int i = 0; i < kDegrees; ++i) {
      const double one = random.normal();
      squares += one * one;
    }
    e /= std::sqrt(squares / kDegrees) * std::sqrt(kDegrees / (kDegrees - 2.0));  // of deviation 1
  }
  return e;
}

double Nights::effect(const NightFault& fault, std::size_t node, double sigma) const {
  // An event of all nodes affects all of them alike.
  const bool common = fault.kind == NightFaultKind::fleet_step || fault.kind == NightFaultKind::rollout;
  const double size = fault.ratio ? portable_log(*fault.ratio) : -fault.sigma * (common ? faults_.sigma : sigma);
  const int nights = night_ - fault.from_night;
  switch (fault.kind) {
    case NightFaultKind::step:
    case NightFaultKind::fleet_step:
      return size;
    case NightFaultKind::ramp:
      return size * (nights + 1);
    case NightFaultKind::spike:
      return nights == 0 ? size : 0;
    case NightFaultKind::flap: {
      simulate::SeededRandom random(shape_.seed, {"flap", node_name(node), std::to_string(night_)});
      return random.happens(fault.p) ? size : 0;
    }
    case NightFaultKind::rollout:
      return cohort_of(node) == 1 ? size : 0;
    default:
      return 0;
  }
}

std::uint32_t Nights::cohort_of(std::size_t node) const {
  for (const NightFault& fault : faults_.faults) {
    if (fault.kind != NightFaultKind::rollout || night_ < fault.from_night) continue;
    simulate::SeededRandom random(shape_.seed, {"rollout", node_name(node)});
    const double share = fault.p * (night_ - fault.from_night + 1);
    if (random.share() < share) return 1;
  }
  return 0;
}

drift::VisitState Nights::state_of(std::size_t node) const {
  for (const NightFault& fault : faults_.faults) {
    const bool leaves_out = fault.kind == NightFaultKind::preempt || fault.kind == NightFaultKind::missing ||
                            fault.kind == NightFaultKind::foreign_load;
    if (!leaves_out || night_ < fault.from_night || (!fault.unit.empty() && fault.unit != node_name(node))) continue;
    simulate::SeededRandom random(shape_.seed, {word_of(fault.kind), node_name(node), std::to_string(night_)});
    if (!random.happens(fault.p)) continue;
    return fault.kind == NightFaultKind::preempt   ? drift::VisitState::preempted
           : fault.kind == NightFaultKind::missing ? drift::VisitState::not_measured
                                                   : drift::VisitState::busy;
  }
  return drift::VisitState::measured;
}

void Nights::swap(std::size_t node) {
  add_unit(node, fmt::format("node:{}-{}", node_name(node), night_));
  simulate::SeededRandom random(shape_.seed, {"swap", node_name(node)});
  for (std::size_t m = 0; m < levels_; ++m) {
    level_[node * levels_ + m] = faults_.unit_spread * random.normal();
    last_[node * levels_ + m] = 0;
  }
}

double Nights::value_of(std::size_t node, std::size_t metric, double e) const {
  const double sigma = sigma_[node * levels_ + metric];
  double x = level_[node * levels_ + metric] + common_[metric] + sigma * e;
  for (const NightFault& fault : faults_.faults)
    if (concerns(fault, node, metric)) x += effect(fault, node, sigma);
  return kLevel * portable_exp(x);
}

double Nights::events_of(std::size_t node, std::size_t metric, const std::string& when) const {
  double events = 0;
  for (const NightFault& fault : faults_.faults) {
    simulate::SeededRandom random(shape_.seed, {"counter", node_name(node), when});
    if (fault.kind == NightFaultKind::counter && concerns(fault, node, metric) && random.happens(fault.p)) events += 1;
  }
  return events;
}

drift::Night Nights::next() {
  ++night_;
  drift::Night night{.date = shape_.first + std::chrono::days{night_}};
  const auto fresh = [&] {
    simulate::SeededRandom random(state_);
    const double e = noise(random);
    state_ = random.next();
    return e;
  };
  common_.clear();
  for (std::size_t m = 0; m < levels_; ++m) common_.push_back(faults_.night_spread * fresh());
  const std::string run = fmt::format("{:064x}", static_cast<unsigned>(night_ + 1));
  const std::string started = drift::date_text(night.date + std::chrono::days{1}) + "T01:00:00.000Z";
  night.readings.reserve(shape_.nodes * fleet_.metrics.size());
  for (std::size_t node = 0; node < shape_.nodes; ++node) {
    for (const NightFault& fault : faults_.faults) {
      if (fault.kind == NightFaultKind::swap && fault.unit == node_name(node) && fault.from_night == night_) swap(node);
    }
    const auto visit = static_cast<std::uint32_t>(night.visits.size());
    const drift::VisitState state = state_of(node);
    night.visits.push_back({.unit = unit_of_[node],
                            .cohort = cohort_of(node),
                            .state = state,
                            .run_sha256 = run,
                            .started = started,
                            .node = node_name(node)});
    for (std::size_t m = 0; m < fleet_.metrics.size(); ++m) {
      double value = 0;
      if (m < levels_) {
        double& last = last_[node * levels_ + m];
        last = faults_.rho * last + std::sqrt(1 - faults_.rho * faults_.rho) * fresh();
        value = value_of(node, m, last);
      } else {
        value = events_of(node, m, std::to_string(night_));
      }
      if (state == drift::VisitState::measured)
        night.readings.push_back({.series = first_series_[unit_of_[node]] + static_cast<std::uint32_t>(m),
                                  .visit = visit,
                                  .value = value,
                                  .samples = 1});
    }
  }
  return night;
}

drift::Night Nights::retests(const std::set<std::string>& nodes, int round) const {
  constexpr unsigned kMostRounds = 8;  // of a night, so that each has a number of its own
  drift::Night night{.date = shape_.first + std::chrono::days{night_}};
  const auto number = static_cast<unsigned>(round + 1) % kMostRounds;
  const std::string when = fmt::format("{} {}", night_, number);
  const std::string run = fmt::format("{:056x}{:08x}", number, static_cast<unsigned>(night_ + 1));
  const std::string started =
      fmt::format("{}T{:02}:00:00.000Z", drift::date_text(night.date + std::chrono::days{1}), 1 + number);
  for (std::size_t node = 0; node < shape_.nodes; ++node) {
    if (!nodes.contains(node_name(node)) || state_of(node) != drift::VisitState::measured) continue;
    const auto visit = static_cast<std::uint32_t>(night.visits.size());
    night.visits.push_back({.unit = unit_of_[node],
                            .cohort = cohort_of(node),
                            .retest = true,
                            .run_sha256 = run,
                            .started = started,
                            .node = node_name(node)});
    simulate::SeededRandom random(shape_.seed, {"retest", node_name(node), when});
    for (std::size_t m = 0; m < fleet_.metrics.size(); ++m) {
      double value = 0;
      if (m < levels_) {
        // Noise that lasts from night to night lasts for the hours until a test, too.
        const double rest = std::sqrt(1 - faults_.rho * faults_.rho);
        value = value_of(node, m, faults_.rho * last_[node * levels_ + m] + rest * noise(random));
      } else {
        value = events_of(node, m, when);
      }
      night.readings.push_back({.series = first_series_[unit_of_[node]] + static_cast<std::uint32_t>(m),
                                .visit = visit,
                                .value = value,
                                .samples = 1});
    }
  }
  return night;
}

std::expected<NightFaults, InputError> read_night_faults(std::string_view text, const std::string& where) {
  const auto document = parse_json(text, where);
  if (!document) return std::unexpected(document.error());
  if (auto problem = profiles::check_schema(*document, "night-faults.schema", where)) return std::unexpected(*problem);
  NightFaults all;
  for (const auto& one : document->value("faults", nlohmann::json::array())) {
    NightFault fault{.kind = one.at("kind").get<NightFaultKind>(),
                     .unit = one.value("unit", ""),
                     .metric = one.value("metric", ""),
                     .from_night = one.value("from_night", 0),
                     .sigma = one.value("sigma", 3.0),
                     .ratio = {},
                     .p = one.value("p", 1.0)};
    if (one.contains("ratio")) fault.ratio = one.at("ratio").get<double>();
    all.faults.push_back(std::move(fault));
  }
  const auto noise = document->value("noise", nlohmann::json::object());
  if (noise.contains("dist")) all.noise = noise.at("dist").get<NoiseKind>();
  all.sigma = noise.value("sigma", all.sigma);
  all.rho = noise.value("rho", all.rho);
  all.sigma_spread = noise.value("sigma_spread", all.sigma_spread);
  all.unit_spread = noise.value("unit_spread", all.unit_spread);
  all.night_spread = noise.value("night_spread", all.night_spread);
  return all;
}

}  // namespace assay::rehearse
