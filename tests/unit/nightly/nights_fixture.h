// nights_fixture: a history of made-up measured nights, and a report with one flag.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <stdexcept>
#include <string>

#include <fmt/format.h>

#include "orchestrator/drift/report.h"
#include "orchestrator/history/history.h"

namespace assay::fixture {

inline constexpr drift::Date kFirst = std::chrono::year(2026) / 3 / 1;

/// A folder of its own below the temporary one, removed at the end.
struct Folder {
  std::string path;
  Folder() {
    std::string form = std::filesystem::temp_directory_path() / "assay-nightly-XXXXXX";
    if (::mkdtemp(form.data()) == nullptr) throw std::runtime_error("no temporary folder");
    path = form;
  }
  ~Folder() { std::filesystem::remove_all(path); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
};

struct Nights {
  int nodes = 6, nights = 10;
  int slow = 2;  ///< this node is 10 % slower from night `from` on
  int from = 6;
  int busy_night = 4;  ///< in which node 0 is busy
  bool simulated = false;
  double rate = 1e12;  ///< of each node, in FLOP/s
};

inline std::string node_name(int node) { return fmt::format("n{}", node + 1); }
inline std::string unit_id(int node) { return fmt::format("gpu:10{}", node + 1); }

inline history::UnitVisit visit_of(const Nights& given, int node, int night) {
  const bool busy = node == 0 && night == given.busy_night;
  history::UnitVisit visit{.unit = {.id = unit_id(node),
                                    .kind = "gpu",
                                    .serial = true,
                                    .node = node_name(node),
                                    .slot = "0000:1b:00.0",
                                    .leaf = fmt::format("l{}", node / 3)},
                           .cohort = "H200",
                           .state = busy ? drift::VisitState::busy : drift::VisitState::measured,
                           .figures = {}};
  if (busy) return visit;
  const double value =
      given.rate * (1 + 0.001 * ((node * 7 + night * 3) % 5)) * (node == given.slow && night >= given.from ? 0.9 : 1);
  visit.figures.push_back({.metric = {.name = "cuda_gemm.rate", .probe = "cuda_gemm", .revision = 1, .unit = "FLOP/s"},
                           .value = value,
                           .uncertainty = 0,
                           .samples = 10});
  return visit;
}

/// The database with `given` nights.
inline history::History history_of(const std::string& path, const Nights& given) {
  auto history =
      history::History::open(path, given.simulated ? history::Access::create_simulation : history::Access::create);
  if (!history) throw std::runtime_error(history.error().error.text());
  for (int night = 0; night < given.nights; ++night) {
    const drift::Date date = kFirst + std::chrono::days(night);
    history::Sweep sweep{.run_sha256 = fmt::format("{:064x}", night + 1),
                         .started = drift::date_text(date) + "T23:00:00.000Z",
                         .night = date,
                         .origin = given.simulated ? history::Origin::simulated : history::Origin::measured,
                         .verdict = "incomplete",
                         .label = "test",
                         .visits = {},
                         .raw = ""};
    for (int node = 0; node < given.nodes; ++node) sweep.visits.push_back(visit_of(given, node, night));
    if (const auto added = history->add(sweep); !added) throw std::runtime_error(added.error().error.text());
  }
  return std::move(*history);
}

/// A report as of the last night, in which the slow unit is confirmed.
inline drift::DriftReport report_of(const Nights& given) {
  drift::DriftReport report;
  report.as_of = kFirst + std::chrono::days(given.nights - 1);
  report.simulated = given.simulated;
  report.policy_sha256 = std::string(64, 'a');
  report.history_sha256 = std::string(64, 'b');
  report.nights = static_cast<std::size_t>(given.nights);
  report.series = static_cast<std::size_t>(given.nodes);
  report.coverage.units = static_cast<std::size_t>(given.nodes);
  report.coverage.measured = report.coverage.units;
  drift::Flag flag;
  flag.id = "0123456789ab";
  flag.unit = unit_id(given.slow);
  flag.kind = "gpu";
  flag.node = node_name(given.slow);
  flag.serial = true;
  flag.metric = "cuda_gemm.rate";
  flag.state = drift::UnitState::confirmed;
  flag.raised = kFirst + std::chrono::days(given.from + 1);
  flag.onset = kFirst + std::chrono::days(given.from);
  flag.ratio = 0.9;
  flag.ratio_low = 0.89;
  flag.ratio_high = 0.91;
  flag.words = "cuda_gemm.rate is 10 % lower";
  flag.arithmetic = {
      .x = -0.1, .shift = 27.6, .m = 0, .s = 0.002, .n = 6, .T = -40, .z = 5, .C = 20, .h = 14.9, .rho = 0, .peers = 5};
  report.flags.push_back(flag);
  report.states[flag.unit] = flag.state;
  return report;
}

}  // namespace assay::fixture
