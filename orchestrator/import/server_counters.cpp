// server_counters: joins samples and attempts by time, then asks the rule of knees.
#include "orchestrator/import/server_counters.h"

#include <chrono>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "orchestrator/judge/locate/knees.h"
#include "probes/core/scale.h"
#include "probes/core/text.h"
#include "probes/core/utc_time.h"

namespace assay::imports {
namespace {

using Time = std::chrono::system_clock::time_point;

struct Sample {
  Time begin, end;
  double value = 0;
};

/// The samples of each counter of each server by its words, "cpu_busy of stor1", in the order of the file.
struct Counter {
  std::string unit;
  std::vector<Sample> samples;
};
using Counters = std::map<std::string, Counter>;

std::string text_at(const judge::Figure& figure, const char* name) {
  const auto found = figure.at.find(name);
  const auto* text = found == figure.at.end() ? nullptr : std::get_if<std::string>(&found->second);
  return text == nullptr ? "" : *text;
}

Counters counters_of(const judge::Import& import) {
  Counters all;
  for (const auto& figure : import.figures) {
    const auto end = utc_time(text_at(figure, "time"));
    const auto interval = figure.at.find("interval_s");
    const auto* seconds = interval == figure.at.end() ? nullptr : std::get_if<std::int64_t>(&interval->second);
    if (!end || seconds == nullptr) continue;
    const std::string part = text_at(figure, "part");
    auto& counter = all[fmt::format("{}{}{} of {}", figure.metric, part.empty() ? "" : " of ", harmless(part),
                                    harmless(text_at(figure, "host")))];
    counter.unit = figure.unit;
    counter.samples.push_back({.begin = *end - std::chrono::seconds(*seconds), .end = *end, .value = figure.value});
  }
  return all;
}

/// The mean of the samples within `attempt`; nothing without one.
std::optional<double> mean_within(const std::vector<Sample>& samples, const judge::Attempt& attempt) {
  const auto begin = utc_time(attempt.begin), end = utc_time(attempt.end);
  double sum = 0, count = 0;
  for (const auto& sample : samples) {
    if (!begin || !end || sample.begin < *begin || sample.end > *end) continue;
    sum += sample.value;
    ++count;
  }
  return count == 0 ? std::nullopt : std::optional(sum / count);
}

/// The counter that rose most in the group of `knee` that falls out, in words.
std::string risen_words(const Counters& counters, const judge::KneeFound& knee, const judge::Attempts& attempts) {
  std::vector<std::pair<bool, judge::Attempt>> all;  // whether it is of the group that falls out
  for (const auto& point : knee.points) {
    const bool falls = point.nodes == knee.lost && !point.kept;
    if (!falls && !(point.kept && point.nodes <= knee.kept)) continue;
    for (auto& attempt : attempts.of(point.step)) all.emplace_back(falls, std::move(attempt));
  }
  std::optional<judge::CounterRise> most;
  std::string unit;
  bool joined = false;
  for (const auto& [words, counter] : counters) {
    std::vector<double> before, at;
    for (const auto& [falls, attempt] : all) {
      if (const auto value = mean_within(counter.samples, attempt)) (falls ? at : before).push_back(*value);
    }
    joined = joined || (!before.empty() && !at.empty());
    constexpr double kLeast = 0.01;  // a hundredth of a processor or disk, of a queue or a rate
    auto rise = judge::rise_of(words, before, at, kLeast);
    if (!rise || (most && rise->deviations <= most->deviations)) continue;
    most = std::move(rise);
    unit = counter.unit;
  }
  if (!joined) return "its attempts contain no sample: compare the clocks, and sample more often";
  if (!most) return "no counter of the server rose there";
  return fmt::format("{} rose there most: {}, {} before", most->counter.name, for_people(most->counter.at, unit),
                     for_people(most->counter.before, unit));
}

}  // namespace

std::string server_text(const judge::Import& import, const judge::Verdict& verdict, const judge::Attempts& attempts) {
  const Counters counters = counters_of(import);
  std::string text;
  for (const auto& knee : verdict.knees) {
    if (counters.empty() || knee.lost == 0) continue;
    text += fmt::format("{}{}: {} Imported, by the server's clock: {}\n", knee.requirement,
                        knee.rail.empty() ? "" : " on rail " + knee.rail, harmless(knee.reason),
                        risen_words(counters, knee, attempts));
  }
  return text;
}

}  // namespace assay::imports
