// packed_record: a record that was read and checked, as few bytes from which it is made again much faster than it is
// read. They stay in memory: no file has them, and nothing is read from them that was not a checked record before.
#pragma once

#include <string>
#include <string_view>

#include "probes/core/record.h"
#include "probes/core/record_reader.h"

namespace assay::judge {

/// A record, and the times of its first and its last line.
struct TimedRecord {
  Record record;
  LineTimes times;
};

/// The members of `timed` one after another.
std::string packed(const TimedRecord& timed);

/// The record that packed() made `bytes` of, which must be whole.
TimedRecord unpacked(std::string_view bytes);

}  // namespace assay::judge
