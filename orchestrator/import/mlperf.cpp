// mlperf: the log of one run of MLPerf Training, lines of a job's output that begin with ":::MLLOG", and the
// summary.json that DLIO writes for MLPerf Storage. Its MB are MiB and its GB are GiB.
#include <algorithm>
#include <optional>
#include <span>
#include <vector>

#include <fmt/format.h>

#include "orchestrator/import/import.h"
#include "orchestrator/import/reading.h"
#include "probes/core/json_io.h"
#include "probes/core/statistics.h"

namespace assay::imports {
namespace {

using nlohmann::json;

constexpr std::string_view kMark = ":::MLLOG";
constexpr double kMillisecond_s = 1e-3;
constexpr std::size_t kFirstSteps = 3;    // not counted: the second one takes up to twice as long
constexpr std::size_t kFewestSteps = 20;  // below, a 95th percentile is the longest step
constexpr double kLong = 1.1;             // a long step, in medians
constexpr const char* kTrainingHint = "import the log of one whole run, as result_0.txt of a submission";

/// Coordinates of a run.
constexpr std::string_view kFacts[] = {"submission_benchmark", "submission_division", "submission_org",
                                       "submission_platform",  "submission_status",   "global_batch_size",
                                       "max_sequence_length",  "train_samples",       "seed"};

/// One event and its line.
struct Event {
  std::string from;
  json whole;

  [[nodiscard]] const json* field(const char* name) const {
    const auto found = whole.find(name);
    return found == whole.end() ? nullptr : &*found;
  }
  [[nodiscard]] std::string key() const { return field("key")->get<std::string>(); }
  /// Of its metadata; nullptr if there is none.
  [[nodiscard]] const json* about(const char* name) const {
    const json* metadata = field("metadata");
    if (metadata == nullptr || !metadata->is_object()) return nullptr;
    const auto found = metadata->find(name);
    return found == metadata->end() ? nullptr : &*found;
  }
};

/// The event in a line; nothing if it has none. mpirun, srun and others put a rank before the mark.
std::optional<Event> event_in(const TextLine& line) {
  const auto at = line.text.find(kMark);
  if (at == std::string_view::npos) return std::nullopt;
  Event event{.from = line.from()};
  auto read = parse_json(trimmed(line.text.substr(at + kMark.size())), line.from());
  if (!read) throw ImportRefusal{line.from(), "is no event: " + read.error().what, kTrainingHint};
  event.whole = std::move(*read);
  const json* key = event.whole.is_object() ? event.field("key") : nullptr;
  const json* time = key != nullptr ? event.field("time_ms") : nullptr;
  if (key == nullptr || !key->is_string() || time == nullptr || !time->is_number_integer())
    throw ImportRefusal{line.from(), "is an event without a key or a whole time_ms", kTrainingHint};
  return event;
}

class TrainingLog {
 public:
  TrainingLog(judge::ImportSource& source, Figures& figures) : source_(source), figures_(figures) {}

  void take(Event event) {
    const std::string key = event.key();
    if (std::ranges::find(kFacts, key) != std::end(kFacts)) return fact(key, event);
    if (key == "run_start") return once(begin_, std::move(event));
    if (key == "run_stop") return once(end_, std::move(event));
    if (key != "tracked_stats") return;
    const json* value = event.field("value");
    if (value == nullptr || !value->is_object()) return;
    if (const auto rate = value->find("throughput"); rate != value->end()) throughput(event, *rate);
    if (const auto time = value->find("train_step_time"); time != value->end()) step(event, *time);
  }

