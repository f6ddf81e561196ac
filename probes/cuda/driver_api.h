// driver_api: the part of NVIDIA's CUDA driver API that is used here: names, numbers and layouts of its public cuda.h
// (CUDA 13.0), declared so that neither building nor starting needs the Toolkit or the driver.
#pragma once

#include <cstddef>

namespace assay::cuda_api {

/// The file name of the library that every NVIDIA driver installs.
inline constexpr const char* kLibrary = "libcuda.so.1";

/// Result of every call (CUresult).
using Result = int;
inline constexpr Result kSuccess = 0, kStubLibrary = 34, kNoDevice = 100;

/// One GPU (CUdevice): its number among those that the driver shows to this process.
using Device = int;
/// An address in a GPU's memory (CUdeviceptr).
using Address = unsigned long long;
/// A context; its content is the library's.
struct ContextTag;
using Context = ContextTag*;

/// 16 bytes that name a GPU (CUuuid).
struct Uuid {
  std::byte bytes[16];
};
static_assert(sizeof(Uuid) == 16);

/// Attributes of cuDeviceGetAttribute: whether nvidia-peermem and dma-buf may reach the memory, and a bit mask of how
/// writes from outside are flushed, of which bit 0 means cuFlushGPUDirectRDMAWrites.
inline constexpr int kAttributeRdma = 116, kAttributeFlush = 117, kAttributeDmaBuf = 124;
inline constexpr int kFlushByHost = 1;
/// CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD.
inline constexpr int kPointerSyncMemops = 6, kHandleDmaBuf = 1;
/// Attributes again: whether memory can be shared by file descriptors and by fabric handles, and whether the switches
/// between the GPUs multicast.
inline constexpr int kAttributeDescriptors = 103, kAttributeFabricHandles = 128, kAttributeMulticast = 132;
/// CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, CU_MEM_HANDLE_TYPE_FABRIC.
inline constexpr int kHandlePosix = 1, kHandleFabric = 8;
/// CU_MEM_ACCESS_FLAGS_PROT_READWRITE, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED, and that of multicast objects.
inline constexpr int kReadWrite = 3, kGranularityRecommended = 1;

/// Memory or a multicast object that is not mapped (CUmemGenericAllocationHandle).
using Handle = unsigned long long;
/// Names such memory in every process of one NVLink fabric (CUmemFabricHandle).
struct FabricHandle {
  unsigned char bytes[64];
};
/// The memory of a GPU (CUmemLocation of type DEVICE).
struct Location {
  int type = 1;
  int id = 0;
};
/// CUmemAllocationProp, of pinned memory.
struct Allocation {
  int type = 1;
  int handle_types = 0;
  Location location;
  void* windows = nullptr;
  unsigned char compression = 0, rdma = 0;
  unsigned short usage = 0;
  unsigned char reserved[4] = {};
};
static_assert(sizeof(Allocation) == 32);
/// CUmemAccessDesc.
struct Access {
  Location location;
  int flags = kReadWrite;
};
static_assert(sizeof(Access) == 12);
/// CUmulticastObjectProp.
struct Multicast {
  unsigned devices = 0;
  std::size_t size = 0;
  unsigned long long handle_types = 0, flags = 0;
};
static_assert(sizeof(Multicast) == 32);

/// Target and scope of cuFlushGPUDirectRDMAWrites: the current context, visible to the owner of the memory.
inline constexpr int kFlushCurrent = 0, kFlushToOwner = 100;

template <class... Arguments>
using Call = Result (*)(Arguments...);

/// The functions, as the library exports them; the optional ones are null in versions without them.
struct Functions {
  Call<unsigned> init = nullptr;
  Call<int*> driver_version = nullptr;
  Call<Result, const char**> error_string = nullptr;
  Call<int*> count = nullptr;
  Call<Device*, int> device = nullptr;
  Call<char*, int, Device> name = nullptr;
  Call<char*, int, Device> pci_bus_id = nullptr;
  Call<Uuid*, Device> uuid = nullptr;        ///< of a MIG instance its own
  Call<Uuid*, Device> uuid_whole = nullptr;  ///< of a MIG instance that of its GPU; optional
  Call<int*, int, Device> attribute = nullptr;
  Call<Context*, Device> retain_context = nullptr;
  Call<Device> release_context = nullptr;
  Call<Context> use_context = nullptr;
  Call<> synchronize = nullptr;
  Call<std::size_t*, std::size_t*> memory_left = nullptr;  ///< free and total, of the current context's GPU
  Call<Address*, std::size_t> allocate = nullptr;
  Call<Address> free = nullptr;
  Call<Address, unsigned char, std::size_t> set_bytes = nullptr;
  Call<Address, const void*, std::size_t> copy_in = nullptr;
  Call<void*, Address, std::size_t> copy_out = nullptr;
  Call<const void*, int, Address> pointer_attribute = nullptr;
  Call<void*, Address, std::size_t, int, unsigned long long> range_handle = nullptr;  ///< optional: since CUDA 11.7
  Call<int, int> flush_writes = nullptr;                                              ///< optional: since CUDA 11.3
  Call<Address, Address, std::size_t> copy = nullptr;  ///< on the device, in order with the default stream
  // Memory that processes share, all of it optional: since CUDA 10.2, multicast since 12.1.
  Call<Handle*, std::size_t, const Allocation*, unsigned long long> create = nullptr;
  Call<Handle> release = nullptr;
  Call<std::size_t*, const Allocation*, int> granularity = nullptr;
  Call<void*, Handle, int, unsigned long long> export_handle = nullptr;
  Call<Handle*, void*, int> import_handle = nullptr;
  Call<Address*, std::size_t, std::size_t, Address, unsigned long long> reserve = nullptr;
  Call<Address, std::size_t> unreserve = nullptr;
  Call<Address, std::size_t, std::size_t, Handle, unsigned long long> map = nullptr;
  Call<Address, std::size_t> unmap = nullptr;
  Call<Address, std::size_t, const Access*, std::size_t> set_access = nullptr;
  Call<Handle*, const Multicast*> multicast_create = nullptr;
  Call<Handle, Device> multicast_add = nullptr;
  Call<Handle, std::size_t, Handle, std::size_t, std::size_t, unsigned long long> multicast_bind = nullptr;
  Call<std::size_t*, const Multicast*, int> multicast_granularity = nullptr;
};

}  // namespace assay::cuda_api
