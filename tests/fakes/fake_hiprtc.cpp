// fake_hiprtc: the compiler of the HIP runtime, which looks at the kernels' text and makes nothing of it: fake_amdhip64
// has them for the host. With fault=compile in ASSAY_FAKE_AMDHIP it refuses the text.
#include <cstdlib>
#include <cstring>
#include <string>

#include "probes/amd/hip_api.h"

using namespace assay::amd::hip_api;  // NOLINT(google-build-using-namespace): a fake of its second part

constexpr char kLog[] = "kernels:1:1: error: refused";
constexpr char kCode[] = "kernels for the host";

extern "C" {

/// The program is its text.
Status hiprtcCreateProgram(Program* program, const char* text, const char*, int, const char**, const char**) {
  *program = new std::string(text);
  return kSuccess;
}
Status hiprtcCompileProgram(Program program, int, const char**) {
  const auto& text = *static_cast<const std::string*>(program);
  const char* given = std::getenv("ASSAY_FAKE_AMDHIP");
  const bool faulty = given != nullptr && std::string(given).find("fault=compile") != std::string::npos;
  const bool whole = text.find("assay_hold(") != std::string::npos && text.find("#include") == std::string::npos &&
                     text.find(" std::") == std::string::npos;
  return faulty || !whole ? 6 : kSuccess;
}
Status hiprtcGetProgramLogSize(Program, std::size_t* size) {
  *size = sizeof kLog;
  return kSuccess;
}
Status hiprtcGetProgramLog(Program, char* to) {
  std::memcpy(to, kLog, sizeof kLog);
  return kSuccess;
}
Status hiprtcGetCodeSize(Program, std::size_t* size) {
  *size = sizeof kCode;
  return kSuccess;
}
Status hiprtcGetCode(Program, char* to) {
  std::memcpy(to, kCode, sizeof kCode);
  return kSuccess;
}

}  // extern "C"
