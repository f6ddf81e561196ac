// leaving: the last words of a process that hardware does not answer any more.
#pragma once

#include <functional>
#include <string>

namespace assay {

/// leave_stuck() of probe.h. `waits`: the hardware seems to wait for that of another process. Where no record is open,
/// before_leaving() hears both.
[[noreturn]] void leave_stuck(const std::string& reason, bool waits) noexcept;

/// leave_stuck() calls `tell` where no record is open: of a rank, whose leader must hear why it is gone.
void before_leaving(std::function<void(const std::string& reason, bool waits)> tell);

}  // namespace assay
