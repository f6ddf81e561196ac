// scale: numbers as the report shows them, beyond what every part of assay shows people.
#pragma once

#include <string>
#include <string_view>

#include "probes/core/scale.h"

namespace assay {

/// A base-unit number with every digit it has: "450000000000 B/s".
std::string exact_text(double value, std::string_view unit);

/// A probability or share for people: "2.1 %", "< 0.001 %", "0 %".
std::string percent(double share);

}  // namespace assay
