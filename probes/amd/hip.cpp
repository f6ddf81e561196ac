// hip: libraries by soname, one compilation for all GPUs of a kind that this process meets.
#include "probes/amd/hip.h"

#include <array>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <vector>

#include <fmt/format.h>

#include "probes/amd/current.h"
#include "probes/amd/rocm_library.h"
#include "probes/core/probe.h"
#include "probes/cuda/device.h"

namespace assay::amd {
namespace {

namespace api = hip_api;

int version_of(const Library& runtime) {
  constexpr int kMajor = 10'000'000;  // HIP_VERSION is major * 10^7 + minor * 10^5 + patch
  int version = 0;
  const api::Functions::Call<int*> read = runtime.function("hipRuntimeGetVersion");
  if (read(&version) != api::kSuccess) return 0;
  return version / kMajor;
}

std::string log_of(api::Program program) {
  std::size_t size = 0;
  if (hip().log_size(program, &size) != api::kSuccess || size == 0) return "no words";
  std::string words(size, '\0');
  if (hip().log(program, words.data()) != api::kSuccess) return "no words";
  words.resize(words.find('\0'));
  return words;
}

/// The code object of the text for the current device, which is the compiler's own choice where no GPU is named.
std::vector<char> compiled() {
  api::Program program = nullptr;
  const std::string text(kernel_text());
  const auto check = [&](int status, const char* what) {
    if (status != api::kSuccess)
      throw std::runtime_error(fmt::format("{} (hiprtc {}): {}", what, status, log_of(program)));
  };
  check(hip().make_program(&program, text.c_str(), "assay_kernels", 0, nullptr, nullptr),
        "making the kernels' program");
  std::array<const char*, 2> options = {"-std=c++20", "-O3"};
  check(hip().compile(program, static_cast<int>(options.size()), options.data()), "compiling the kernels");
  std::size_t size = 0;
  check(hip().code_size(program, &size), "reading the size of the kernels");
  std::vector<char> code(size);
  check(hip().code(program, code.data()), "reading the kernels");
  return code;
}

}  // namespace

const api::Functions& hip() {
  static const api::Functions kFunctions = [] {
    const Library runtime = open_of_rocm({.title = "the HIP runtime",
                                          .names = {std::begin(api::kLibraries), std::end(api::kLibraries)},
                                          .older = {std::begin(api::kOlder), std::end(api::kOlder)},
                                          .first = api::kFirstRocm});
    const Library compiler = open_of_rocm({.title = "the compiler of the HIP runtime",
                                           .names = {fmt::format("{}{}", api::kCompiler, version_of(runtime))},
                                           .older = {},
                                           .first = api::kFirstRocm});
    return api::Functions{.library = runtime, .compiler = compiler};
  }();
  return kFunctions;
}

std::string hip_version() {
  constexpr int kMajor = 10'000'000, kMinor = 100'000;
  int version = 0;
  cuda::check(hip().runtime_version(&version), "reading the runtime's version");
  return fmt::format("{}.{}", version / kMajor, version % kMajor / kMinor);
}

namespace {

struct SmiBeside {
  std::unique_ptr<AmdSmi> library;
  std::string absence;
};
const SmiBeside& beside() {
  static const SmiBeside kBeside = [] {
    SmiBeside made;
    try {
      made.library = std::make_unique<AmdSmi>();
    } catch (const Skip& skip) {
      made.absence = skip.what();
    }
    return made;
  }();
  return kBeside;
}

}  // namespace

const AmdSmi* smi_beside() { return beside().library.get(); }
const std::string& absence_of_smi() { return beside().absence; }

api::Function kernel(const char* name) {
  static std::mutex lock;
  static std::map<int, api::Module> modules;  // by device; never unloaded: the process ends with them
  static std::map<std::pair<int, std::string>, api::Function> functions;
  const std::lock_guard guard(lock);
  const int device = current_device();
  if (!modules.contains(device)) {
    const std::vector<char> code = compiled();
    cuda::check(hip().load(&modules[device], code.data()), "loading the kernels");
  }
  api::Function& function = functions[{device, name}];
  if (function == nullptr)
    cuda::check(hip().function(&function, modules.at(device), name), fmt::format("finding the kernel {}", name));
  return function;
}

}  // namespace assay::amd
