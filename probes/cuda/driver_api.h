// driver_api: the part of NVIDIA's CUDA driver API that is used here: names, numbers and layouts of its public cuda.h
// (CUDA 13.0), declared so that neither building nor starting needs the Toolkit or the driver.
#pragma once

#include <cstddef>

#include "probes/core/library.h"

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
  Library library;
  Call<unsigned> init = library.function("cuInit");
  Call<int*> driver_version = library.function("cuDriverGetVersion");
  Call<Result, const char**> error_string = library.function("cuGetErrorString");
  Call<int*> count = library.function("cuDeviceGetCount");
  Call<Device*, int> device = library.function("cuDeviceGet");
  Call<char*, int, Device> name = library.function("cuDeviceGetName");
  Call<char*, int, Device> pci_bus_id = library.function("cuDeviceGetPCIBusId");
  Call<Uuid*, Device> uuid = library.function("cuDeviceGetUuid_v2");  ///< of a MIG instance its own
  Call<Uuid*, Device> uuid_whole =
      library.optional_function("cuDeviceGetUuid");  ///< of a MIG instance that of its GPU; optional
  Call<int*, int, Device> attribute = library.function("cuDeviceGetAttribute");
  Call<Context*, Device> retain_context = library.function("cuDevicePrimaryCtxRetain");
  Call<Device> release_context = library.function("cuDevicePrimaryCtxRelease_v2");
  Call<Context> use_context = library.function("cuCtxSetCurrent");
  Call<> synchronize = library.function("cuCtxSynchronize");
  Call<std::size_t*, std::size_t*> memory_left =
      library.function("cuMemGetInfo_v2");  ///< free and total, of the current context's GPU
  Call<Address*, std::size_t> allocate = library.function("cuMemAlloc_v2");
  Call<Address> free = library.function("cuMemFree_v2");
  Call<Address, unsigned char, std::size_t> set_bytes = library.function("cuMemsetD8_v2");
  Call<Address, const void*, std::size_t> copy_in = library.function("cuMemcpyHtoD_v2");
  Call<void*, Address, std::size_t> copy_out = library.function("cuMemcpyDtoH_v2");
  Call<const void*, int, Address> pointer_attribute = library.function("cuPointerSetAttribute");
  Call<void*, Address, std::size_t, int, unsigned long long> range_handle =
      library.optional_function("cuMemGetHandleForAddressRange");                         ///< optional: since CUDA 11.7
  Call<int, int> flush_writes = library.optional_function("cuFlushGPUDirectRDMAWrites");  ///< optional: since CUDA 11.3
  Call<Address, Address, std::size_t> copy =
      library.optional_function("cuMemcpyDtoD_v2");  ///< on the device, in order with the default stream
  // Memory that processes share, all of it optional: since CUDA 10.2, multicast since 12.1.
  Call<Handle*, std::size_t, const Allocation*, unsigned long long> create = library.optional_function("cuMemCreate");
  Call<Handle> release = library.optional_function("cuMemRelease");
  Call<std::size_t*, const Allocation*, int> granularity = library.optional_function("cuMemGetAllocationGranularity");
  Call<void*, Handle, int, unsigned long long> export_handle =
      library.optional_function("cuMemExportToShareableHandle");
  Call<Handle*, void*, int> import_handle = library.optional_function("cuMemImportFromShareableHandle");
  Call<Address*, std::size_t, std::size_t, Address, unsigned long long> reserve =
      library.optional_function("cuMemAddressReserve");
  Call<Address, std::size_t> unreserve = library.optional_function("cuMemAddressFree");
  Call<Address, std::size_t, std::size_t, Handle, unsigned long long> map = library.optional_function("cuMemMap");
  Call<Address, std::size_t> unmap = library.optional_function("cuMemUnmap");
  Call<Address, std::size_t, const Access*, std::size_t> set_access = library.optional_function("cuMemSetAccess");
  Call<Handle*, const Multicast*> multicast_create = library.optional_function("cuMulticastCreate");
  Call<Handle, Device> multicast_add = library.optional_function("cuMulticastAddDevice");
  Call<Handle, std::size_t, Handle, std::size_t, std::size_t, unsigned long long> multicast_bind =
      library.optional_function("cuMulticastBindMem");
  Call<std::size_t*, const Multicast*, int> multicast_granularity =
      library.optional_function("cuMulticastGetGranularity");
};

}  // namespace assay::cuda_api
