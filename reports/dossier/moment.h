// moment: a point in time of a document or an option.
#pragma once

#include <chrono>

namespace assay::dossier {

using Moment = std::chrono::system_clock::time_point;

}  // namespace assay::dossier
