// gpu_memory: cuMemAlloc to cuMemGetHandleForAddressRange.
#include "probes/cuda/gpu_memory.h"

#include <stdexcept>

#include <fmt/format.h>

#include "probes/collective/limits.h"
#include "probes/core/descriptor.h"
#include "probes/cuda/patience.h"

namespace assay::cuda {

namespace api = cuda_api;
namespace {

constexpr std::size_t kGpuPage = std::size_t{2} << 20;  // the largest page that drivers map plain allocations with

/// The time that a call for so many B may take: at half the rate of one lane of PCIe 1.0, which a link falls back to,
/// and as long as a driver needs that resets a channel.
Seconds limit_of(std::size_t size) {
  constexpr double kSlowest = 125e6;
  return {collective::Pace::kLeast.count + static_cast<double>(size) / kSlowest};
}

}  // namespace

struct GpuMemory::State {
  State(const CudaDriver& of, const DriverGpu& on, std::size_t bytes) : driver(of), gpu(on), size(bytes) {
    const auto& f = driver.functions();
    driver.demand(f.retain_context(&context, gpu.ordinal), fmt::format("cuDevicePrimaryCtxRetain of {}", gpu.uuid));
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    const auto& f = driver.functions();
    // At the end nothing can be done about a call that fails; the driver takes all back with the process.
    if (address != 0 && f.use_context(context) == api::kSuccess) (void)f.free(address);
    (void)f.release_context(gpu.ordinal);  // as above
  }

  /// The functions, with the context current on this thread.
  [[nodiscard]] const api::Functions& current() const {
    driver.demand(driver.functions().use_context(context), "cuCtxSetCurrent");
    return driver.functions();
  }

  /// Calls `work`, which waits for the GPU: for `what`, of so many B.
  template <class Work>
  void wait(const char* what, std::size_t bytes, const Work& work) {
    const auto due = deadline.set(fmt::format("{} of {} B, {}", what, bytes, gpu.uuid), limit_of(bytes));
    work();
  }

  const CudaDriver& driver;
  DriverGpu gpu;
  Deadline deadline;
  std::size_t size;
  api::Context context = nullptr;
  api::Address address = 0;
};

Bytes free_memory_of(const CudaDriver& driver, const DriverGpu& gpu) {
  const GpuMemory::State on(driver, gpu, 0);
  std::size_t free = 0, total = 0;
  driver.demand(on.current().memory_left(&free, &total), "cuMemGetInfo on " + gpu.uuid);
  return {free};
}

GpuMemory::GpuMemory(const CudaDriver& driver, const DriverGpu& gpu, Bytes size)
    : state_(std::make_unique<State>(driver, gpu, static_cast<std::size_t>(size.count))) {
  const std::size_t whole = (state_->size + kGpuPage - 1) / kGpuPage * kGpuPage;
  const auto& f = state_->current();
  if (const Bytes free = free_memory_of(driver, gpu); whole > free.count)
    throw std::runtime_error(
        fmt::format("{} B do not fit into the {} B of {} that are free", whole, free.count, gpu.uuid));
  driver.demand(f.allocate(&state_->address, whole), fmt::format("cuMemAlloc of {} B on {}", whole, gpu.uuid));
  // Copies then return when they are done, which other devices cannot order themselves (GPUDirect RDMA, 2.6).
  const unsigned on = 1;
  driver.demand(f.pointer_attribute(&on, api::kPointerSyncMemops, state_->address),
                "cuPointerSetAttribute SYNC_MEMOPS");
  state_->wait("clearing memory", whole, [&] {
    driver.demand(f.set_bytes(state_->address, 0, whole), "cuMemsetD8");
    driver.demand(f.synchronize(), "cuCtxSynchronize");
  });
}

GpuMemory::GpuMemory(GpuMemory&&) noexcept = default;
GpuMemory::~GpuMemory() = default;
std::uint64_t GpuMemory::address() const { return state_->address; }
std::size_t GpuMemory::size() const { return state_->size; }
const DriverGpu& GpuMemory::gpu() const { return state_->gpu; }

void GpuMemory::write(std::size_t begin, std::span<const std::byte> bytes) const {
  const auto& f = state_->current();
  state_->wait("a copy to the GPU", bytes.size(), [&] {
    state_->driver.demand(f.copy_in(state_->address + begin, bytes.data(), bytes.size()), "cuMemcpyHtoD");
    state_->driver.demand(f.synchronize(), "cuCtxSynchronize");
  });
}

void GpuMemory::read(std::size_t begin, std::span<std::byte> bytes) const {
  const auto& f = state_->current();
  state_->wait("a copy from the GPU", bytes.size(), [&] {
    if (f.flush_writes != nullptr && state_->gpu.flushes) {
      state_->driver.demand(f.flush_writes(api::kFlushCurrent, api::kFlushToOwner), "cuFlushGPUDirectRDMAWrites");
    }
    state_->driver.demand(f.copy_out(bytes.data(), state_->address + begin, bytes.size()), "cuMemcpyDtoH");
  });
}

std::string GpuMemory::lend_dma_buf(const std::function<void(int, std::uint64_t)>& use) const {
  const auto& f = state_->current();
  if (f.range_handle == nullptr) {
    return fmt::format("the driver at {} has no cuMemGetHandleForAddressRange (CUDA 11.7)", state_->driver.path());
  }
  if (!state_->gpu.dma_buf) return fmt::format("the driver does not share memory of {} as a dma-buf", state_->gpu.uuid);
  // The range must begin and end on pages of the host, which may be larger than the alignment of an allocation.
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t offset = state_->address % page;
  const std::size_t length = (offset + state_->size + page - 1) / page * page;
  int number = -1;
  const auto code = f.range_handle(&number, state_->address - offset, length, api::kHandleDmaBuf, 0);
  if (code != api::kSuccess) return fmt::format("cuMemGetHandleForAddressRange: {}", state_->driver.words(code));
  const Descriptor handle(number);  // the mapping keeps the memory
  use(handle.number(), offset);
  return "";
}

}  // namespace assay::cuda
