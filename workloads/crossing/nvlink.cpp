// nvlink: the bytes of a fabric handle go through a folder of the operator's; their import by the driver is the
// attempt.
#include "workloads/crossing/nvlink.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "probes/core/probe.h"
#include "probes/cuda/shared_memory.h"
#include "workloads/crossing/notes.h"

namespace assay::crossing {
namespace {

constexpr std::size_t kOffered = std::size_t{2} << 20;  // B
constexpr const char* kHandle = "a handle";

/// The first GPU of the driver that offers fabric handles; nothing if none does.
std::optional<cuda::DriverGpu> sharing_gpu(const cuda::CudaDriver& driver) {
  const auto all = driver.gpus();
  const auto found = std::ranges::find(all, true, &cuda::DriverGpu::fabric_handles);
  return found == all.end() ? std::nullopt : std::optional(*found);
}

}  // namespace

void offer_memory(const std::string& folder, std::string_view token, Clock::time_point until) {
  const cuda::CudaDriver driver;
  const auto gpu = sharing_gpu(driver);
  if (!gpu) throw Skip("no GPU of this node offers handles of the NVLink fabric");
  const cuda::SharingGpu on(driver, *gpu, cuda::HandleKind::fabric);
  const auto memory = cuda::SharedMemory::made(on, on.whole(kOffered));
  const Note note({folder, token}, kHandle, memory.handle().fabric);
  sleep_until_stopped(until - Clock::now());
}

Tried try_nvlink(const std::string& folder, std::string_view token, Clock::time_point until) {
  const cuda::CudaDriver driver;
  const auto gpu = sharing_gpu(driver);
  if (!gpu) return {Outcome::unclear, "nothing was tried: no GPU of this node offers handles of the NVLink fabric"};
  const cuda::SharingGpu into(driver, *gpu, cuda::HandleKind::fabric);
  const std::size_t size = into.whole(kOffered);
  try {
    const auto own = cuda::SharedMemory::made(into, size);
    (void)cuda::SharedMemory::imported(into, own.handle(), size, "this node");
  } catch (const std::runtime_error& error) {
    return {Outcome::unclear, fmt::format("nothing was tried: a handle of this node's own: {}", error.what())};
  }
  const auto handle = await_note({folder, token}, kHandle, until);
  if (!handle) return {Outcome::unclear, fmt::format("nothing was tried: no handle came into {}", folder)};
  try {
    (void)cuda::SharedMemory::imported(into, {.fabric = *handle, .posix = {}}, size, "the path's tenant");
    return {Outcome::answered, "the memory was imported"};
  } catch (const std::runtime_error& error) {
    return {Outcome::refused, error.what()};
  }
}

}  // namespace assay::crossing
