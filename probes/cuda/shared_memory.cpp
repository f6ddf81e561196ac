// shared_memory: cuMemCreate, cuMemExportToShareableHandle and cuMemImportFromShareableHandle, cuMemMap, cuMulticast.
#include "probes/cuda/shared_memory.h"

#include <cstring>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "probes/core/probe.h"

namespace assay::cuda {

namespace api = cuda_api;
namespace {

constexpr api::Result kNotPermitted = 800;  // CUDA_ERROR_NOT_PERMITTED of cuda.h

int type_of(HandleKind kind) { return kind == HandleKind::fabric ? api::kHandleFabric : api::kHandlePosix; }

api::Allocation allocation_on(const SharingGpu& on) {
  return {.handle_types = type_of(on.kind()), .location = {.id = on.gpu().ordinal}};
}

std::size_t rounded_up(std::size_t size, std::size_t step) {
  return step == 0 ? size : (size + step - 1) / step * step;
}

}  // namespace

SharingGpu::SharingGpu(const CudaDriver& driver, const DriverGpu& gpu, HandleKind kind)
    : driver_(driver), gpu_(gpu), kind_(kind) {
  const auto& f = driver.functions();
  if (!f.create || !f.release || !f.granularity || !f.export_handle || !f.import_handle || !f.reserve || !f.unreserve ||
      !f.map || !f.unmap || !f.set_access || !f.copy)
    throw Skip(
        fmt::format("the driver at {} shares no memory between processes (cuMemCreate, CUDA 10.2)", driver.path()));
  driver.demand(f.retain_context(&context_, gpu_.ordinal), fmt::format("cuDevicePrimaryCtxRetain of {}", gpu_.uuid));
}

SharingGpu::~SharingGpu() { (void)driver_.functions().release_context(gpu_.ordinal); }  // the process ends next

const api::Functions& SharingGpu::current() const {
  driver_.demand(driver_.functions().use_context(context_), "cuCtxSetCurrent");
  return driver_.functions();
}

void SharingGpu::demand(api::Result code, std::string_view what) const {
  if (code == kNotPermitted && kind_ == HandleKind::fabric) {
    throw std::runtime_error(
        fmt::format("{}: {}; hint: the processes of all trays need one IMEX channel in common, a device below "
                    "/dev/nvidia-caps-imex-channels that they may open, in the container too",
                    what, driver_.words(code)));
  }
  driver_.demand(code, what);
}

std::size_t SharingGpu::whole(std::size_t size, unsigned devices) const {
  const auto& f = current();
  const api::Allocation wanted = allocation_on(*this);
  std::size_t step = 0;
  demand(f.granularity(&step, &wanted, api::kGranularityRecommended), "cuMemGetAllocationGranularity");
  size = rounded_up(size, step);
  if (devices == 0 || f.multicast_granularity == nullptr) return size;
  const api::Multicast together{
      .devices = devices, .size = size, .handle_types = static_cast<unsigned long long>(type_of(kind_))};
  demand(f.multicast_granularity(&step, &together, api::kGranularityRecommended), "cuMulticastGetGranularity");
  return rounded_up(size, step);
}

SharedMemory SharedMemory::made(const SharingGpu& on, std::size_t size) {
  const api::Allocation wanted = allocation_on(on);
  api::Handle handle = 0;
  on.demand(on.current().create(&handle, size, &wanted, 0),
            fmt::format("cuMemCreate of {} B on {}", size, on.gpu().uuid));
  return {on, handle, size};
}

SharedMemory SharedMemory::multicast(const SharingGpu& on, std::size_t size, unsigned devices) {
  const api::Multicast wanted{
      .devices = devices, .size = size, .handle_types = static_cast<unsigned long long>(type_of(on.kind()))};
  api::Handle handle = 0;
  on.demand(on.current().multicast_create(&handle, &wanted),
            fmt::format("cuMulticastCreate of {} B for {} GPUs", size, devices));
  return {on, handle, size};
}

SharedMemory SharedMemory::imported(const SharingGpu& into, const MemoryHandle& given, std::size_t size,
                                    std::string_view whose) {
  api::Handle handle = 0;
  const std::string what = fmt::format("importing the memory of {} into {}", whose, into.gpu().uuid);
  if (into.kind() == HandleKind::posix) {
    // The descriptor itself is given in place of a pointer to it (cuMemImportFromShareableHandle).
    void* const number = reinterpret_cast<void*>(static_cast<std::intptr_t>(given.posix.number()));
    into.demand(into.current().import_handle(&handle, number, api::kHandlePosix), what);
    return {into, handle, size};
  }
  api::FabricHandle bytes = {};
  if (given.fabric.size() != sizeof bytes.bytes)
    throw std::runtime_error(
        fmt::format("{}: its handle has {} B instead of {}", what, given.fabric.size(), sizeof bytes.bytes));
  std::memcpy(bytes.bytes, given.fabric.data(), sizeof bytes.bytes);
  into.demand(into.current().import_handle(&handle, &bytes, api::kHandleFabric), what);
  return {into, handle, size};
}

SharedMemory::SharedMemory(SharedMemory&& other) noexcept
    : on_(other.on_),
      handle_(std::exchange(other.handle_, 0)),
      size_(other.size_),
      address_(std::exchange(other.address_, 0)) {}

SharedMemory& SharedMemory::operator=(SharedMemory&& other) noexcept {
  std::swap(on_, other.on_);
  std::swap(handle_, other.handle_);
  std::swap(size_, other.size_);
  std::swap(address_, other.address_);
  return *this;
}

SharedMemory::~SharedMemory() {
  if (handle_ == 0) return;
  try {
    // At the end nothing can be done about a call that fails; the driver takes all back with the process.
    const auto& f = on_->current();
    if (address_ != 0) {
      (void)f.unmap(address_, size_);
      (void)f.unreserve(address_, size_);
    }
    (void)f.release(handle_);
  } catch (const std::exception&) {
    return;
  }
}

MemoryHandle SharedMemory::handle() const {
  const auto& f = on_->current();
  if (on_->kind() == HandleKind::fabric) {
    api::FabricHandle bytes = {};
    on_->demand(f.export_handle(&bytes, handle_, api::kHandleFabric, 0), "cuMemExportToShareableHandle");
    return {.fabric = std::string(reinterpret_cast<const char*>(bytes.bytes), sizeof bytes.bytes)};
  }
  int number = -1;
  on_->demand(f.export_handle(&number, handle_, api::kHandlePosix, 0), "cuMemExportToShareableHandle");
  return {.fabric = {}, .posix = Descriptor(number)};
}

void SharedMemory::map() {
  const auto& f = on_->current();
  api::Address at = 0;
  on_->demand(f.reserve(&at, size_, 0, 0, 0), fmt::format("cuMemAddressReserve of {} B", size_));
  if (const auto code = f.map(at, size_, 0, handle_, 0); code != api::kSuccess) {
    (void)f.unreserve(at, size_);  // the failure before is the one to report
    on_->demand(code, fmt::format("cuMemMap of {} B", size_));
  }
  address_ = at;
  const api::Access access{.location = {.id = on_->gpu().ordinal}};
  on_->demand(f.set_access(at, size_, &access, 1), "cuMemSetAccess");
}

void SharedMemory::add_gpu() {
  on_->demand(on_->current().multicast_add(handle_, on_->gpu().ordinal),
              fmt::format("cuMulticastAddDevice of {}", on_->gpu().uuid));
}

void SharedMemory::bind(const SharedMemory& memory, std::size_t offset, std::size_t bytes) {
  on_->demand(on_->current().multicast_bind(handle_, 0, memory.handle_, offset, bytes, 0),
              fmt::format("cuMulticastBindMem of {} B of {}", bytes, on_->gpu().uuid));
}

}  // namespace assay::cuda