  void finish() {
    if (!begin_) throw ImportRefusal{"run_start", "is missing", kTrainingHint};
    if (!end_) throw ImportRefusal{"run_stop", "is missing: the run was cut off", kTrainingHint};
    const json* status = end_->about("status");
    if (status == nullptr || !status->is_string())
      throw ImportRefusal{end_->from, "does not say with which status the run ended", kTrainingHint};
    if (*status != "success") {
      throw ImportRefusal{end_->from, fmt::format("the run ended with status {}", status->dump()),
                          "only a run that reached its target has a time to it"};
    }
    figures_.positive({"run_time", "s", "run", kMillisecond_s}, {},
                      end_->field("time_ms")->get<double>() - begin_->field("time_ms")->get<double>(),
                      fmt::format("{} to {}", begin_->from, end_->from));
    if (blocks_ > 0)
      figures_.leave_out("document", "what a throughput counts", "the log does not say whether samples or tokens");
    steps();
  }

 private:
  void once(std::optional<Event>& place, Event event) {
    if (place)
      throw ImportRefusal{event.from, fmt::format("is the second {}, after {}", event.key(), place->from),
                          kTrainingHint};
    place = std::move(event);
  }

  void fact(const std::string& key, const Event& event) {
    const json* value = event.field("value");
    if (const auto scalar = value == nullptr ? std::nullopt : value_from(*value)) source_.facts[key] = *scalar;
  }

  /// One of each block between two evaluations.
  void throughput(const Event& event, const json& rate) {
    Values at = {{"block", ++blocks_}};
    const json* step = event.about("step");
    if (step != nullptr && step->is_number_integer()) at["step"] = step->get<std::int64_t>();
    figures_.field({"throughput", "1/s", "block"}, at, &rate, event.from);
  }

  /// The mean over a block has the same name, and no step.
  void step(const Event& event, const json& time) {
    if (event.about("step") == nullptr)
      return figures_.leave_out(event.from, "train_step_time", "has no step: a mean over a block");
    if (!time.is_number() || !(time.get<double>() > 0))
      throw ImportRefusal{event.from, "train_step_time is no time above 0", kTrainingHint};
    steps_.push_back(time.get<double>());
    if (first_step_.empty()) first_step_ = event.from;
    last_step_ = event.from;
  }

  void steps() {
    if (steps_.empty()) return;
    const std::string from = fmt::format("{} to {}", first_step_, last_step_);
    if (steps_.size() < kFirstSteps + kFewestSteps)
      return figures_.leave_out(from, "train_step_time", fmt::format("{} steps are too few", steps_.size()));
    const std::span counted = std::span<const double>(steps_).subspan(kFirstSteps);
    const double middle = median(counted);
    const auto longer = std::ranges::count_if(counted, [&](double one) { return one > kLong * middle; });
    const auto time = [&](const char* statistic, double value) {
      figures_.positive({"step_time", "s", statistic}, {}, value, from);
    };
    time("median", middle);
    time("p95", percentile(counted, 0.95));
    time("p99", percentile(counted, 0.99));
    time("max", std::ranges::max(counted));
    figures_.count({"long_steps", "1", "share"}, {}, static_cast<double>(longer) / static_cast<double>(counted.size()),
                   from);
    figures_.count({"steps", "1", "count"}, {}, static_cast<double>(counted.size()), from);
  }

