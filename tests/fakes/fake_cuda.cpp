// fake_cuda: a libcuda for tests. Two GPUs, or as many up to four as ASSAY_FAKE_CUDA_GPUS says, of the tray
// ASSAY_FAKE_CUDA_TRAY. Their memory lies in files without a name: this library copies into and out of them, the
// addresses that it gives lead to pages that no process may touch, as a real GPU's do. A fabric handle is the process
// and the number of such a file. ASSAY_FAKE_CUDA names one fault: none, stub, broken, old, no_dma_buf, no_range, full,
// bit_flip, mig (the first GPU is an instance of a partitioned one); of memory that processes share: no_fabric,
// no_handles, import_refused, foreign_refused (handles of other processes); residue (freed memory goes, by a file that
// ASSAY_FAKE_CUDA_LEFT names, into the next allocation of any process), and of copies on the first GPU: copy_flips,
// copy_hangs, copy_dies, host_copy_hangs. ASSAY_FAKE_CUDA_FREE_MIB: free memory of each GPU, else 64 GiB.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "probes/cuda/driver_api.h"

namespace api = assay::cuda_api;

namespace assay::cuda_api {
struct ContextTag {};
}  // namespace assay::cuda_api

namespace {

constexpr api::Result kInvalidValue = 1, kOutOfMemory = 2, kInvalidContext = 201, kSystemNotReady = 802;
constexpr api::Result kNotPermitted = 800;
constexpr std::size_t kPage = 4096;
constexpr int kAddresses[] = {0x9b, 0x1b, 0x2b, 0x3b};  // of the GPUs on the bus

int number_in(const char* variable, int fallback) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? fallback : std::stoi(text);
}

bool fault(std::string_view name) {
  const char* const wanted = std::getenv("ASSAY_FAKE_CUDA");
  return wanted != nullptr && name == wanted;
}

/// With the fault "residue": what one process leaves in memory for the next.
FILE* left_file(const char* mode) {
  const char* const path = std::getenv("ASSAY_FAKE_CUDA_LEFT");
  return fault("residue") && path != nullptr ? std::fopen(path, mode) : nullptr;
}

struct Allocation {
  int file = -1;
  std::byte* content = nullptr;  // where this library alone sees it
  std::size_t size = 0;
  bool sync = false;
  bool shared = false;  // mapped from a handle: copies need no flush, but access
  bool accessible = true;
};

struct World {
  std::mutex lock;
  std::map<api::Address, Allocation> allocations;
  std::map<api::Handle, int> handles;  // files
  api::Handle next_handle = 1;
  int first_ordinal = -1;  // of the first GPU whose context was taken: a rank has one
  api::ContextTag context;
};
World world;                           // what a machine has one of
thread_local bool in_context = false;  // whether this thread has a current context
thread_local bool flushed = false;     // whether writes from outside were flushed since the last copy

/// The allocation that holds `size` bytes at `address`, and where they are in it; null when there is none.
Allocation* holding(api::Address address, std::size_t size, std::size_t& offset) {
  auto next = world.allocations.upper_bound(address);
  if (!in_context || next == world.allocations.begin()) return nullptr;
  --next;
  offset = address - next->first;
  return offset + size <= next->second.size && next->second.accessible ? &next->second : nullptr;
}

/// Takes `file` over; invalid when it is none.
api::Result keep(int file, api::Handle* handle) {
  if (file < 0) return kInvalidValue;
  const std::lock_guard guard(world.lock);
  world.handles[*handle = world.next_handle++] = file;
  return api::kSuccess;
}

}  // namespace

