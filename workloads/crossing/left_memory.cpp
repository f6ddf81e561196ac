// left_memory: mmap(2) and memfd_create(2), and cuMemAlloc; memory is read and compared in pieces.
#include "workloads/crossing/left_memory.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <stdexcept>

#include <fmt/format.h>
#include <sys/mman.h>

#include "probes/core/descriptor.h"
#include "probes/core/probe.h"
#include "probes/core/sha256.h"
#include "probes/cuda/driver.h"

namespace assay::crossing {
namespace {

constexpr std::size_t kAtOnce = std::size_t{16} << 20, kUnit = 32;  // B
constexpr std::size_t kLargestPiece = std::size_t{1} << 30, kLeastPiece = std::size_t{2} << 20;

struct Unmap {
  std::size_t size = 0;
  void operator()(void* at) const { (void)::munmap(at, size); }  // a mapping can be unmapped
};

/// `size` B, of the file `file` if it is one; null if the host has none.
std::unique_ptr<void, Unmap> mapped(std::size_t size, int flags, int file = -1) {
  void* const at = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, flags, file, 0);
  return {at == MAP_FAILED ? nullptr : at, Unmap{size}};
}

void use_mapping(void* at, std::size_t size, const char* kind, const std::function<void(FreshMemory&)>& use) {
  if (at == nullptr) return;
  auto* const bytes = static_cast<std::byte*>(at);
  FreshMemory memory{.subject = {"node", ""},
                     .kind = kind,
                     .size = size,
                     .write = [&](std::size_t begin, auto from) { std::ranges::copy(from, bytes + begin); },
                     .read = [&](std::size_t begin, auto to) { std::copy_n(bytes + begin, to.size(), to.begin()); }};
  use(memory);
}

/// All that the current context gives of at most `most` B, in pieces that become smaller as less is left.
class GpuPieces {
 public:
  GpuPieces(const cuda::CudaDriver& driver, std::size_t most) : driver_(driver) {
    const auto& f = driver.functions();
    for (std::size_t piece = kLargestPiece; piece >= kLeastPiece && size() < most;) {
      cuda_api::Address at = 0;
      const std::size_t wanted = std::min(piece, (most - size() + kPage - 1) / kPage * kPage);
      if (f.allocate(&at, wanted) != cuda_api::kSuccess) {
        piece /= 2;
        continue;
      }
      pieces_.push_back({at, size(), wanted});
      const unsigned on = 1;  // copies return when they are done
      driver.demand(f.pointer_attribute(&on, cuda_api::kPointerSyncMemops, at), "cuPointerSetAttribute SYNC_MEMOPS");
    }
  }
  GpuPieces(const GpuPieces&) = delete;
  GpuPieces& operator=(const GpuPieces&) = delete;
  ~GpuPieces() {
    for (const auto& piece : pieces_) (void)driver_.functions().free(piece.at);  // the process ends next
  }

  [[nodiscard]] std::size_t size() const { return pieces_.empty() ? 0 : pieces_.back().begin + pieces_.back().size; }

  /// Calls copy(address, part of `bytes`) for each piece that [begin, begin + bytes.size()) is in.
  template <class Span, class Copy>
  void over(std::size_t begin, Span bytes, const char* what, Copy copy) const {
    for (const auto& piece : pieces_) {
      if (bytes.empty() || begin >= piece.begin + piece.size) continue;
      const std::size_t part = std::min(bytes.size(), piece.begin + piece.size - begin);
      driver_.demand(copy(piece.at + (begin - piece.begin), bytes.first(part)), what);
      bytes = bytes.subspan(part);
      begin += part;
    }
  }

