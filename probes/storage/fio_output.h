// fio_output: fio's job file and fio's JSON report. Pure text on both sides.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>

#include "probes/core/error.h"
#include "probes/core/units.h"
#include "probes/core/words.h"

namespace assay::storage {

/// Which way the data goes.
enum class Direction { read, write };
constexpr auto words_of(Direction) { return names_as_words<Direction>(); }

/// One fio job on one file; every field is written into the job file.
struct FioJob {
  Direction direction = Direction::read;
  bool random = false;
  Bytes block = {4096};
  std::int64_t depth = 1;
  std::int64_t jobs = 1;    ///< threads that work on the file at once
  std::string engine = {};  ///< "io_uring" or "libaio"
  Bytes file_size = {};
  Seconds ramp = {};     ///< run before anything is counted
  Seconds runtime = {};  ///< counted time; 0: once over the file, ended by fsync
};

/// The file that jobs work on, inside the directory that fio runs in.
inline constexpr const char* kFioDataFile = "data";

/// The job file of `job`: one section "sample" with fixed names only, so that no text of a user reaches fio's parser.
std::string job_file(const FioJob& job);

/// Measurements of one job of one fio run, in base units.
struct FioResult {
  std::string version;   ///< "fio-3.33"
  std::string engine;    ///< as fio reports the option in force
  bool direct = false;   ///< likewise
  double bandwidth = 0;  ///< B/s, from bw_bytes (`bw` is KiB/s)
  double iops = 0;       ///< 1/s
  std::int64_t completions = 0;
  Bytes moved;
  double latency_p50 = 0;  ///< completion latency, s; those below likewise
  double latency_p99 = 0;
  double latency_p999 = 0;
  double latency_max = 0;
};

/// Reads fio's file of --output with --output-format=json+ for a single job of `direction`. Lines before the one that
/// opens the object are fio's warnings and are skipped. Errors: no object, not whole, a field or percentile missing,
/// `error` not 0, no completion counted. `where` names the file.
std::expected<FioResult, InputError> read_fio_output(std::string_view text, Direction direction,
                                                     const std::string& where);

/// Major version in "fio-3.33" or "fio-3.33-12-gabc"; nothing if the text is no version of fio.
std::optional<int> fio_major_version(std::string_view text);

}  // namespace assay::storage
