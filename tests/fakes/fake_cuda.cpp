// fake_cuda: a libcuda for tests. Two GPUs, whose memory lies in files without a name: this library copies into and out
// of them, the addresses that it gives lead to pages that no process may touch, as a real GPU's do. ASSAY_FAKE_CUDA
// names one fault: none, stub, broken, old, no_dma_buf, no_range, full, bit_flip, mig (the first GPU is an instance of
// a partitioned one).
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string_view>

#include <sys/mman.h>
#include <unistd.h>

#include "probes/cuda/driver_api.h"

namespace api = assay::cuda_api;

namespace assay::cuda_api {
struct ContextTag {};
}  // namespace assay::cuda_api

namespace {

constexpr api::Result kInvalidValue = 1, kOutOfMemory = 2, kInvalidContext = 201, kSystemNotReady = 802;
constexpr int kGpus = 2;
constexpr std::size_t kPage = 4096;

bool fault(std::string_view name) {
  const char* const wanted = std::getenv("ASSAY_FAKE_CUDA");
  return wanted != nullptr && name == wanted;
}

struct Allocation {
  int file = -1;
  std::byte* content = nullptr;  // where this library alone sees it
  std::size_t size = 0;
  bool sync = false;
};

struct World {
  std::mutex lock;
  std::map<api::Address, Allocation> allocations;
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
  return offset + size <= next->second.size ? &next->second : nullptr;
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
  *count = kGpus;
  return api::kSuccess;
}
api::Result cuDeviceGet(api::Device* device, int ordinal) {
  *device = ordinal;
  return api::kSuccess;
}
api::Result cuDeviceGetName(char* name, int size, api::Device) {
  std::strncpy(name, "Fake H200", static_cast<std::size_t>(size));
  return api::kSuccess;
}
/// The second GPU has the lower address, so that the order of drivers is not that of the bus.
api::Result cuDeviceGetPCIBusId(char* text, int size, api::Device device) {
  std::strncpy(text, device == 0 ? "0000:9B:00.0" : "0000:1B:00.0", static_cast<std::size_t>(size));
  return api::kSuccess;
}
api::Result cuDeviceGetUuid_v2(api::Uuid* uuid, api::Device device) {
  std::memset(uuid, device == 0 ? 0x9b : 0x1b, sizeof *uuid);
  return api::kSuccess;
}
/// What drivers before MIG export, and what tells an instance from its GPU.
api::Result cuDeviceGetUuid(api::Uuid* uuid, api::Device device) {
  std::memset(uuid, device == 0 ? (fault("mig") ? 0x77 : 0x9b) : 0x1b, sizeof *uuid);
  return api::kSuccess;
}
api::Result cuDeviceGetAttribute(int* value, int attribute, api::Device) {
  *value = 0;
  if (attribute == api::kAttributeRdma) *value = fault("old") ? 0 : 1;
  if (attribute == api::kAttributeDmaBuf) *value = fault("old") || fault("no_dma_buf") ? 0 : 1;
  if (attribute == api::kAttributeFlush) *value = api::kFlushByHost;
  return api::kSuccess;
}
api::Result cuDevicePrimaryCtxRetain(api::Context* context, api::Device) {
  *context = &world.context;
  return api::kSuccess;
}
api::Result cuDevicePrimaryCtxRelease_v2(api::Device) { return api::kSuccess; }
api::Result cuCtxSetCurrent(api::Context context) {
  in_context = context == &world.context;
  return in_context ? api::kSuccess : kInvalidContext;
}
api::Result cuCtxSynchronize() { return in_context ? api::kSuccess : kInvalidContext; }

api::Result cuMemAlloc_v2(api::Address* address, std::size_t size) {
  if (!in_context) return kInvalidContext;
  if (fault("full")) return kOutOfMemory;
  const int file = memfd_create("assay-fake-gpu", MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, static_cast<off_t>(size)) != 0) return kOutOfMemory;
  void* const content = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  void* const seen = mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (content == MAP_FAILED || seen == MAP_FAILED) return kOutOfMemory;
  std::memset(content, 0xee, size);  // what was there before
  const std::lock_guard guard(world.lock);
  *address = reinterpret_cast<api::Address>(seen);
  world.allocations[*address] = {.file = file, .content = static_cast<std::byte*>(content), .size = size};
  return api::kSuccess;
}
api::Result cuMemFree_v2(api::Address address) {
  const std::lock_guard guard(world.lock);
  const auto found = world.allocations.find(address);
  if (found == world.allocations.end()) return kInvalidValue;
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
  if (from == nullptr || !flushed) return kInvalidValue;
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
