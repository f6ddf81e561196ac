// scale: numbers as only the report shows them.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "probes/core/scale.h"

namespace assay::figures {

/// A base-unit number with every digit it has: "450000000000 B/s".
std::string exact_text(double value, std::string_view unit);

/// The scale for `marks` of an axis in base unit `unit`: round numbers, without the trailing zeros that all of them
/// share.
Scale scale_for_marks(std::span<const double> marks, std::string_view unit);

/// A size of messages, exact: "8 B", "64 KiB", "1 GiB"; sizes that are no whole number of those in bytes.
std::string size_words(double bytes);

/// A probability or share for people: "2.1 %", "< 0.001 %", "0 %".
std::string percent(double share);

}  // namespace assay::figures