  judge::ImportSource& source_;
  Figures& figures_;
  std::optional<Event> begin_, end_;
  std::int64_t blocks_ = 0;
  std::vector<double> steps_;  // s
  std::string first_step_, last_step_;
};

constexpr double kPercent = 0.01;

/// A field of `metric` and the figure that it is.
struct MlperfField {
  const char* field;
  const char* operation;
  FigureName name;
};

const MlperfField kMlperfFields[] = {
    {"train_au_mean_percentage", "train", {"accelerator_utilisation", "1", "mean", kPercent}},
    {"train_au_stdev_percentage", "train", {"accelerator_utilisation", "1", "stdev", kPercent}},
    {"train_au_percentage", "train", {"accelerator_utilisation", "1", "epoch", kPercent}},
    {"train_throughput_mean_samples_per_second", "train", {"sample_rate", "1/s", "mean"}},
    {"train_throughput_stdev_samples_per_second", "train", {"sample_rate", "1/s", "stdev"}},
    {"train_throughput_samples_per_second", "train", {"sample_rate", "1/s", "epoch"}},
    {"train_io_mean_MB_per_second", "train", {"bandwidth", "B/s", "mean", kMebibyte}},
    {"train_io_stdev_MB_per_second", "train", {"bandwidth", "B/s", "stdev", kMebibyte}},
    {"save_checkpoint_io_mean_GB_per_second", "save", {"bandwidth", "B/s", "mean", kGibibyte}},
    {"save_checkpoint_io_stdev_GB_per_second", "save", {"bandwidth", "B/s", "stdev", kGibibyte}},
    {"save_checkpoint_duration_mean_seconds", "save", {"duration", "s", "mean"}},
    {"save_checkpoint_duration_stdev_seconds", "save", {"duration", "s", "stdev"}},
    {"load_checkpoint_io_mean_GB_per_second", "load", {"bandwidth", "B/s", "mean", kGibibyte}},
    {"load_checkpoint_io_stdev_GB_per_second", "load", {"bandwidth", "B/s", "stdev", kGibibyte}},
    {"load_checkpoint_duration_mean_seconds", "load", {"duration", "s", "mean"}},
    {"load_checkpoint_duration_stdev_seconds", "load", {"duration", "s", "stdev"}},
    {"checkpoint_size_GB", "save", {"checkpoint_size", "B", "total", kGibibyte}},
};

void take_mlperf(Figures& figures, const MlperfField& field, const json& value, Values at) {
  const std::string from = fmt::format("metric.{}", field.field);
  at["operation"] = std::string(field.operation);
  if (!value.is_array()) return figures.field(field.name, at, &value, from);
  for (std::size_t i = 0; i < value.size(); ++i) {
    at["epoch"] = static_cast<std::int64_t>(i + 1);
    figures.field(field.name, at, &value[i], fmt::format("{}[{}]", from, i));
  }
}

}  // namespace

void read_mlperf_training(std::string_view text, judge::ImportSource& source, Figures& figures) {
  source.form = "text";  // also where a job printed a JSON document of its own
  std::string whole(text);
  if (!whole.ends_with('\n')) whole += '\n';  // a last event that is cut off is no JSON
  TrainingLog reader(source, figures);
  std::size_t others = 0;
  for (const auto& line : lines_of(whole)) {
    auto event = event_in(line);
    if (event) reader.take(std::move(*event));
    if (!event && !line.text.empty()) ++others;
  }
  reader.finish();
  if (others > 0) figures.leave_out("document", fmt::format("{} lines", others), "are no events of MLPerf");
}

void read_mlperf_storage(std::string_view text, judge::ImportSource& source, Figures& figures) {
  const json whole = document_of(text, figures, "import summary.json of one invocation, as DLIO wrote it");
  const auto metric = whole.is_object() ? whole.find("metric") : whole.end();
  if (metric == whole.end() || !metric->is_object())
    throw ImportRefusal{"metric", "is missing", "import summary.json of one invocation, as DLIO wrote it"};
  Values at;
  for (const auto& [name, value] : whole.items()) {
    const auto scalar = value_from(value);
    if (!scalar) continue;
    source.facts[name] = *scalar;
    if (name == "num_accelerators" || name == "num_hosts") at[name] = *scalar;
  }
  for (const auto& [name, value] : metric->items()) {
    const auto* field = std::find_if(std::begin(kMlperfFields), std::end(kMlperfFields),
                                     [&](const MlperfField& one) { return name == one.field; });
    if (field != std::end(kMlperfFields)) {
      take_mlperf(figures, *field, value, at);
    } else if (const auto scalar = value_from(value); name == "train_au_meet_expectation" && scalar) {
      source.facts[name] = *scalar;
    } else {
      figures.leave_out("metric." + name, name, "is not a figure that is known");
    }
  }
  // DLIO's summary does not say it, and subsets were once published next to whole runs.
  figures.leave_out("document", "whole or subset, CLOSED or OPEN", "summary.json does not say it");
}

}  // namespace assay::imports
