// nvlink: the bytes of a fabric handle go through a folder of the operator's; their import by the driver is the
// attempt.
#include "workloads/crossing/nvlink.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>

#include <fmt/format.h>

#include "probes/core/probe.h"
#include "probes/core/sha256.h"
#include "probes/core/text.h"
#include "probes/cuda/shared_memory.h"

namespace assay::crossing {
namespace {

constexpr std::size_t kOffered = std::size_t{2} << 20;  // B
constexpr std::chrono::milliseconds kLookForHandle{100};
constexpr std::size_t kProof = 32;  // B

std::string file_in(const std::string& folder, std::string_view token) {
  constexpr std::size_t kBytes = 8;
  return folder + "/assay-handle-" + to_hexadecimal(hmac_sha256(token, "name of a handle").substr(0, kBytes));
}

/// The first GPU of the driver that offers fabric handles; nothing if none does.
std::optional<cuda::DriverGpu> sharing_gpu(const cuda::CudaDriver& driver) {
  const auto all = driver.gpus();
  const auto found = std::ranges::find(all, true, &cuda::DriverGpu::fabric_handles);
  return found == all.end() ? std::nullopt : std::optional(*found);
}

/// The handle in the file `path`, whole and with its proof; nothing before.
std::optional<std::string> handle_in(const std::string& path, std::string_view token) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  if (bytes.size() <= kProof) return std::nullopt;
  std::string handle = bytes.substr(kProof);
  return hmac_sha256(token, handle) == bytes.substr(0, kProof) ? std::optional(handle) : std::nullopt;
}

}  // namespace

void offer_memory(const std::string& folder, std::string_view token, Clock::time_point until) {
  const cuda::CudaDriver driver;
  const auto gpu = sharing_gpu(driver);
  if (!gpu) throw Skip("no GPU of this node offers handles of the NVLink fabric");
  const cuda::SharingGpu on(driver, *gpu, cuda::HandleKind::fabric);
  const auto memory = cuda::SharedMemory::made(on, on.whole(kOffered));
  const std::string handle = memory.handle().fabric, path = file_in(folder, token);
  {
    std::ofstream file(path + ".new", std::ios::binary);
    file << hmac_sha256(token, handle) << handle;
    if (!file.flush()) throw std::runtime_error(fmt::format("{}: cannot be written", path));
  }
  std::filesystem::rename(path + ".new", path);
  sleep_until_stopped(until - Clock::now());
  std::filesystem::remove(path);
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
  std::optional<std::string> handle;
  while (!(handle = handle_in(file_in(folder, token), token)) && Clock::now() < until && !stop_requested())
    sleep_until_stopped(kLookForHandle);
  if (!handle) return {Outcome::unclear, fmt::format("nothing was tried: no handle came into {}", folder)};
  try {
    (void)cuda::SharedMemory::imported(into, {.fabric = *handle, .posix = {}}, size, "the path's tenant");
    return {Outcome::answered, "the memory was imported"};
  } catch (const std::runtime_error& error) {
    return {Outcome::refused, error.what()};
  }
}

}  // namespace assay::crossing
