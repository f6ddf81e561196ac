// site_evidence: readings of the site's meters, cut to the time in which an attempt held its load.
//
// The head reads the meters in watches, one process after the other, while the load runs on the nodes:
//
//   attempt (journal)            |=====================================|
//   load held (record of rank 0)        hold_begin_s |==============| hold_end_s    = the window
//   watch 1 (journal)    |-----------------------|
//   watch 2                                      |-----------------------------|
//   slots of one series            .  .  .  .  .  . [o][o][o][o][o] .  .  .
//
// All times are in s since 1970 by the head's clock. A node's clock may differ from it by a second: a window
// further outside of its attempt is refused. Only slots wholly inside the window are kept ([o]), from every watch
// (cut()). They must cover nine tenths of the window less two slots, which its ends may cut. The series of several
// watches become one measurement of a made-up record, one record for each attempt, with the conditions of the meters
// behind it; site_joins.h adds the figures that no meter has. The judge pools these records as those of any probe.
#include "orchestrator/judge/metering/site_evidence.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "orchestrator/judge/metering/site_joins.h"
#include "orchestrator/plan/metered.h"
#include "probes/core/utc_time.h"

namespace assay::judge {
namespace {

constexpr double kCovered = 0.9;          // of the load's time, by readings
constexpr double kClockDifference_s = 1;  // between the node that says when it held its load, and the head
constexpr double kEdges = 2;              // slots that the ends of the load may cut
constexpr double kSlotOfCounts_s = 1;     // the journal's times are later than the load's begin, earlier than its end

/// A time in which a load was held, in s since 1970 by the head's clock.
struct Window {
  double begin_s = 0, end_s = 0;
};

double seconds_of(std::chrono::system_clock::time_point time) {
  return std::chrono::duration<double>(time.time_since_epoch()).count();
}

std::optional<double> number_of(const Values& at, const char* name) {
  const auto found = at.find(name);
  return found == at.end() ? std::nullopt : number_in(found->second);
}

std::optional<double> condition_number(const Record& record, std::string_view name) {
  const auto found = std::ranges::find(record.conditions, name, &Condition::name);
  return found == record.conditions.end() ? std::nullopt : number_in(found->value);
}

/// When `attempt` held its load; why that is not known otherwise.
std::expected<Window, std::string> window_of(const Attempt& attempt, const Record& record) {
  const auto begin = utc_time(attempt.begin), end = utc_time(attempt.end);
  if (!begin || !end) return std::unexpected("The journal has no time of the attempt.");
  const Window whole{.begin_s = seconds_of(*begin), .end_s = seconds_of(*end)};
  const auto held = condition_number(record, "hold_begin_s"), left = condition_number(record, "hold_end_s");
  if (!held || !left) return whole;
  if (*held < whole.begin_s - kClockDifference_s || *left > whole.end_s + kClockDifference_s || *left <= *held)
    return std::unexpected(
        "The node dates its load outside of the attempt by the head's clock: their clocks differ by more than a "
        "second.");
  return Window{.begin_s = *held, .end_s = *left};
}

/// The numbers of those of `watches` that by the head's clock were not there in `window`.
std::set<int> outside(const std::vector<Watch>& watches, const Window& window) {
  std::set<int> numbers;
  for (const auto& watch : watches) {
    const auto begin = utc_time(watch.begin), end = utc_time(watch.end);
    if ((begin && seconds_of(*begin) > window.end_s) || (end && seconds_of(*end) < window.begin_s))
      numbers.insert(watch.number);
  }
  return numbers;
}

/// The samples of `measured` whose slots are in `window`.
std::vector<double> cut(const Measurement& measured, double begin_s, double interval_s, const Window& window) {
  std::vector<double> inside;
  for (std::size_t i = 0; i < measured.samples.size(); ++i) {
    const double slot_s = begin_s + static_cast<double>(i) * interval_s;
    if (slot_s >= window.begin_s && slot_s + interval_s <= window.end_s) inside.push_back(measured.samples[i]);
  }
  return inside;
}

/// One attempt's record, put together from the watches.
class Cutting {
 public:
  /// `outside`: numbers of watches that began after the load was held, or were over before.
  Cutting(const WatchRecords& watches, const Window& window, std::set<int> outside)
      : watches_(watches), window_(window), outside_(std::move(outside)) {}

