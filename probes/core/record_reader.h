// record_reader: the strict reader of a probe's output. Its input is hostile.
#pragma once

#include <expected>
#include <string>
#include <string_view>

#include "probes/core/description.h"
#include "probes/core/error.h"
#include "probes/core/record.h"

namespace assay {

/// Bounds on one record; a larger one is an error of the attempt, with the raw bytes kept by the caller.
struct RecordLimits {
  std::size_t max_bytes = 64 << 20;     ///< the agent stops a flood long before
  std::size_t max_line = 8 << 20;       ///< 300,000 raw latency samples fit
  std::size_t max_lines = 100'000;      ///< a pair matrix of 256 GPUs fits, and four figures of 16,384 ranks
  std::size_t max_samples = 4'000'000;  ///< of all lines, warm-up included; a day of a 40 Hz sensor fits
  std::size_t max_subjects = 1024;      ///< of one kind on a node; of node 1, of pair, group and rank max_lines
};

/// The times of the first and the last line of a record, UTC.
struct LineTimes {
  std::string first, last;
};

/// Reads a whole record, and, if `times` is given, the times of its lines. Refused: a missing or misplaced
/// start or end, an unknown or missing field, a duplicate key, a gap in `sequence`, a metric, unit or condition that
/// `description` does not declare, a sample that is not finite, the same measurement (metric, subject, at) twice, a
/// node other than the record's own host, bad UTF-8, control characters, sizes over the limits and over those of
/// record.h. Errors say "line N: …".
std::expected<Record, InputError> read_record(std::string_view bytes, const Description& description,
                                              const RecordLimits& limits = {}, LineTimes* times = nullptr);

}  // namespace assay
