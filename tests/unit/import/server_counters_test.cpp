// Counters of a server, as sysstat 12.6.1 printed them here (the name of the host is made up), beside the attempts of
// a knee.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "orchestrator/import/server_counters.h"
#include "tests/unit/import/import_fixture.h"

namespace assay::imports {
namespace {

using namespace fixture;

constexpr const char* kOutput = "sadf_12.6.json";

Values at(const char* second, const char* part = "") {
  Values values = {{"host", std::string("stor1")}, {"time", fmt::format("2026-11-28T13:54:{}.000Z", second)}};
  if (*part != '\0') values["part"] = std::string(part);
  return values;
}

/// The busy share of the processors of stor1 at every second of a minute, by `busy`.
judge::Import server(double (*busy)(int second)) {
  judge::Import import{.source = {.tool = "sadf"}, .figures = {}, .left_out = {}};
  for (int i = 1; i < 60; ++i)
    import.figures.push_back({.metric = "cpu_busy",
                              .unit = "1",
                              .statistic = "mean",
                              .at = {{"host", std::string("stor1")},
                                     {"interval_s",
                                      std::int64_t {
                                        1
                                      }},
                                     { "time",
                                       fmt::format("2026-11-28T13:54:{:02}.000Z", i) }},
                              .value = busy(i),
                              .from = ""});
  return import;
}

judge::Attempt attempt(const char* step, int number, int begin, int end) {
  return {.step = step,
          .number = number,
          .outcome = AttemptOutcome::exited,
          .begin = fmt::format("2026-11-28T13:54:{:02}.500Z", begin),
          .end = fmt::format("2026-11-28T13:54:{:02}.500Z", end)};
}

/// Four nodes keep a figure and eight do not, two attempts of each.
judge::Verdict with_knee() {
  judge::Verdict verdict;
  verdict.knees.push_back({.requirement = "storage.share",
                           .state = judge::KneeState::found,
                           .kept = 4,
                           .lost = 8,
                           .reason = "Knee at 4 nodes: they keep the figure, and 8 do not.",
                           .points = {{.nodes = 4, .value = 1, .kept = true, .step = "0001-s-4"},
                                      {.nodes = 8, .value = 0.5, .kept = false, .step = "0002-s-8"}}});
  return verdict;
}
judge::Attempts attempts() {
  return {attempt("0001-s-4", 1, 0, 9), attempt("0002-s-8", 1, 10, 19), attempt("0001-s-4", 2, 20, 29),
          attempt("0002-s-8", 2, 30, 39)};
}

TEST(ServerCounters, are_figures_at_their_time) {
  const auto import = import_of("sadf", kOutput);
  EXPECT_EQ(value(import, "run_queue", "mean", at("15")), 77);
  EXPECT_EQ(value(import, "run_queue", "mean", at("16")), 38);
  EXPECT_EQ(value(import, "cpu_busy", "mean", at("15")), 1);
  EXPECT_EQ(value(import, "nfsd_calls", "mean", at("15")), 0);
  EXPECT_EQ(value(import, "disk_busy", "mean", at("15", "vda")), 0);
  EXPECT_EQ(value(import, "port_busy", "mean", at("15", "eth0")), 0);
}

TEST(ServerCounters, of_a_local_time_are_refused) {
  EXPECT_NE(refusal("sadf", changed(recorded(kOutput), "\"utc\": 1", "\"utc\": 0")).find("is not UTC"),
            std::string::npos);
  EXPECT_NE(refusal("sadf", changed(recorded(kOutput), "\"idle\": 0.00", "\"idle\": 101")).find("idle"),
            std::string::npos);
  EXPECT_NE(refusal("sadf", "{\"sysstat\": {\"hosts\": []}}"), "imported");
}

TEST(ServerCounters, the_one_that_rose_at_a_knee_is_named_by_the_time_of_its_attempts) {
  const auto in_eights = [](int i) { return i > 10 && i < 20 ? 0.97 : i > 30 && i < 40 ? 0.95 : 0.3; };
  EXPECT_EQ(server_text(server(in_eights), with_knee(), attempts()),
            "storage.share: Knee at 4 nodes: they keep the figure, and 8 do not. Imported, by the server's clock: "
            "cpu_busy of stor1 rose there most: 0.96, 0.3 before\n");
}

TEST(ServerCounters, that_did_not_rise_and_that_cannot_be_joined_are_not_named) {
  const auto even = server_text(server([](int i) { return i % 2 == 0 ? 0.3 : 0.31; }), with_knee(), attempts());
  EXPECT_NE(even.find("no counter of the server rose there"), std::string::npos) << even;
  const auto elsewhere = server_text(server([](int) { return 0.9; }), with_knee(), {attempt("0001-s-4", 1, 0, 9)});
  EXPECT_NE(elsewhere.find("its attempts contain no sample"), std::string::npos) << elsewhere;
  auto none = with_knee();
  none.knees.front().lost = 0;
  EXPECT_EQ(server_text(server([](int) { return 0.9; }), none, attempts()), "");
}

}  // namespace
}  // namespace assay::imports
