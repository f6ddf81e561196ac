// hip: the HIP runtime and its compiler, opened at run time, and the kernels that it makes for the GPU at hand.
#pragma once

#include <string>
#include <string_view>

#include "probes/amd/hip_api.h"
#include "probes/amd/smi.h"

namespace assay::amd {

/// The functions, from the first call on. Throws Skip with a hint when they are absent or of another version.
const hip_api::Functions& hip();

/// The version of the runtime, as "7.0".
std::string hip_version();

/// AMD SMI as well, from the first call on; null if absent, and then absence_of_smi() has the reason.
const AmdSmi* smi_beside();
const std::string& absence_of_smi();

/// The kernel `name` of the text of this room for the current device, compiled at the first use on it. Throws
/// std::runtime_error with the compiler's words.
hip_api::Function kernel(const char* name);

/// The text that is compiled: the kernels of probes/cuda and probes/amd with their headers (kernel_text.cmake).
std::string_view kernel_text();

}  // namespace assay::amd
