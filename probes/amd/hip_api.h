// hip_api: the part of the HIP runtime and of its compiler that assay uses, declared here so that nothing of ROCm is
// needed to build. Names and numbers are those of hip/hip_runtime_api.h and hip/hiprtc.h 6.3 and 7 (ROCm/HIP,
// ROCm/rocm-systems, read on 2026-11-27); structs that changed between them are not used.
#pragma once

#include <cstddef>

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

  Call<int*> runtime_version;
  Call<int*> count;
  Call<int> set_device;
  Call<int*, int, int> attribute;
  Call<char*, int, int> name;
  Call<std::size_t*, int> memory;
  Call<char*, int> uuid;
  Call<char*, int, int> bus_id;
  Call<Stream*, unsigned> make_stream;
  Call<Stream> destroy_stream;
  Call<Stream> query_stream;
  Call<Stream, Event, unsigned> wait_event;
  Call<Event*> make_event;
  Call<Event> destroy_event;
  Call<Event, Stream> record;
  Call<Event> query_event;
  Call<float*, Event, Event> elapsed;
  Call<void**, std::size_t> allocate;
  Call<void*> release;
  Call<void**, std::size_t, unsigned> allocate_host;
  Call<void*> release_host;
  Call<std::size_t*, std::size_t*> memory_left;
  Call<void*, const void*, std::size_t, int> copy;
  Call<void*, const void*, std::size_t, int, Stream> copy_in_stream;
  Call<void*, std::size_t, unsigned> lock_pages;
  Call<void*> unlock_pages;
  Call<void**, void*, unsigned> device_pointer;
  Call<void*, int, std::size_t, Stream> set;
  Call<int*, int, int> can_access;
  Call<int, unsigned> open_access;
  Call<void*, int, const void*, int, std::size_t, Stream> copy_between;  ///< target, its GPU, source, its GPU
  Call<int, int, unsigned*, unsigned*> link;                             ///< type and hops
  Call<Stream, int> begin_capture;
  Call<Stream, Graph*> end_capture;
  Call<ReadyGraph*, Graph, void**, char*, std::size_t> make_ready;
  Call<Graph> destroy_graph;
  Call<ReadyGraph> destroy_ready;
  Call<ReadyGraph, Stream> launch_graph;
  Call<Module*, const void*> load;
  Call<Function*, Module, const char*> function;
  Call<Function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, Stream, void**, void**> launch;
  const char* (*words)(Status);
  const char* (*error_name)(Status);
  Call<> last_error;

  Call<Program*, const char*, const char*, int, const char**, const char**> make_program;
  Call<Program, int, const char**> compile;
  Call<Program, std::size_t*> log_size;
  Call<Program, char*> log;
  Call<Program, std::size_t*> code_size;
  Call<Program, char*> code;
};

}  // namespace assay::amd::hip_api
