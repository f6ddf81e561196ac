// restorer: the name of a process that puts a setting of the machine back when the process that changed it is gone.
#pragma once

namespace assay {

/// As the kernel shows it (PR_SET_NAME): the killer of a probe and its processes leaves such a process a moment for its
/// task, and kills it then.
inline constexpr const char* kRestorerName = "assay-restorer";

}  // namespace assay
