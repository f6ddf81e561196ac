// mlperf_storage: the summary.json that DLIO writes for MLPerf Storage. Its MB are MiB and its GB are GiB.
#include <fmt/format.h>

#include "orchestrator/import/import.h"
#include "orchestrator/import/reading.h"
#include "probes/core/json_io.h"

namespace assay::imports {
namespace {

using nlohmann::json;

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