extern "C" {

api::Result cuInit(unsigned) {
  if (fault("none")) return api::kNoDevice;
  if (fault("stub")) return api::kStubLibrary;
  return fault("broken") ? kSystemNotReady : api::kSuccess;
}
api::Result cuDriverGetVersion(int* version) {
  *version = 13000;
  return api::kSuccess;
}
api::Result cuGetErrorString(api::Result code, const char** text) {
  if (code == kSystemNotReady) *text = "system not yet initialized";
  if (code == kOutOfMemory) *text = "out of memory";
  return code == kSystemNotReady || code == kOutOfMemory ? api::kSuccess : kInvalidValue;
}
api::Result cuDeviceGetCount(int* count) {
  *count = number_in("ASSAY_FAKE_CUDA_GPUS", 2);
  return api::kSuccess;
}
api::Result cuDeviceGet(api::Device* device, int ordinal) {
  *device = ordinal;
  return api::kSuccess;
}
api::Result cuDeviceGetName(char* name, int size, api::Device) {
  (void)std::snprintf(name, static_cast<std::size_t>(size), "Fake H200");
  return api::kSuccess;
}
/// The second GPU has the lower address, so that the order of drivers is not that of the bus.
api::Result cuDeviceGetPCIBusId(char* text, int size, api::Device device) {
  (void)std::snprintf(text, static_cast<std::size_t>(size), "0000:%02X:00.0", kAddresses[device]);
  return api::kSuccess;
}
api::Result cuDeviceGetUuid_v2(api::Uuid* uuid, api::Device device) {
  std::memset(uuid, kAddresses[device], sizeof *uuid);
  uuid->bytes[0] ^= static_cast<std::byte>(number_in("ASSAY_FAKE_CUDA_TRAY", 0));
  return api::kSuccess;
}
/// What drivers before MIG export, and what tells an instance from its GPU.
api::Result cuDeviceGetUuid(api::Uuid* uuid, api::Device device) {
  if (device != 0 || !fault("mig")) return cuDeviceGetUuid_v2(uuid, device);
  std::memset(uuid, 0x77, sizeof *uuid);
  return api::kSuccess;
}
api::Result cuDeviceGetAttribute(int* value, int attribute, api::Device) {
  *value = 0;
  if (attribute == api::kAttributeRdma) *value = fault("old") ? 0 : 1;
  if (attribute == api::kAttributeDmaBuf) *value = fault("old") || fault("no_dma_buf") ? 0 : 1;
  if (attribute == api::kAttributeFlush) *value = api::kFlushByHost;
  if (attribute == api::kAttributeDescriptors) *value = fault("no_handles") ? 0 : 1;
  if (attribute == api::kAttributeFabricHandles) *value = fault("no_handles") || fault("no_fabric") ? 0 : 1;
  return api::kSuccess;
}
api::Result cuDevicePrimaryCtxRetain(api::Context* context, api::Device device) {
  if (world.first_ordinal < 0) world.first_ordinal = device;
  *context = &world.context;
  return api::kSuccess;
}
api::Result cuDevicePrimaryCtxRelease_v2(api::Device) { return api::kSuccess; }
api::Result cuCtxSetCurrent(api::Context context) {
  in_context = context == &world.context;
  return in_context ? api::kSuccess : kInvalidContext;
}
api::Result cuCtxSynchronize() { return in_context ? api::kSuccess : kInvalidContext; }

api::Result cuMemGetInfo_v2(std::size_t* free, std::size_t* total) {
  *total = std::size_t{64} << 30U;
  *free = std::size_t(number_in("ASSAY_FAKE_CUDA_FREE_MIB", 1 << 16)) << 20U;
  return in_context ? api::kSuccess : kInvalidContext;
}
api::Result cuMemAlloc_v2(api::Address* address, std::size_t size) {
  if (!in_context) return kInvalidContext;
  if (fault("full")) return kOutOfMemory;
  const int file = memfd_create("assay-fake-gpu", MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, static_cast<off_t>(size)) != 0) return kOutOfMemory;
  void* const content = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  void* const seen = mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (content == MAP_FAILED || seen == MAP_FAILED) return kOutOfMemory;
  std::memset(content, 0xee, size);  // what was there before
  if (FILE* const left = left_file("rb")) {
    (void)std::fread(content, 1, std::min(size, kPage), left);
    (void)std::fclose(left);
  }
  const std::lock_guard guard(world.lock);
  *address = reinterpret_cast<api::Address>(seen);
  world.allocations[*address] = {.file = file, .content = static_cast<std::byte*>(content), .size = size};
  return api::kSuccess;
}
api::Result cuMemFree_v2(api::Address address) {
  const std::lock_guard guard(world.lock);
  const auto found = world.allocations.find(address);
  if (found == world.allocations.end()) return kInvalidValue;
  if (FILE* const left = left_file("wb")) {
    (void)std::fwrite(found->second.content, 1, std::min(found->second.size, kPage), left);
    (void)std::fclose(left);
  }
  munmap(found->second.content, found->second.size);
  munmap(reinterpret_cast<void*>(address), found->second.size);
  close(found->second.file);
  world.allocations.erase(found);
  return api::kSuccess;
}
api::Result cuMemsetD8_v2(api::Address address, unsigned char value, std::size_t size) {
  const std::lock_guard guard(world.lock);
  std::size_t offset = 0;
  Allocation* const to = holding(address, size, offset);
  if (to == nullptr) return kInvalidValue;
  std::memset(to->content + offset, value, size);
  return api::kSuccess;
}
api::Result cuMemcpyHtoD_v2(api::Address address, const void* source, std::size_t size) {
  while (world.first_ordinal == 0 && fault("host_copy_hangs")) pause();
  const std::lock_guard guard(world.lock);
  std::size_t offset = 0;
  Allocation* const to = holding(address, size, offset);
  if (to == nullptr || !to->sync) return kInvalidValue;
  std::memcpy(to->content + offset, source, size);
  if (fault("bit_flip")) to->content[offset] ^= std::byte{0x10};
  return api::kSuccess;
}
api::Result cuMemcpyDtoH_v2(void* target, api::Address address, std::size_t size) {
  const std::lock_guard guard(world.lock);
  std::size_t offset = 0;
  const Allocation* const from = holding(address, size, offset);
  if (from == nullptr || !(flushed || from->shared)) return kInvalidValue;
  flushed = false;
  std::memcpy(target, from->content + offset, size);
  return api::kSuccess;
}
api::Result cuPointerSetAttribute(const void* value, int attribute, api::Address address) {
  const std::lock_guard guard(world.lock);
  std::size_t offset = 0;
  Allocation* const of = holding(address, 1, offset);
  if (of == nullptr || attribute != api::kPointerSyncMemops) return kInvalidValue;
  of->sync = *static_cast<const unsigned*>(value) != 0;
  return api::kSuccess;
}
#ifndef ASSAY_WITHOUT_DMABUF
api::Result cuMemGetHandleForAddressRange(void* handle, api::Address address, std::size_t size, int type,
                                          unsigned long long) {
  const std::lock_guard guard(world.lock);
  std::size_t offset = 0;
  const Allocation* const of = holding(address, size, offset);
  if (of == nullptr || fault("no_range") || type != api::kHandleDmaBuf || offset % kPage != 0 || size % kPage != 0)
    return kInvalidValue;
  const int descriptor = dup(of->file);
  std::memcpy(handle, &descriptor, sizeof descriptor);
  return descriptor < 0 ? kInvalidValue : api::kSuccess;
}
#endif
api::Result cuFlushGPUDirectRDMAWrites(int target, int scope) {
  flushed = in_context && target == api::kFlushCurrent && scope == api::kFlushToOwner;
  return flushed ? api::kSuccess : kInvalidValue;
}