 private:
  struct Piece {
    cuda_api::Address at = 0;
    std::size_t begin = 0, size = 0;
  };
  const cuda::CudaDriver& driver_;
  std::vector<Piece> pieces_;
};

void use_gpu(const cuda::CudaDriver& driver, const cuda::DriverGpu& gpu, std::size_t most,
             const std::function<void(FreshMemory&)>& use) {
  const auto& f = driver.functions();
  cuda_api::Context context = nullptr;
  driver.demand(f.retain_context(&context, gpu.ordinal), fmt::format("cuDevicePrimaryCtxRetain of {}", gpu.uuid));
  driver.demand(f.use_context(context), "cuCtxSetCurrent");
  {
    const GpuPieces pieces(driver, most);
    if (pieces.size() == 0)
      throw std::runtime_error(fmt::format("{} gives no memory: others have all of it", gpu.uuid));
    FreshMemory memory{.subject = {"gpu", gpu.uuid},
                       .kind = "gpu",
                       .size = pieces.size(),
                       .write =
                           [&](std::size_t begin, auto from) {
                             pieces.over(begin, from, "cuMemcpyHtoD",
                                         [&](auto at, auto part) { return f.copy_in(at, part.data(), part.size()); });
                           },
                       .read =
                           [&](std::size_t begin, auto to) {
                             pieces.over(begin, to, "cuMemcpyDtoH", [&](auto at, auto part) {
                               // As GpuMemory::read() does, after all that devices have written.
                               if (f.flush_writes != nullptr && gpu.flushes)
                                 (void)f.flush_writes(cuda_api::kFlushCurrent, cuda_api::kFlushToOwner);
                               return f.copy_out(part.data(), at, part.size());
                             });
                           }};
    use(memory);
  }
  (void)f.release_context(gpu.ordinal);  // the process ends next
}

/// Pages of `memory` of which `is_left` holds.
template <class IsLeft>
std::uint64_t pages_of(const FreshMemory& memory, IsLeft is_left) {
  std::vector<std::byte> bytes(std::min(kAtOnce, memory.size));
  std::uint64_t pages = 0;
  for (std::size_t begin = 0; begin < memory.size; begin += bytes.size()) {
    if (stop_requested()) throw std::runtime_error("stopped before all memory was read");
    const auto part = std::span(bytes).first(std::min(bytes.size(), memory.size - begin));
    memory.read(begin, part);
    for (std::size_t at = 0; at < part.size(); at += kPage) pages += is_left(part.data() + at) ? 1 : 0;
  }
  return pages;
}

}  // namespace

void with_host_memory(Bytes size, const std::function<void(FreshMemory&)>& use) {
  constexpr std::size_t kHugePage = std::size_t{2} << 20;  // so that every kind has whole pages
  const std::size_t whole = (static_cast<std::size_t>(size.count) + kHugePage - 1) / kHugePage * kHugePage;
  use_mapping(mapped(whole, MAP_PRIVATE | MAP_ANONYMOUS).get(), whole, "anonymous", use);
  if (const Descriptor file(::memfd_create("assay-left-memory", MFD_CLOEXEC));
      file && ::ftruncate(file.number(), static_cast<off_t>(whole)) == 0)
    use_mapping(mapped(whole, MAP_SHARED, file.number()).get(), whole, "tmpfs", use);
  use_mapping(mapped(whole, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB).get(), whole, "hugetlb", use);
}

void with_gpu_memory(Bytes size, const std::function<void(FreshMemory&)>& use) {
  const cuda::CudaDriver driver;
  const std::size_t most = size.count == 0 ? SIZE_MAX / 2 : static_cast<std::size_t>(size.count);
  for (const auto& gpu : driver.gpus()) use_gpu(driver, gpu, most, use);
}

std::vector<std::byte> page_of(const std::string& mark) {
  const std::string unit = hmac_sha256(mark, "memory that was left");
  std::vector<std::byte> page(kPage);
  for (std::size_t at = 0; at < kPage; at += kUnit) std::memcpy(page.data() + at, unit.data(), kUnit);
  return page;
}

void fill(FreshMemory& memory, std::span<const std::byte> page) {
  std::vector<std::byte> bytes(std::min(kAtOnce, memory.size));
  for (std::size_t at = 0; at < bytes.size(); at += kPage) std::ranges::copy(page, bytes.data() + at);
  for (std::size_t begin = 0; begin < memory.size; begin += bytes.size()) {
    if (stop_requested()) throw std::runtime_error("stopped before all memory was written");
    memory.write(begin, std::span(bytes).first(std::min(bytes.size(), memory.size - begin)));
  }
}

std::uint64_t pages_with(const FreshMemory& memory, std::span<const std::byte> page) {
  return pages_of(memory, [&](const std::byte* at) {
    for (std::size_t unit = 0; unit < kPage; unit += kUnit)
      if (std::memcmp(at + unit, page.data(), kUnit) == 0) return true;
    return false;
  });
}

std::uint64_t pages_not_zero(FreshMemory& memory) {
  static constexpr std::byte kZero[kPage] = {};
  for (std::size_t at = 0; at < memory.size; at += kPage) memory.write(at, std::span(kZero).first(1));
  return pages_of(memory, [](const std::byte* at) { return std::memcmp(at, kZero, kPage) != 0; });
}

}  // namespace assay::crossing
