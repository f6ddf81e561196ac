// stillness: looks too far apart count as close ones.
#include "probes/collective/stillness.h"

#include <algorithm>

namespace assay::collective {
namespace {

constexpr double kMostBetweenLooks_s = 0.5;  // several times the interval between two looks of a running leader

}  // namespace

Seconds Lasting::look(bool lasts, Clock::time_point now) {
  if (!lasts) {
    *this = {};
    return lasted_;
  }
  if (looked_) lasted_.count += std::min(kMostBetweenLooks_s, std::chrono::duration<double>(now - *looked_).count());
  looked_ = now;
  return lasted_;
}

}  // namespace assay::collective