api::Result cuMemcpyDtoD_v2(api::Address target, api::Address source, std::size_t size) {
  if (world.first_ordinal == 0 && fault("copy_dies")) _exit(9);
  while (world.first_ordinal == 0 && fault("copy_hangs")) pause();
  const std::lock_guard guard(world.lock);
  std::size_t to_offset = 0, from_offset = 0;
  Allocation* const to = holding(target, size, to_offset);
  const Allocation* const from = holding(source, size, from_offset);
  if (to == nullptr || from == nullptr) return kInvalidValue;
  std::memcpy(to->content + to_offset, from->content + from_offset, size);
  if (world.first_ordinal == 0 && fault("copy_flips")) to->content[to_offset] ^= std::byte{0x10};
  return api::kSuccess;
}

api::Result cuMemGetAllocationGranularity(std::size_t* size, const api::Allocation*, int) {
  *size = kPage;
  return api::kSuccess;
}
api::Result cuMemCreate(api::Handle* handle, std::size_t size, const api::Allocation* wanted, unsigned long long) {
  if (!in_context) return kInvalidContext;
  if (fault("full")) return kOutOfMemory;
  if (size % kPage != 0 || wanted->location.id != world.first_ordinal) return kInvalidValue;
  const int file = memfd_create("assay-fake-gpu", MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, static_cast<off_t>(size)) != 0) return kOutOfMemory;
  return keep(file, handle);
}
api::Result cuMemRelease(api::Handle handle) {
  const std::lock_guard guard(world.lock);
  const auto found = world.handles.find(handle);
  if (found == world.handles.end()) return kInvalidValue;
  close(found->second);
  world.handles.erase(found);
  return api::kSuccess;
}
api::Result cuMemExportToShareableHandle(void* out, api::Handle handle, int type, unsigned long long) {
  const std::lock_guard guard(world.lock);
  const auto found = world.handles.find(handle);
  if (found == world.handles.end()) return kInvalidValue;
  if (type == api::kHandlePosix) {
    const int descriptor = dup(found->second);
    std::memcpy(out, &descriptor, sizeof descriptor);
    return descriptor < 0 ? kInvalidValue : api::kSuccess;
  }
  api::FabricHandle bytes = {};
  (void)std::snprintf(reinterpret_cast<char*>(bytes.bytes), sizeof bytes.bytes, "/proc/%d/fd/%d", getpid(),
                      found->second);
  std::memcpy(out, &bytes, sizeof bytes);
  return api::kSuccess;
}
api::Result cuMemImportFromShareableHandle(api::Handle* handle, void* given, int type) {
  if (fault("import_refused")) return kNotPermitted;
  if (type == api::kHandlePosix) return keep(dup(static_cast<int>(reinterpret_cast<std::intptr_t>(given))), handle);
  const auto* const bytes = static_cast<const api::FabricHandle*>(given);
  const std::string own = "/proc/" + std::to_string(getpid()) + "/";
  if (fault("foreign_refused") && !std::string_view(reinterpret_cast<const char*>(bytes->bytes)).starts_with(own))
    return kNotPermitted;
  return keep(open(reinterpret_cast<const char*>(bytes->bytes), O_RDWR | O_CLOEXEC), handle);
}
api::Result cuMemAddressReserve(api::Address* address, std::size_t size, std::size_t, api::Address,
                                unsigned long long) {
  void* const seen = mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  *address = reinterpret_cast<api::Address>(seen);
  return seen == MAP_FAILED ? kOutOfMemory : api::kSuccess;
}
api::Result cuMemAddressFree(api::Address address, std::size_t size) {
  return munmap(reinterpret_cast<void*>(address), size) == 0 ? api::kSuccess : kInvalidValue;
}
api::Result cuMemMap(api::Address address, std::size_t size, std::size_t offset, api::Handle handle,
                     unsigned long long) {
  const std::lock_guard guard(world.lock);
  const auto found = world.handles.find(handle);
  if (!in_context || found == world.handles.end()) return kInvalidValue;
  void* const content =
      mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, found->second, static_cast<off_t>(offset));
  if (content == MAP_FAILED) return kInvalidValue;
  world.allocations[address] = {
      .content = static_cast<std::byte*>(content), .size = size, .sync = true, .shared = true, .accessible = false};
  return api::kSuccess;
}
api::Result cuMemSetAccess(api::Address address, std::size_t size, const api::Access* access, std::size_t) {
  const std::lock_guard guard(world.lock);
  const auto found = world.allocations.find(address);
  if (found == world.allocations.end() || found->second.size != size || access->flags != api::kReadWrite)
    return kInvalidValue;
  found->second.accessible = true;
  return api::kSuccess;
}
api::Result cuMemUnmap(api::Address address, std::size_t size) {
  const std::lock_guard guard(world.lock);
  const auto found = world.allocations.find(address);
  if (found == world.allocations.end() || found->second.size != size) return kInvalidValue;
  munmap(found->second.content, size);
  world.allocations.erase(found);
  return api::kSuccess;
}

/// What the kernel module nvidia-peermem finds behind an address: the bytes themselves; null where there are none.
void* fake_cuda_peermem(api::Address address, std::size_t size) {
  const std::lock_guard guard(world.lock);
  auto next = world.allocations.upper_bound(address);
  if (next == world.allocations.begin()) return nullptr;
  --next;
  const std::size_t offset = address - next->first;
  return offset + size <= next->second.size ? next->second.content + offset : nullptr;
}

}  // extern "C"
