// fake_amdhip64: the HIP runtime over the host's memory (its compiler is fake_hiprtc). Work is put in streams and
// done when a stream or an event is asked for, in the order of dependence; kernels are the text of probes/cuda compiled
// for the host, so that what they compute is real and how long it takes is not. ASSAY_FAKE_AMDHIP has what differs:
//   gpus=2 memory=64 (MiB)   how many GPUs, and how large
//   minor=4                  of the architecture: 4 is gfx942, 5 is gfx950, 0 is gfx90a
//   slow=1                   how many times longer its events say that the work took than it did: what is to last a
//                            second on the GPU is then soon over
//   on=1                     the GPU that hangs, of processes with one each; all of them where it is not said
//   after=0                  kernels that are right before the faults hang, lost and flip
//   fault=KIND               no_gpu, compile (the text is refused), launch (a kernel fails), hang (no work is ever
//                            done any more), lost (every question about work fails),
//                            flip (one bit of each large allocation, once), stuck (bit 5 of word 77 of each),
//                            copy (copies between host and device lose their last byte),
//                            peer_copy (the same of copies between GPUs), no_peer (no GPU reaches another),
//                            pcie (GPUs reach each other over PCIe)
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "probes/amd/hip_api.h"
#include "tests/fakes/amd_kernels.h"
#include "tests/fakes/settings.h"

struct CUevent_st {
  bool marked = false, done = false;
  std::chrono::steady_clock::time_point at;
};
struct CUstream_st {
  std::deque<std::function<bool()>> work;                 ///< false: it waits for an event of another stream
  std::deque<std::function<bool()>>* recorded = nullptr;  ///< takes the work instead, while a graph is recorded
};
struct CUgraphExec_st {
  std::deque<std::function<bool()>> work;
};

namespace {

using namespace assay::amd::hip_api;  // NOLINT(google-build-using-namespace): a fake of all of it
using assay::fakes::Bind;
using assay::fakes::table;
using Clock = std::chrono::steady_clock;

constexpr Status kInvalid = 1, kLaunchFailed = 719, kNotFound = 500, kOutOfMemory = 2;
constexpr std::size_t kMib = std::size_t{1} << 20;

std::map<std::string, std::string> settings() {
  std::map<std::string, std::string> all = {{"gpus", "1"}, {"memory", "64"}, {"minor", "4"},
                                            {"slow", "1"}, {"after", "0"},   {"fault", "none"}};
  std::istringstream words(assay::fakes::told("ASSAY_FAKE_AMDHIP", reinterpret_cast<const void*>(&settings)));
  for (std::string word; words >> word;) all[word.substr(0, word.find('='))] = word.substr(word.find('=') + 1);
  return all;
}
const std::string& setting(const std::string& name) {
  static auto all = settings();
  return all[name];
}
bool is_faulty(const char* kind) { return setting("fault") == kind; }
int gpus() { return is_faulty("no_gpu") ? 0 : std::stoi(setting("gpus")); }
std::size_t memory_size() { return std::stoul(setting("memory")) * kMib; }

long kernels_begun = 0;
bool is_late(const char* kind) {
  static const long kAfter = std::stol(setting("after"));
  return is_faulty(kind) && kernels_begun >= kAfter;
}

thread_local int device = 0;
std::atomic<int> last_chosen = 0;                          ///< by any thread
std::map<void*, std::pair<int, std::size_t>> allocations;  ///< of devices: whose, and how large
std::vector<Stream> streams;
std::recursive_mutex lock;  ///< of both, and of all work
using Locked = std::lock_guard<std::recursive_mutex>;

std::size_t used() {
  std::size_t sum = 0;
  for (const auto& [pointer, of] : allocations) sum += of.first == device ? of.second : 0;
  return sum;
}

/// The allocation of a device that `pointer` is in.
void* target_start(void* pointer) {
  auto after = allocations.upper_bound(pointer);
  return after == allocations.begin() ? nullptr : std::prev(after)->first;
}

/// The GPU's clock.
Clock::time_point device_now() {
  static const Clock::time_point kBegin = Clock::now();
  static const int kSlow = std::stoi(setting("slow"));
  return kBegin + (Clock::now() - kBegin) * kSlow;
}

/// Does what can be done in all streams.
void progress() {
  const Locked locked(lock);
  static const std::string kOn = setting("on");
  if (is_late("hang") && (kOn.empty() || std::stoi(kOn) == last_chosen)) return;
  for (bool any = true; any;) {
    any = false;
    for (Stream stream : streams) {
      while (!stream->work.empty() && stream->work.front()()) {
        stream->work.pop_front();
        any = true;
      }
    }
  }
}

void enqueue(Stream stream, std::function<void()> work) {
  const Locked locked(lock);
  (stream->recorded != nullptr ? *stream->recorded : stream->work).emplace_back([work = std::move(work)] {
    work();
    return true;
  });
}

/// Faults of memory, put in around each kernel: a flip once, after the first array was filled.
void spoil() {
  constexpr std::size_t kStuckWord = 77, kFlippedWord = 1234, kSmallest = kMib / 4;
  constexpr long kWhen = 4;
  static bool flipped = false;
  const bool flips = is_faulty("flip") && !flipped && kernels_begun == kWhen + std::stol(setting("after"));
  flipped = flipped || flips;
  for (const auto& [pointer, of] : allocations) {
    if (of.second < kSmallest) continue;
    auto* const words = static_cast<std::uint64_t*>(pointer);
    if (flips) words[kFlippedWord] ^= std::uint64_t{1} << 51;
    if (is_faulty("stuck")) words[kStuckWord] &= ~(std::uint64_t{1} << 5);
  }
}

/// Whether `done`, if need be after all that can be done: a caller that is told to come again would sleep.
template <class Done>
Status finished(const Done& done) {
  const Locked locked(lock);
  if (is_late("lost")) return kLaunchFailed;
  if (!done()) progress();
  return done() ? kSuccess : kNotReady;
}

}  // namespace

