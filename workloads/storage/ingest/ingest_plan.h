// ingest_plan: which samples an accelerator is fed, of which sizes and in which order. Pure.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace assay::cluster_storage {

/// A training job as MLPerf Storage describes it (mlcommons/storage at 0366ccf): a file for each sample.
struct IngestModel {
  std::string_view name;
  double record;        ///< mean size of a sample, B
  double deviation;     ///< its standard deviation, B
  std::uint64_t batch;  ///< samples of one step of one accelerator
  double compute_s;     ///< of one step, a sleep
};

/// The model of this name, unet3d or retinanet, each on a B200. Throws std::logic_error when there is none.
const IngestModel& ingest_model(std::string_view name);

/// Size of a sample in whole words of 8 B: spread evenly about the mean so that the deviation is the model's, by a hash
/// of `seed` and `sample`.
std::uint64_t sample_size(double record, double deviation, std::uint64_t seed, std::uint64_t sample);

/// The numbers 0 to `count` - 1 in an order that `seed` decides (Fisher and Yates).
std::vector<std::uint64_t> shuffled(std::uint64_t count, std::uint64_t seed);

/// When one accelerator waited and worked: from the end of its first step to the end of its last.
struct IngestTimes {
  double waited_s = 0;              ///< for samples, without the first step
  double computed_s = 0;            ///< without the first step
  std::uint64_t starved_steps = 0;  ///< steps that had to wait, without the first

  /// Share of the time that it computed; 1 if there was only one step.
  [[nodiscard]] double utilisation() const {
    const double all_s = waited_s + computed_s;
    return all_s > 0 ? computed_s / all_s : 1;
  }
};

}  // namespace assay::cluster_storage