  /// The power of each rack that take() took.
  [[nodiscard]] const std::vector<RackPower>& racks() const { return racks_; }

  Record take(SiteEvidence& site) {
    Record made;
    for (const auto& [number, record] : watches_.records) {
      if (!is_of_load(number, record)) continue;
      made.start = record.start;
      made.end = record.end;
      for (const auto& measured : record.measurements) add(record.start.probe, measured);
    }
    for (auto& [key, part] : parts_) {
      const double held_s = window_.end_s - window_.begin_s;
      const double covered = part.covered_s / std::max(held_s - kEdges * part.interval_s, part.interval_s);
      if (covered < kCovered) {
        site.missing[part.measured.subject] =
            fmt::format("Readings cover {:.0f} % of the {:.0f} s of the load, {:.0f} % are required.",
                        100 * std::min(covered, 1.0), held_s, 100 * kCovered);
        continue;
      }
      add_conditions(part, made);
      if (part.measured.metric == "total_power")
        racks_.push_back({.rack = part.measured.subject.id,
                          .power_w = part.measured.samples,
                          .interval_s = part.interval_s,
                          .held_s = held_s,
                          .meters = part.meters});
      made.measurements.push_back(std::move(part.measured));
    }
    return made;
  }

 private:
  struct Part {
    Measurement measured;
    double covered_s = 0, interval_s = 0;
    std::set<std::string> meters;
    std::string probe;  ///< whose watches it is of
  };

  /// Whether a watch was there while the load was held. The next one begins before the attempt has ended; it has seen
  /// no event of this load and no reading of it, so it says nothing about it.
  [[nodiscard]] bool is_of_load(int number, const Record& record) const {
    return !outside_.contains(number) || std::ranges::any_of(record.measurements, [&](const Measurement& measured) {
      const auto begin_s = number_of(measured.at, "begin_s"), interval_s = number_of(measured.at, "interval_s");
      return begin_s && interval_s && *interval_s > 0 && !cut(measured, *begin_s, *interval_s, window_).empty();
    });
  }

  void add(const std::string& probe, const Measurement& measured) {
    const auto begin_s = number_of(measured.at, "begin_s"), interval_s = number_of(measured.at, "interval_s");
    if (!begin_s && !interval_s && measured.subject.kind == "switch_port") return add_counts(probe, measured);
    if (!begin_s && !interval_s) return add_whole(probe, measured);
    if (!begin_s || !interval_s || !(*interval_s > 0)) return;
    auto inside = cut(measured, *begin_s, *interval_s, window_);
    if (inside.empty()) return;
    Values at = measured.at;
    for (const char* coordinate : {"begin_s", "interval_s", "meter", "meters"}) at.erase(coordinate);
    Part& part = parts_[{measured.metric, measured.subject, at}];
    part.probe = probe;
    part.meters.merge(meters_in(measured.at));
    part.interval_s = std::max(part.interval_s, *interval_s);
    part.covered_s += static_cast<double>(inside.size()) * *interval_s;
    if (part.measured.samples.empty()) {
      part.measured = measured;
      part.measured.at = std::move(at);
      part.measured.samples = std::move(inside);
    } else {
      part.measured.samples.insert(part.measured.samples.end(), inside.begin(), inside.end());
    }
  }

  /// A figure of the whole watch, such as the effect of a failover: it is no series that the load's time cuts.
  void add_whole(const std::string& probe, const Measurement& measured) {
    Part& part = parts_[{measured.metric, measured.subject, measured.at}];
    part.probe = probe;
    part.measured = measured;
    part.meters.insert(measured.subject.id);
    part.covered_s = window_.end_s - window_.begin_s;
    part.interval_s = 1;
  }