extern "C" {

Status hipRuntimeGetVersion(int* version) {
  *version = 70'051'831;
  return kSuccess;
}
Status hipGetDeviceCount(int* count) {
  *count = gpus();
  return gpus() == 0 ? kNoDevice : kSuccess;
}
Status hipSetDevice(int ordinal) {
  device = last_chosen = ordinal;
  return ordinal < gpus() ? kSuccess : 101;
}
Status hipDeviceGetAttribute(int* value, int which, int) {
  const std::map<int, int> all = {{kEcc, 1},
                                  {kL2, 4096},
                                  {kMajor, 9},
                                  {kMinor, std::stoi(setting("minor"))},
                                  {kComputeUnits, 304},
                                  {kBusWidth, 8192},
                                  {kMemoryClockKhz, 1'300'000},
                                  {kWallClockKhz, 100'000}};
  const auto found = all.find(which);
  if (found == all.end()) return kInvalid;
  *value = found->second;
  return kSuccess;
}
Status hipDeviceGetName(char* name, int room, int) {
  std::strncpy(name, "AMD Instinct MI300X (simulated)", static_cast<std::size_t>(room));
  return kSuccess;
}
Status hipDeviceTotalMem(std::size_t* bytes, int) {
  *bytes = memory_size();
  return kSuccess;
}
Status hipDeviceGetUuid(char* uuid, int ordinal) {
  const std::string text = "a1ff74a10000000" + std::to_string(ordinal);  // of one digit
  (void)text.copy(uuid, 16);
  return kSuccess;
}
Status hipDeviceGetPCIBusId(char* text, int room, int ordinal) {
  (void)std::snprintf(text, static_cast<std::size_t>(room), "0000:%02x:00.0", 5 + 16 * ordinal);
  return kSuccess;
}
/// For other fakes: does `work(data)` in order with the rest of `stream`.
void fake_hip_enqueue(Stream stream, void (*work)(void*), void* data) {
  enqueue(stream, [=] { work(data); });
}
Status hipStreamBeginCapture(Stream stream, int) {
  stream->recorded = new std::deque<std::function<bool()>>;
  return kSuccess;
}
Status hipStreamEndCapture(Stream stream, Graph* graph) {
  *graph = stream->recorded;
  stream->recorded = nullptr;
  return kSuccess;
}
Status hipGraphInstantiate(ReadyGraph* ready, Graph graph, void**, char*, std::size_t) {
  *ready = new CUgraphExec_st{*static_cast<std::deque<std::function<bool()>>*>(graph)};
  return kSuccess;
}
Status hipGraphDestroy(Graph graph) {
  delete static_cast<std::deque<std::function<bool()>>*>(graph);
  return kSuccess;
}
Status hipGraphExecDestroy(ReadyGraph ready) {
  delete ready;
  return kSuccess;
}
Status hipGraphLaunch(ReadyGraph ready, Stream stream) {
  const Locked locked(lock);
  stream->work.insert(stream->work.end(), ready->work.begin(), ready->work.end());
  return kSuccess;
}
Status hipStreamCreateWithFlags(Stream* stream, unsigned) {
  const Locked locked(lock);
  *stream = streams.emplace_back(new CUstream_st);
  return kSuccess;
}
Status hipStreamDestroy(Stream stream) {
  const Locked locked(lock);
  std::erase(streams, stream);
  delete stream;
  return kSuccess;
}
Status hipStreamQuery(Stream stream) {
  return finished([&] { return stream->work.empty(); });
}
Status hipStreamWaitEvent(Stream stream, Event event, unsigned) {
  const Locked locked(lock);
  stream->work.emplace_back([event] { return event->done; });
  return kSuccess;
}
Status hipEventCreate(Event* event) {
  *event = new CUevent_st;
  return kSuccess;
}
Status hipEventDestroy(Event event) {
  delete event;
  return kSuccess;
}
Status hipEventRecord(Event event, Stream stream) {
  const Locked locked(lock);
  event->done = false;
  enqueue(stream, [event] {
    event->at = device_now();
    event->done = true;
  });
  return kSuccess;
}
Status hipEventQuery(Event event) {
  return finished([&] { return event->done; });
}
Status hipEventElapsedTime(float* ms, Event begin, Event end) {
  *ms = std::chrono::duration<float, std::milli>(end->at - begin->at).count();
  return kSuccess;
}
Status hipMalloc(void** pointer, std::size_t size) {
  const Locked locked(lock);
  if (used() + size > memory_size()) return kOutOfMemory;
  *pointer = std::aligned_alloc(256, (size + 255) / 256 * 256);
  allocations[*pointer] = {device, size};
  return kSuccess;
}
Status hipFree(void* pointer) {
  const Locked locked(lock);
  allocations.erase(pointer);
  std::free(pointer);
  return kSuccess;
}
Status hipHostMalloc(void** pointer, std::size_t size, unsigned flags) {
  if ((flags & kCoherent) == 0) return kInvalid;
  *pointer = std::aligned_alloc(256, (size + 255) / 256 * 256);
  return kSuccess;
}
Status hipHostFree(void* pointer) {
  std::free(pointer);
  return kSuccess;
}
Status hipMemGetInfo(std::size_t* free, std::size_t* total) {
  const Locked locked(lock);
  *total = memory_size();
  *free = memory_size() - used();
  return kSuccess;
}
Status hipMemcpy(void* target, const void* source, std::size_t size, int) {
  const Locked locked(lock);
  progress();
  std::memcpy(target, source, size);
  return kSuccess;
}
/// With fault=copy the last byte does not arrive.
Status hipMemcpyAsync(void* target, const void* source, std::size_t size, int, Stream stream) {
  enqueue(stream, [=] { std::memcpy(target, source, size - (is_faulty("copy") ? 1 : 0)); });
  return kSuccess;
}
Status hipDeviceCanAccessPeer(int* can, int gpu, int peer) {
  *can = gpu != peer && !is_faulty("no_peer") ? 1 : 0;
  return kSuccess;
}
Status hipDeviceEnablePeerAccess(int peer, unsigned flags) {
  return peer == device || flags != 0 ? kInvalid : kSuccess;
}
Status hipMemcpyPeerAsync(void* target, int target_gpu, const void* source, int source_gpu, std::size_t size,
                          Stream stream) {
  if (allocations.at(target_start(target)).first != target_gpu || source_gpu >= gpus()) return kInvalid;
  enqueue(stream, [=] { std::memcpy(target, source, size - (is_faulty("peer_copy") ? 1 : 0)); });
  return kSuccess;
}
Status hipExtGetLinkTypeAndHopCount(int gpu, int peer, std::uint32_t* type, std::uint32_t* hops) {
  if (gpu == peer) return kInvalid;
  *type = is_faulty("pcie") ? kPcieLink : kXgmiLink;
  *hops = is_faulty("pcie") ? 2 : 1;
  return kSuccess;
}
/// Not of HIP: puts work in a stream that is done when it says so, for fake_rccl.
void assay_fake_enqueue(Stream stream, bool (*work)(void*), void* of) {
  stream->work.emplace_back([=] { return work(of); });
}
Status hipHostRegister(void*, std::size_t, unsigned flags) {
  return flags == (kPortable | kMapped) ? kSuccess : kInvalid;
}
Status hipHostUnregister(void*) { return kSuccess; }
Status hipHostGetDevicePointer(void** pointer, void* host, unsigned) {
  *pointer = host;
  return kSuccess;
}
Status hipMemsetAsync(void* target, int value, std::size_t size, Stream stream) {
  enqueue(stream, [=] { std::memset(target, value, size); });
  return kSuccess;
}
Status hipModuleLoadData(Module* module, const void* code) {
  if (std::strcmp(static_cast<const char*>(code), "kernels for the host") != 0) return kInvalid;
  *module = const_cast<void*>(code);
  return kSuccess;
}
Status hipModuleGetFunction(Function* function, Module, const char* name) {
  const auto found = table().find(name);
  if (found == table().end()) return kNotFound;
  *function = const_cast<Bind*>(&found->second);
  return kSuccess;
}
Status hipModuleLaunchKernel(Function function, unsigned blocks, unsigned y, unsigned z, unsigned threads, unsigned ty,
                             unsigned tz, unsigned, Stream stream, void** places, void**) {
  if (is_faulty("launch")) return kLaunchFailed;
  if (blocks == 0 || y * z * ty * tz != 1) return kInvalid;
  enqueue(stream, [launch = (*static_cast<const Bind*>(function))(places), blocks, threads] {
    ++kernels_begun;
    spoil();
    launch(blocks, threads);
    spoil();
  });
  return kSuccess;
}
const char* hipGetErrorString(Status status) {
  return status == kLaunchFailed  ? "unspecified launch failure"
         : status == kOutOfMemory ? "out of memory"
                                  : "a failure";
}
const char* hipGetErrorName(Status status) {
  return status == kLaunchFailed  ? "hipErrorLaunchFailure"
         : status == kOutOfMemory ? "hipErrorOutOfMemory"
                                  : "hipError";
}
Status hipGetLastError() { return kSuccess; }

}  // extern "C"
