// fio: drives fio 3 as a child process; one file laid out once, then one fio run for each sample.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "probes/core/filesystem_facts.h"
#include "probes/core/own_folder.h"
#include "probes/core/probe.h"
#include "probes/core/recorder.h"
#include "probes/storage/fio_output.h"

namespace assay::storage {

/// How a storage probe uses fio.
struct FioPlan {
  std::string directory = ".";
  std::string engine = "io_uring";
  Bytes file_size;
  Seconds ramp;
  Seconds runtime;
  std::int64_t samples = 10;
  Seconds grace = {30};  ///< beyond ramp and runtime: fio's start and end; a device that takes longer hangs
};

/// The parameters that every storage probe has.
inline constexpr std::array kFioParameters = {
    parameter("directory", "", ".", "directory on the filesystem to measure"),
    parameter("file_size", "B", "1GiB", "size of the test file", "256MiB"),
    choice("engine", "io_uring", "io_uring libaio", "fio's I/O engine; libaio is used where io_uring fails"),
    spent("runtime", "650ms", "counted time of one fio run", "100ms"),
    parameter("ramp", "s", "100ms", "time of one fio run before counting", "20ms"),
    parameter("samples", "1", "10", "fio runs for each direction"),
};

/// `own` after the shared ones.
template <std::size_t N>
consteval auto with_fio_parameters(const std::array<Parameter, N>& own) {
  std::array<Parameter, kFioParameters.size() + N> all;
  std::copy(own.begin(), own.end(), std::copy(kFioParameters.begin(), kFioParameters.end(), all.begin()));
  return all;
}

/// The conditions that every storage probe records.
inline constexpr ConditionSpec kFioConditions[] = {
    {.name = "fio_version", .meaning = "version of fio that ran"},
    {.name = "fio_sha256", .meaning = "SHA-256 of the program that ran as fio"},
    {.name = "rate_ratio",
     .meaning = "largest ratio of a rate that fio reported to the bytes and I/Os that it counted over the time it was "
                "asked to run, and of its I/Os to its bytes; above 1.05 the rate is not of this traffic"},
    {.name = "engine", .meaning = "I/O engine that fio used, by its own report"},
    {.name = "direct_io",
     .meaning = "true when an O_DIRECT open works here, fio reports direct=1, no page of the file is in the page cache "
                "afterwards, and the block device (where there is one) moved at least what fio counted"},
    {.name = "resident_pages", .meaning = "pages of the test file in the page cache after the last run"},
    {.name = "filesystem", .meaning = "type of the filesystem"},
    {.name = "device", .meaning = "number and name of the block device, or the mount's source"},
    if_present("rotational",
               "whether the device reports that it is rotational, recorded where there is a block device"),
    {.name = "file_size", .meaning = "bytes of the test file"},
    {.name = "data_pattern", .meaning = "what is written: incompressible random data, refilled for every block"},
    {.name = "completions_min", .meaning = "fewest I/Os of one sample"},
    kDeviceClass,
    kEmulatedDrive,
};

/// The test file; how much is written into it depends on the rate.
inline constexpr SpaceRule kFioSpace[] = {{.held = "file_size"}};
inline constexpr RunDeviation kFioRunDeviation = {
    .least = 0.01, .source = "Assumed on 2026-11-27: no storage has been measured again for the records yet."};

/// The plan that `given` asks for. Throws BadParameter when samples, runtime or file_size is 0.
FioPlan fio_plan(const Parameters& given);

/// Throws BadParameter when one of the numbers `names` is 0: fio would take its own default and measure something else.
void demand_positive(const Parameters& given, std::initializer_list<std::string_view> names);

/// fio and a laid-out file in a directory of our own, both gone when this goes out of scope.
class Fio {
 public:
  /// Lays out the file with random data and fsyncs it; with libaio when fio cannot with io_uring. Throws Skip when fio
  /// is missing or not version 3, or the filesystem is unfit or full; std::runtime_error when fio fails.
  explicit Fio(const FioPlan& plan);

  /// One fio run of `job` (its engine, file size and times are the plan's). Throws std::runtime_error with what fio
  /// said when it fails, does not end in time, or reports less than a whole result.
  FioResult run(FioJob job);

  /// plan.samples runs of each job, one of each in turn, so that a drift of the device reaches all alike.
  /// results[i] are those of jobs[i], in the order taken.
  std::vector<std::vector<FioResult>> run_in_turn(std::span<const FioJob> jobs);

  /// The largest ratio of fio's stated rate to its counted one, over all runs (the condition rate_ratio).
  [[nodiscard]] double rate_ratio() const { return rate_ratio_; }
  /// Records kFioConditions; call after the last run.
  void record_conditions(Recorder& record) const;

 private:
  FioResult run_once(const FioJob& job);
  void lay_out();
  [[nodiscard]] std::string last_words() const;

  FioPlan plan_;
  std::string program_;
  std::string version_;
  FilesystemFacts facts_;
  std::optional<OwnFolder> scratch_;
  bool direct_reported_ = true;
  double rate_ratio_ = 0;
  std::optional<std::int64_t> completions_min_;
  DeviceTraffic expected_;  ///< fio's counters
  std::optional<DeviceTraffic> before_;
  std::string fallback_note_;
};

/// The value `field` of all `results`, as a fixed number of samples.
Sampling samples_of(std::span<const FioResult> results, double FioResult::*field);

}  // namespace assay::storage
