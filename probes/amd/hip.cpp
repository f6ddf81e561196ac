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
  const auto read = runtime.symbol<api::Functions::Call<int*>>("hipRuntimeGetVersion");
  if (read(&version) != api::kSuccess) return 0;
  return version / kMajor;
}

void find_runtime(const Library& in, api::Functions& f) {
  const auto find = [&in]<class F>(F& function, const char* name) { function = in.symbol<F>(name); };
  find(f.runtime_version, "hipRuntimeGetVersion");
  find(f.count, "hipGetDeviceCount");
  find(f.set_device, "hipSetDevice");
  find(f.attribute, "hipDeviceGetAttribute");
  find(f.name, "hipDeviceGetName");
  find(f.memory, "hipDeviceTotalMem");
  find(f.uuid, "hipDeviceGetUuid");
  find(f.bus_id, "hipDeviceGetPCIBusId");
  find(f.make_stream, "hipStreamCreateWithFlags");
  find(f.destroy_stream, "hipStreamDestroy");
  find(f.query_stream, "hipStreamQuery");
  find(f.wait_event, "hipStreamWaitEvent");
  find(f.make_event, "hipEventCreate");
  find(f.destroy_event, "hipEventDestroy");
  find(f.record, "hipEventRecord");
  find(f.query_event, "hipEventQuery");
  find(f.elapsed, "hipEventElapsedTime");
  find(f.allocate, "hipMalloc");
  find(f.release, "hipFree");
  find(f.allocate_host, "hipHostMalloc");
  find(f.release_host, "hipHostFree");
  find(f.memory_left, "hipMemGetInfo");
  find(f.copy, "hipMemcpy");
  find(f.copy_in_stream, "hipMemcpyAsync");
  find(f.lock_pages, "hipHostRegister");
  find(f.unlock_pages, "hipHostUnregister");
  find(f.device_pointer, "hipHostGetDevicePointer");
  find(f.set, "hipMemsetAsync");
  find(f.can_access, "hipDeviceCanAccessPeer");
  find(f.open_access, "hipDeviceEnablePeerAccess");
  find(f.copy_between, "hipMemcpyPeerAsync");
  find(f.link, "hipExtGetLinkTypeAndHopCount");
  find(f.begin_capture, "hipStreamBeginCapture");
  find(f.end_capture, "hipStreamEndCapture");
  find(f.make_ready, "hipGraphInstantiate");
  find(f.destroy_graph, "hipGraphDestroy");
  find(f.destroy_ready, "hipGraphExecDestroy");
  find(f.launch_graph, "hipGraphLaunch");
  find(f.load, "hipModuleLoadData");
  find(f.function, "hipModuleGetFunction");
  find(f.launch, "hipModuleLaunchKernel");
  find(f.words, "hipGetErrorString");
  find(f.error_name, "hipGetErrorName");
  find(f.last_error, "hipGetLastError");
}

void find_compiler(const Library& in, api::Functions& f) {
  const auto find = [&in]<class F>(F& function, const char* name) { function = in.symbol<F>(name); };
  find(f.make_program, "hiprtcCreateProgram");
  find(f.compile, "hiprtcCompileProgram");
  find(f.log_size, "hiprtcGetProgramLogSize");
  find(f.log, "hiprtcGetProgramLog");
  find(f.code_size, "hiprtcGetCodeSize");
  find(f.code, "hiprtcGetCode");
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
    api::Functions found = {};
    find_runtime(runtime, found);
    find_compiler(compiler, found);
    return found;
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