  /// What a port counted from the first reading of a watch to the last. Of two watches the one that has more of the
  /// load's time counts: the next one begins when the load is over.
  void add_counts(const std::string& probe, const Measurement& measured) {
    const auto from_s = number_of(measured.at, "from_s"), to_s = number_of(measured.at, "to_s");
    if (!from_s || !to_s) return;
    const double covered_s = std::min(*to_s, window_.end_s) - std::max(*from_s, window_.begin_s);
    Values at = measured.at;
    for (const char* coordinate : {"from_s", "to_s"}) at.erase(coordinate);
    Part& part = parts_[{measured.metric, measured.subject, at}];
    if (!part.measured.samples.empty() && part.covered_s >= covered_s) return;
    part.probe = probe;
    part.measured = measured;
    part.measured.at = std::move(at);
    part.covered_s = std::max(covered_s, 0.0);
    part.interval_s = kSlotOfCounts_s;
  }

  void add_conditions(const Part& part, Record& made) const {
    const Subject& subject = part.measured.subject;
    for (const auto& [number, record] : watches_.records) {
      if (record.start.probe != part.probe || !is_of_load(number, record)) continue;
      for (const auto& one : record.conditions) {
        const bool of_meter = one.subject.kind == "meter" && part.meters.contains(one.subject.id);
        if (one.subject.kind != "node" && one.subject != subject && !of_meter) continue;
        const bool known = std::ranges::any_of(made.conditions, [&](const Condition& other) {
          return other.name == one.name && other.subject == subject && other.value == one.value;
        });
        if (!known) made.conditions.push_back({.name = one.name, .subject = subject, .value = one.value});
      }
    }
  }

