// nightly: false flags, nights to a flag, time and memory of the detector on made-up fleets.
//   nightly null NODES METRICS NIGHTS SEEDS [gauss|t5] [ROUNDS] [RHO]   flags of a fleet without fault, with so many
//                                             rounds of fresh tests a night and this correlation from night to night
//   nightly delay NODES METRICS SIGMA [gauss|t5] [RHO] [EVERY]   nights until a step is flagged, on one node in EVERY
//                                                           (400)
//   nightly year NODES METRICS NIGHTS                       seconds of judging, and the largest memory
//   nightly add NODES METRICS FILE                        seconds to add a night to a database, and its bytes
//   nightly series FALSE_FLAGS fall|rise FILE...            first flag of a series of numbers, one a night, from 0
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include <sys/resource.h>

#include <fmt/format.h>

#include "orchestrator/drift/detector.h"
#include "orchestrator/history/history.h"
#include "orchestrator/rehearse/nights.h"
#include "orchestrator/rehearse/rehearsal.h"

namespace assay {
namespace {

using drift::Detector;
using rehearse::NightFaults;
using rehearse::Nights;

NightFaults faults_of(const std::string& noise, double rho) {
  return {.noise = noise == "t5" ? rehearse::NoiseKind::t5 : rehearse::NoiseKind::gauss, .rho = rho};
}

int null(std::size_t nodes, std::size_t metrics, int nights, int seeds, const NightFaults& noise, int rounds) {
  std::size_t flags = 0;
  std::size_t confirmed = 0;
  std::map<drift::Rule, std::size_t> rules;
  for (int seed = 1; seed <= seeds; ++seed) {
    Nights source({.nodes = nodes, .metrics = metrics, .seed = static_cast<std::uint64_t>(seed)}, noise);
    rehearse::Rehearsal months(source, {}, rounds, 2);
    std::map<std::string, bool> seen;
    for (int i = 0; i < nights; ++i) {
      months.next();
      for (const auto& flag : months.report().flags) {
        const bool now = flag.state == drift::UnitState::confirmed;
        if (!seen.contains(flag.id)) ++rules[flag.rule];
        if (now && !seen[flag.id])
          fmt::print("seed {}, night {}: confirmed {} by {}, {} tests: {}\n", seed, i, flag.unit, flag.rule,
                     flag.retests.size(), flag.words);
        seen[flag.id] = seen[flag.id] || now;
      }
    }
    flags += seen.size();
    for (const auto& [id, yes] : seen) confirmed += yes ? 1 : 0;
  }
  const double periods = seeds * (nights - 12) / 30.0;
  fmt::print("{} series, {} seeds of {} nights, {}, correlation {}, {} rounds of tests: {} flags", nodes * metrics,
             seeds, nights, noise.noise, noise.rho, rounds, flags);
  for (const auto& [rule, count] : rules) fmt::print(", {} {}", count, rule);
  fmt::print("; {:.2f} in 30 nights, {} confirmed\n", static_cast<double>(flags) / periods, confirmed);
  return 0;
}

int delay(std::size_t nodes, std::size_t metrics, double sigma, NightFaults faults, std::size_t every) {
  constexpr int kFrom = 60, kNights = 120;
  faults.sigma_spread = 0;
  for (std::size_t node = 0; node < nodes; node += every)
    faults.faults.push_back(
        {.unit = fmt::format("n{:05}", node), .metric = "simulated.m00", .from_night = kFrom, .sigma = sigma});
  const std::size_t injected = faults.faults.size();
  const NightFaults noise = faults;
  Nights source({.nodes = nodes, .metrics = metrics}, std::move(faults));
  Detector detector(source.fleet(), {}, 2);
  std::map<std::string, int> found, confirmed;
  for (int i = 0; i < kNights; ++i) {
    detector.add(source.next());
    for (const auto& flag : detector.report().flags) {
      const bool right = flag.metric == "simulated.m00" && std::stoul(flag.node.substr(1)) % every == 0;
      if (right && i >= kFrom) found.emplace(flag.unit, i - kFrom + 1);
      if (right && flag.state == drift::UnitState::confirmed) confirmed.emplace(flag.unit, i - kFrom + 1);
    }
  }
  fmt::print("{} series, step of {} deviations on {}, {}, correlation {}", nodes * metrics, sigma, injected,
             noise.noise, noise.rho);
  for (const auto& [what, units] : {std::pair{"flagged", &found}, std::pair{"confirmed", &confirmed}}) {
    std::vector<int> nights;
    for (const auto& [unit, night] : *units) nights.push_back(night);
    std::ranges::sort(nights);
    fmt::print("; {} {}", nights.size(), what);
    if (!nights.empty())
      fmt::print(", median {} nights, nine tenths within {}", nights[nights.size() / 2],
                 nights[nights.size() * 9 / 10]);
  }
  fmt::print("\n");
  return 0;
}

int year(std::size_t nodes, std::size_t metrics, int nights) {
  Nights source({.nodes = nodes, .metrics = metrics}, {});
  Detector detector(source.fleet(), {}, 2);
  double wall_s = 0;
  double last_s = 0;
  for (int i = 0; i < nights; ++i) {
    const drift::Night night = source.next();
    const auto begin = std::chrono::steady_clock::now();
    detector.add(night);
    last_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    wall_s += last_s;
  }
  const auto begin = std::chrono::steady_clock::now();
  const std::size_t flags = detector.report().flags.size();
  const double report_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  fmt::print(
      "{} series x {} nights: {:.1f} s to judge ({:.0f} ns a reading), {:.3f} s the last night, {:.3f} s the "
      "report, {} flags, {} MB\n",
      nodes * metrics, nights, wall_s, wall_s * 1e9 / static_cast<double>(nodes * metrics) / nights, last_s, report_s,
      flags, used.ru_maxrss / 1024);
  return 0;
}

/// A night of measured figures, with the file from which the database can be made again, added twice to a new database.
int add(std::size_t nodes, std::size_t metrics, const std::string& file) {
  Nights source({.nodes = nodes, .metrics = metrics}, {});
  auto database = history::History::open(file, history::Access::create);
  if (!database) return 1;
  for (int i = 0; i < 2; ++i) {
    const drift::Night night = source.next();
    const drift::Fleet& fleet = source.fleet();
    history::Sweep sweep{.run_sha256 = fmt::format("{:064x}", i + 1),
                         .started = night.visits.front().started,
                         .night = night.date,
                         .verdict = "incomplete",
                         .label = "made up",
                         .raw = {}};
    for (const auto& visit : night.visits)
      sweep.visits.push_back({.unit = fleet.units[visit.unit], .cohort = fleet.cohorts[visit.cohort]});
    for (const auto& reading : night.readings)
      sweep.visits[reading.visit].figures.push_back(
          {.metric = fleet.metrics[fleet.series[reading.series].metric], .value = reading.value, .samples = 1});
    const auto begin = std::chrono::steady_clock::now();
    if (!database->add(sweep)) return 1;
    const double wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    std::uintmax_t beside = 0;
    for (const auto& one : std::filesystem::directory_iterator(file + ".raw")) beside += one.file_size();
    fmt::print("{} figures: {:.2f} s, {:.1f} MB in the file, {:.1f} MB beside it\n", night.readings.size(), wall_s,
               static_cast<double>(std::filesystem::file_size(file)) / 1e6, static_cast<double>(beside) / 1e6);
  }
  return 0;
}

/// The first flag of one unit whose figures are in `file`, with a budget of `false_flags` in 30 nights.
void one_series(const std::string& file, double false_flags, bool rise) {
  const drift::Fleet fleet{.units = {{.id = file, .kind = "node", .node = "n"}},
                           .metrics = {{.name = "series", .probe = "series", .lower_is_better = rise}},
                           .series = {{}},
                           .cohorts = {"one"}};
  drift::Policy policy;
  policy.false_flags.count = false_flags;
  Detector detector(fleet, policy);
  std::ifstream numbers(file);
  const drift::Date first{};
  int night = 0;
  for (double value = 0; numbers >> value; ++night) {
    detector.add({.date = first + std::chrono::days(night), .visits = {{.node = "n"}}, .readings = {{.value = value}}});
    const auto report = detector.report();
    if (report.flags.empty()) continue;
    const auto& flag = report.flags.front();
    fmt::print("{}: flagged at {}, onset {}, {}, ratio {:.3f}; h = {:.2f} and {:.2f}\n", file, night,
               (flag.onset - first).count(), flag.rule, flag.ratio, report.thresholds.h_small,
               report.thresholds.h_large);
    return;
  }
  fmt::print("{}: no flag in {} nights\n", file, night);
}

int run(const std::vector<std::string>& words) {
  const auto size = [&](std::size_t i) { return static_cast<std::size_t>(std::stoul(words.at(i))); };
  const auto noise = [&](std::size_t i) { return i < words.size() ? words[i] : std::string("gauss"); };
  if (words.at(0) == "series") {
    for (std::size_t i = 3; i < words.size(); ++i) one_series(words[i], std::stod(words.at(1)), words.at(2) == "rise");
    return 0;
  }
  const auto number = [&](std::size_t i, double otherwise) {
    return i < words.size() ? std::stod(words[i]) : otherwise;
  };
  if (words.at(0) == "null")
    return null(size(1), size(2), std::stoi(words.at(3)), std::stoi(words.at(4)), faults_of(noise(5), number(7, 0)),
                static_cast<int>(number(6, 0)));
  if (words.at(0) == "delay")
    return delay(size(1), size(2), std::stod(words.at(3)), faults_of(noise(4), number(5, 0)),
                 static_cast<std::size_t>(number(6, 400)));
  if (words.at(0) == "add") return add(size(1), size(2), words.at(3));
  if (words.at(0) == "year") return year(size(1), size(2), std::stoi(words.at(3)));
  return 2;
}

}  // namespace
}  // namespace assay

int main(int argc, char** argv) { return assay::run({argv + 1, argv + argc}); }
