// exit_codes: the exit codes of assay and assay-report.
#pragma once

namespace assay::files {

inline constexpr int kExitSuccess = 0;     ///< done or verified; of a judged run: accepted
inline constexpr int kExitRejected = 1;    ///< the run is rejected; of `assay site`: nodes or cables differ
inline constexpr int kExitBadInput = 2;    ///< bad usage or input, or a file that cannot be written
inline constexpr int kExitIncomplete = 3;  ///< the run is incomplete; of `assay site`: nodes could not be reached
inline constexpr int kExitRefused = 4;     ///< assay-report refuses to verify, sign or report

}  // namespace assay::files