  const WatchRecords& watches_;
  Window window_;
  std::set<int> outside_;
  std::map<std::tuple<std::string, Subject, Values>, Part> parts_;
  std::vector<RackPower> racks_;
};

/// The same of ports of switches, and of single counters of them.
void name_unread_ports(const plan::Plan& plan, const WatchRecords& watches, SiteEvidence& site) {
  std::map<std::string, std::vector<Subject>> ports;  // by switch
  for (const auto& port : plan::cabled_ports(plan.site)) ports[port.leaf].push_back(port.subject());
  for (const auto& [number, record] : watches.records) {
    std::map<Subject, std::string> metrics, why;
    for (const auto& one : record.conditions) {
      const auto* text = std::get_if<std::string>(&one.value);
      if (text == nullptr) continue;
      if (one.name == "uncounted") metrics[one.subject] = *text;
      if (one.name == "uncounted_why") why[one.subject] = *text;
      if (one.name != "unread") continue;
      const std::string words = fmt::format("Not read: {}.", *text);
      site.missing.insert_or_assign(one.subject, words);
      if (one.subject.kind == "meter")
        for (const auto& port : ports[one.subject.id]) site.missing.insert_or_assign(port, words);
    }
    for (const auto& [subject, names] : metrics) {
      for (std::size_t at = 0; at <= names.size();) {
        const std::size_t end = std::min(names.find(',', at), names.size());
        site.not_joined[{names.substr(at, end - at), subject}] = fmt::format("Not counted: {}.", why[subject]);
        at = end + 1;
      }
    }
  }
}

/// Why the watches have nothing of a subject: the words of the companion for its meters.
void name_unread(const plan::Plan& plan, const WatchRecords& watches, SiteEvidence& site) {
  std::string words;
  for (const auto& [number, record] : watches.records) {
    for (const auto& one : record.conditions) {
      const auto* text = one.name == "meters_unread" ? std::get_if<std::string>(&one.value) : nullptr;
      if (text != nullptr) words = *text;
    }
    if (record.end.status != Status::complete) words = record.end.reason;
  }
  name_unread_ports(plan, watches, site);
  for (const auto& meter : plan.site.meters) {
    // "pdu-7 at 10.0.0.7: no answer within 2 s; pdu-8 at …": the part that begins with the meter's name.
    auto at = words.starts_with(meter.name + " ") ? 0 : words.find("; " + meter.name + " ");
    if (at == std::string::npos) continue;
    if (at > 0) at += 2;
    const std::string reason = words.substr(at, words.find("; ", at) - at);
    for (const auto& subject : {meter.subject_of(), Subject{.kind = "rack", .id = meter.rack}})
      site.missing.try_emplace(subject, fmt::format("Not read: {}.", reason));
  }
}

}  // namespace

std::string watch_record_path(int number, const std::string& probe) {
  return fmt::format("records/site/{}/{}.jsonl", number, probe);
}

std::string watch_log_path(int number, const std::string& probe) {
  return fmt::format("logs/site/{}/{}.log", number, probe);
}

WatchRecords watch_records(const plan::Plan& plan, const std::vector<Watch>& watches, const EvidenceReader& evidence) {
  WatchRecords all;
  for (const auto& watch : watches) {
    const auto probe = plan.probes.find(watch.probe);
    const std::string path = watch_record_path(watch.number, watch.probe);
    const auto file = std::ranges::find(watch.evidence, path, &EvidenceFile::path);
    if (probe == plan.probes.end() || file == watch.evidence.end()) {
      all.refused = fmt::format("watch {} of {} left no record: {}", watch.number, watch.probe, watch.reason);
      continue;
    }
    auto timed = evidence.record(*file, probe->second.description, "");
    if (!timed) {
      all.refused = fmt::format("the record of watch {} is refused: {}", watch.number, timed.error().text());
      continue;
    }
    Record& record = timed->record;
    if (record.start.host.contains(plan::kSimulated) != plan.simulation.has_value()) {
      all.refused =
          fmt::format("the record of watch {} {}", watch.number,
                      plan.simulation ? "was measured, and the run is a simulation" : "is made up by a simulation");
      continue;
    }
    all.records.emplace(watch.number, std::move(record));
  }
  return all;
}

SiteEvidence site_evidence(const plan::Plan& plan, const plan::Step& step, const StepEvidence& found,
                           const Journal& journal, const EvidenceReader& evidence) {
  SiteEvidence site{.step = found};
  site.step.records.clear();
  site.step.others.assign(found.records.size(), {});
  site.step.reason = "The meters were not read during the load.";
  std::vector<std::string> paths = found.paths.list();
  const auto attempts = journal.attempts.of(step.id);
  for (std::size_t i = 0; i < found.records.size(); ++i) {
    const auto attempt = std::ranges::find(attempts, found.numbers[i], &Attempt::number);
    std::vector<Watch> during;
    std::ranges::copy_if(journal.watches, std::back_inserter(during), [&](const Watch& watch) {
      return watch.begin <= attempt->end && (watch.end.empty() || watch.end >= attempt->begin);
    });
    const WatchRecords watches = watch_records(plan, during, evidence);
    for (const auto& watch : during) {
      for (const auto& file : watch.evidence)
        if (std::ranges::find(paths, file.path) == paths.end()) paths.push_back(file.path);
    }
    if (!watches.refused.empty()) site.step.reason = fmt::format("The meters were not read: {}.", watches.refused);
    const auto window = window_of(*attempt, found.records[i]);
    if (!window) site.step.reason = window.error();
    Record made;
    if (window) {
      Cutting cutting(watches, *window, outside(during, *window));
      made = cutting.take(site);
      join_figures({.plan = plan,
                    .step = step,
                    .load = found.records[i],
                    .watches = watches.records,
                    .begin_s = window->begin_s,
                    .end_s = window->end_s},
                   cutting.racks(), made, site);
    }
    site.step.records.push_back(std::move(made));
    name_unread(plan, watches, site);
  }
  site.step.paths = std::move(paths);
  return site;
}

bool is_untold(const SiteEvidence& site, const std::string& metric, const Subject& subject) {
  if (site.missing.contains(subject) || site.not_joined.contains({metric, subject})) return false;
  return !site.step.records.empty() && std::ranges::all_of(site.step.records, [&](const Record& record) {
    return std::ranges::any_of(record.measurements,
                               [&](const Measurement& measured) { return measured.subject == subject; });
  });
}

std::string why_missing(const SiteEvidence& site, const std::string& metric, const Subject& subject) {
  const auto unjoined = site.not_joined.find({metric, subject});
  if (unjoined != site.not_joined.end()) return unjoined->second;
  const auto why = site.missing.find(subject);
  return why == site.missing.end() ? site.step.reason : why->second;
}

std::string words_of(const SiteEvidence& site, const std::string& metric, const Subject& subject) {
  const auto found = site.words.find({metric, subject});
  return found == site.words.end() ? "" : found->second;
}

}  // namespace assay::judge
