// metered_run: a load of two nodes in racks odd and even, and meters that were read meanwhile, all made up in memory.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "orchestrator/judge/metering/site_evidence.h"
#include "orchestrator/plan/metered.h"
#include "probes/core/utc_time.h"
#include "tests/unit/fixture.h"

namespace assay::judge::test {

/// The time of the attempt, and of the load in it, in s after its begin.
inline constexpr const char *kBegin = "2026-11-23T10:00:00.000Z", *kEnd = "2026-11-23T10:01:00.000Z";
inline constexpr double kHeldFrom_s = 20, kHeldTo_s = 40;

inline constexpr Metric kFeedMetrics[] = {
    {.name = "power", .unit = "W", .better = Better::neither, .meaning = "of a meter"},
    {.name = "total_power", .unit = "W", .better = Better::neither, .meaning = "of a rack"},
    {.name = "energy_efficiency", .unit = "FLOP/J", .better = Better::higher, .meaning = "of a rack"}};
inline constexpr ConditionSpec kFeedConditions[] = {
    {.name = "meter_doubts", .meaning = "what is doubtful, where it is read", .recorded = Recorded::if_present},
    {.name = "accuracy_declared", .meaning = "accuracy, where it is stated", .recorded = Recorded::if_reported},
    {.name = "averaging_s", .meaning = "averaging, where it is stated", .recorded = Recorded::if_reported},
    {.name = "meters_unread",
     .meaning = "why meters were not read, where some were not",
     .recorded = Recorded::if_occurred}};
inline constexpr ProbeSpec kFeedSpec{.name = plan::kSiteCompanion,
                                     .companion = true,
                                     .measures = "Meters.",
                                     .method = "None.",
                                     .source = "None.",
                                     .metrics = kFeedMetrics,
                                     .conditions = kFeedConditions};

/// What one watch read of the meter pdu, the feed of rack odd: one value a second from `from_s` after the attempt's
/// begin.
struct Read {
  double from_s = 0;
  std::vector<double> values = std::vector<double>(60, 1000);
  std::string doubts = "none", unread;
  bool simulated = false;
  std::optional<double> accuracy = {}, averaging_s = {};
  double interval_s = 1;
};

class MeteredRun {
 public:
  plan::Plan plan;
  plan::Step step;
  Journal journal;
  std::map<std::string, std::string> files;

  MeteredRun() {
    plan.site = fixture::site(2);
    plan.site.meters = {Meter{.name = "pdu", .subject = "feed", .rack = "odd"}};
    plan.probes[plan::kSiteCompanion] = {
        .sha256 = "", .description = *read_description(describe(kFeedSpec).dump(), plan::kSiteCompanion)};
    step.id = "load";
    step.probe = plan::kLoadProbe;
    step.nodes = {"n1", "n2"};
    journal.attempts.push_back(
        {.step = step.id, .number = 1, .node = "n1", .reason = "", .begin = kBegin, .end = kEnd, .evidence = {}});
    found_.records.push_back({});
    found_.others.push_back({});
    found_.numbers.push_back(1);
    hold(kHeldFrom_s, kHeldTo_s);
  }

  /// The attempt ends so late, in UTC, and so do the watches that follow.
  void end_at(const std::string& time) {
    end_ = time;
    journal.attempts.change(0, [&](Attempt& one) { one.end = time; });
  }

  /// Rank 0's record of the load.
  Record& load() { return found_.records.at(0); }

  /// Rank 0 says that the load was held from and to, in s after the attempt's begin.
  void hold(double from_s, double to_s) {
    load().conditions = {{.name = "hold_begin_s", .subject = {}, .value = begin_s() + from_s},
                         {.name = "hold_end_s", .subject = {}, .value = begin_s() + to_s}};
  }

  void watch(int number, const Read& read) {
    std::ostringstream out;
    Start start{.probe = plan::kSiteCompanion, .revision = 1, .parameters = {}, .host = {{"name", std::string("h")}}};
    if (read.simulated) start.host.emplace(plan::kSimulated, true);
    Recorder recorder(out, kFeedSpec, start);
    recorder.measurement(
        "total_power", {.samples = read.values, .warmup = {}, .stopped = "time_cap"}, {.kind = "rack", .id = "odd"},
        {{"begin_s", begin_s() + read.from_s}, {"interval_s", read.interval_s}, {"meters", std::string("pdu")}});
    recorder.condition("meter_doubts", read.doubts, {.kind = "meter", .id = "pdu"});
    if (read.accuracy) recorder.condition("accuracy_declared", *read.accuracy, {.kind = "meter", .id = "pdu"});
    if (read.averaging_s) recorder.condition("averaging_s", *read.averaging_s, {.kind = "meter", .id = "pdu"});
    if (!read.unread.empty()) recorder.condition("meters_unread", read.unread);
    recorder.end({.status = Status::complete, .reason = ""});
    const std::string path = watch_record_path(number, plan::kSiteCompanion);
    files[path] = out.str();
    journal.watches.push_back({.number = number,
                               .probe = plan::kSiteCompanion,
                               .outcome = AttemptOutcome::exited,
                               .reason = "",
                               .begin = kBegin,
                               .end = end_,
                               .evidence = {{.path = path, .sha256 = "", .bytes = out.str().size()}}});
  }

  [[nodiscard]] SiteEvidence site() const {
    return site_evidence(
        plan, step, found_, journal,
        [this](const EvidenceFile& file) -> std::expected<std::string, InputError> { return files.at(file.path); });
  }

  /// The only measurement of `metric`, which must be there.
  static Measurement only(const SiteEvidence& site, const std::string& metric) {
    std::vector<Measurement> all;
    for (const auto& record : site.step.records) {
      for (const auto& one : record.measurements)
        if (one.metric == metric) all.push_back(one);
    }
    EXPECT_EQ(all.size(), 1U) << metric;
    return all.empty() ? Measurement{} : all.front();
  }

 private:
  static double begin_s() { return std::chrono::duration<double>(utc_time(kBegin)->time_since_epoch()).count(); }

  StepEvidence found_;
  std::string end_ = kEnd;
};

}  // namespace assay::judge::test
