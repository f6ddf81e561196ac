// restorer: the name of a process that puts a setting of the machine back when the process that changed it is gone.
#pragma once

namespace assay {

/// As the kernel shows it (PR_SET_NAME): whoever kills a probe with all that it has started leaves such a process a
/// moment for what it is there for, and kills it then.
inline constexpr const char* kRestorerName = "assay-restorer";

}  // namespace assay
