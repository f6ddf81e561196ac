// hip_api: the part of the HIP runtime and of its compiler that assay uses, declared here so that nothing of ROCm is
// needed to build. Names and numbers are those of hip/hip_runtime_api.h and hip/hiprtc.h 6.3 and 7 (ROCm/HIP,
// ROCm/rocm-systems, read on 2026-11-27); structs that changed between them are not used.
#pragma once

#include <cstddef>

#include "probes/core/library.h"

struct CUstream_st;  // the pointees of probes/cuda/device.h, of any runtime
struct CUevent_st;
struct CUgraphExec_st;

namespace assay::amd::hip_api {

/// The runtime and the compiler by their sonames, newest first; both must be of one version.
inline constexpr const char* kLibraries[] = {"libamdhip64.so.7", "libamdhip64.so.6"};
inline constexpr const char* kOlder[] = {"libamdhip64.so.5"};
inline constexpr const char* kCompiler = "libhiprtc.so.";
inline constexpr const char* kFirstRocm = "ROCm 6.0";

using Status = int;
inline constexpr Status kSuccess = 0, kNotInitialised = 3, kInsufficientDriver = 35, kNoDevice = 100, kNotReady = 600;
inline constexpr int kNonBlocking = 1, kHostToDevice = 1, kDeviceToHost = 2, kDeviceToDevice = 3;
inline constexpr int kCaptureOfThread = 1;  ///< hipStreamCaptureModeThreadLocal
/// Page-locked memory that every GPU may use and that both sides see at once.
inline constexpr unsigned kPortable = 0x1, kMapped = 0x2, kCoherent = 0x4000'0000;

/// Of hsa_amd_link_info_type_t (rocr-runtime, inc/hsa_ext_amd.h).
inline constexpr unsigned kPcieLink = 2, kXgmiLink = 4;

inline constexpr int kEcc = 0, kL2 = 19, kMajor = 23, kBusWidth = 59, kMemoryClockKhz = 60, kMinor = 61,
                     kComputeUnits = 63, kWallClockKhz = 10017;

using Stream = CUstream_st*;
using Event = CUevent_st*;
using Graph = void*;
using ReadyGraph = CUgraphExec_st*;
using Module = void*;
using Function = void*;
using Program = void*;

/// The functions of both libraries.
struct Functions {
  template <class... Arguments>
  using Call = Status (*)(Arguments...);

  Library library, compiler;
  Call<int*> runtime_version = library.function("hipRuntimeGetVersion");
  Call<int*> count = library.function("hipGetDeviceCount");
  Call<int> set_device = library.function("hipSetDevice");
  Call<int*, int, int> attribute = library.function("hipDeviceGetAttribute");
  Call<char*, int, int> name = library.function("hipDeviceGetName");
  Call<std::size_t*, int> memory = library.function("hipDeviceTotalMem");
  Call<char*, int> uuid = library.function("hipDeviceGetUuid");
  Call<char*, int, int> bus_id = library.function("hipDeviceGetPCIBusId");
  Call<Stream*, unsigned> make_stream = library.function("hipStreamCreateWithFlags");
  Call<Stream> destroy_stream = library.function("hipStreamDestroy");
  Call<Stream> query_stream = library.function("hipStreamQuery");
  Call<Stream, Event, unsigned> wait_event = library.function("hipStreamWaitEvent");
  Call<Event*> make_event = library.function("hipEventCreate");
  Call<Event> destroy_event = library.function("hipEventDestroy");
  Call<Event, Stream> record = library.function("hipEventRecord");
  Call<Event> query_event = library.function("hipEventQuery");
  Call<float*, Event, Event> elapsed = library.function("hipEventElapsedTime");
  Call<void**, std::size_t> allocate = library.function("hipMalloc");
  Call<void*> release = library.function("hipFree");
  Call<void**, std::size_t, unsigned> allocate_host = library.function("hipHostMalloc");
  Call<void*> release_host = library.function("hipHostFree");
  Call<std::size_t*, std::size_t*> memory_left = library.function("hipMemGetInfo");
  Call<void*, const void*, std::size_t, int> copy = library.function("hipMemcpy");
  Call<void*, const void*, std::size_t, int, Stream> copy_in_stream = library.function("hipMemcpyAsync");
  Call<void*, std::size_t, unsigned> lock_pages = library.function("hipHostRegister");
  Call<void*> unlock_pages = library.function("hipHostUnregister");
  Call<void**, void*, unsigned> device_pointer = library.function("hipHostGetDevicePointer");
  Call<void*, int, std::size_t, Stream> set = library.function("hipMemsetAsync");
  Call<int*, int, int> can_access = library.function("hipDeviceCanAccessPeer");
  Call<int, unsigned> open_access = library.function("hipDeviceEnablePeerAccess");
  Call<void*, int, const void*, int, std::size_t, Stream> copy_between =
      library.function("hipMemcpyPeerAsync");  ///< target, its GPU, source, its GPU
  Call<int, int, unsigned*, unsigned*> link = library.function("hipExtGetLinkTypeAndHopCount");  ///< type and hops
  Call<Stream, int> begin_capture = library.function("hipStreamBeginCapture");
  Call<Stream, Graph*> end_capture = library.function("hipStreamEndCapture");
  Call<ReadyGraph*, Graph, void**, char*, std::size_t> make_ready = library.function("hipGraphInstantiate");
  Call<Graph> destroy_graph = library.function("hipGraphDestroy");
  Call<ReadyGraph> destroy_ready = library.function("hipGraphExecDestroy");
  Call<ReadyGraph, Stream> launch_graph = library.function("hipGraphLaunch");
  Call<Module*, const void*> load = library.function("hipModuleLoadData");
  Call<Function*, Module, const char*> function = library.function("hipModuleGetFunction");
  Call<Function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, Stream, void**, void**> launch =
      library.function("hipModuleLaunchKernel");
  const char* (*words)(Status) = library.function("hipGetErrorString");
  const char* (*error_name)(Status) = library.function("hipGetErrorName");
  Call<> last_error = library.function("hipGetLastError");

  Call<Program*, const char*, const char*, int, const char**, const char**> make_program =
      compiler.function("hiprtcCreateProgram");
  Call<Program, int, const char**> compile = compiler.function("hiprtcCompileProgram");
  Call<Program, std::size_t*> log_size = compiler.function("hiprtcGetProgramLogSize");
  Call<Program, char*> log = compiler.function("hiprtcGetProgramLog");
  Call<Program, std::size_t*> code_size = compiler.function("hiprtcGetCodeSize");
  Call<Program, char*> code = compiler.function("hiprtcGetCode");
};

}  // namespace assay::amd::hip_api
