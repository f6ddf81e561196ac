// memory_residue: whether memory that one process gave back still has its content for the next, as for tenants of one
// machine after each other.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include "probes/core/descriptor.h"
#include "probes/core/probe.h"
#include "probes/core/record.h"
#include "probes/core/recorder.h"
#include "probes/core/rendezvous_door.h"
#include "probes/core/sha256.h"
#include "probes/core/units.h"
#include "probes/cuda/driver.h"

namespace assay::crossing {
namespace {

/// Bytes that count as one page; the memory's own pages may be larger.
inline constexpr std::size_t kPage = 4096;

/// Fresh memory of one kind: nothing was written into it since this process has it.
struct FreshMemory {
  Subject subject;  ///< the node or a GPU
  std::string kind;
  std::size_t size = 0;  ///< B, whole pages
  std::function<void(std::size_t begin, std::span<const std::byte> bytes)> write;
  std::function<void(std::size_t begin, std::span<std::byte> bytes)> read;
};

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

/// Calls `use` with each kind of memory of the host that there is, one after another: anonymous, tmpfs, hugetlb, `size`
/// B of each; each is given back before the next. A kind that the host has none of is left out.
void with_host_memory(Bytes size, const std::function<void(FreshMemory&)>& use) {
  constexpr std::size_t kHugePage = std::size_t{2} << 20;  // so that every kind has whole pages
  const std::size_t whole = (static_cast<std::size_t>(size.count) + kHugePage - 1) / kHugePage * kHugePage;
  use_mapping(mapped(whole, MAP_PRIVATE | MAP_ANONYMOUS).get(), whole, "anonymous", use);
  if (const Descriptor file(::memfd_create("assay-left-memory", MFD_CLOEXEC));
      file && ::ftruncate(file.number(), static_cast<off_t>(whole)) == 0)
    use_mapping(mapped(whole, MAP_SHARED, file.number()).get(), whole, "tmpfs", use);
  use_mapping(mapped(whole, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB).get(), whole, "hugetlb", use);
}

/// The same with the memory of each GPU, in pieces: at most `size` B, 0: all that is to be had. Throws Skip without
/// driver or GPU.
void with_gpu_memory(Bytes size, const std::function<void(FreshMemory&)>& use) {
  const cuda::CudaDriver driver;
  const std::size_t most = size.count == 0 ? SIZE_MAX / 2 : static_cast<std::size_t>(size.count);
  for (const auto& gpu : driver.gpus()) use_gpu(driver, gpu, most, use);
}

/// The 32 bytes that follow from `mark`, over and over, for a page.
std::vector<std::byte> page_of(const std::string& mark) {
  const std::string unit = hmac_sha256(mark, "memory that was left");
  std::vector<std::byte> page(kPage);
  for (std::size_t at = 0; at < kPage; at += kUnit) std::memcpy(page.data() + at, unit.data(), kUnit);
  return page;
}

/// Fills all of `memory` with the page.
void fill(FreshMemory& memory, std::span<const std::byte> page) {
  std::vector<std::byte> bytes(std::min(kAtOnce, memory.size));
  for (std::size_t at = 0; at < bytes.size(); at += kPage) std::ranges::copy(page, bytes.data() + at);
  for (std::size_t begin = 0; begin < memory.size; begin += bytes.size()) {
    if (stop_requested()) throw std::runtime_error("stopped before all memory was written");
    memory.write(begin, std::span(bytes).first(std::min(bytes.size(), memory.size - begin)));
  }
}

/// Pages that hold 32 bytes of `page` anywhere, on a boundary of 32 bytes.
std::uint64_t pages_with(const FreshMemory& memory, std::span<const std::byte> page) {
  return pages_of(memory, [&](const std::byte* at) {
    for (std::size_t unit = 0; unit < kPage; unit += kUnit)
      if (std::memcmp(at + unit, page.data(), kUnit) == 0) return true;
    return false;
  });
}

/// Pages that are not zero throughout. A zero is written into each first: a page that is only read is one that all
/// processes share.
std::uint64_t pages_not_zero(FreshMemory& memory) {
  static constexpr std::byte kZero[kPage] = {};
  for (std::size_t at = 0; at < memory.size; at += kPage) memory.write(at, std::span(kZero).first(1));
  return pages_of(memory, [](const std::byte* at) { return std::memcmp(at, kZero, kPage) != 0; });
}

constexpr Parameter kParameters[] = {
    choice("memory", "host", "host gpu",
           "host: anonymous pages, tmpfs, and huge pages where some are free; gpu: of every GPU"),
    choice("phase", "both", "both leave look",
           "leave: fill memory with the mark and end, as the tenant that goes; look: search fresh memory, as the one "
           "that comes; both: one process after the other"),
    parameter("mark", "", "", "leave, look: words from which the content follows, the same in both"),
    parameter("size", "B", "256MiB", "of each kind; 0B: of a GPU all that is to be had", "16MiB"),
};
constexpr Metric kMetrics[] = {
    fault("residue_pages",
          "pieces of 4 KiB of fresh memory that were not zero (host), or held the mark (gpu), by kind of memory",
          Recorded::if_asked),
    neither("memory_searched", "B", "fresh memory that was searched, by kind", Recorded::if_asked),
};
constexpr ConditionSpec kConditions[] = {
    {.name = "own_mark",
     .meaning = "seen where the process that wrote found its mark in all of its memory while it held it: the positive "
                "control; unseen, or not written by this run (phase=look)"},
};
constexpr ProbeSpec kSpec{
    .name = "memory_residue",
    .measures = "Whether fresh memory of a node still has the content that another process left.",
    .method =
        "One process allocates memory, fills it with 32 bytes that follow from a mark, reads all of it back, which is "
        "the positive control, gives it back and ends. Then another allocates memory and reads all of it: of the host "
        "every page must be zero, after one zero was written into it so that it is no shared page; of a GPU none may "
        "hold the mark. Only the process's own allocations "
        "are read and written. With phase=leave and phase=look the two are runs of two tenants, before and after a "
        "node changes hands. Pages that others hold are not seen: nothing found is no proof.",
    .source =
        "mmap(2), memfd_create(2) of the Linux manual pages; CUDA Driver API, cuMemAlloc, which does not promise "
        "cleared memory.",
    .needs = "gpu: NVIDIA driver.",
    .typical = {5},
    .deadline = {600},
    .parameters = kParameters,
    .metrics = kMetrics,
    .conditions = kConditions};

void with_memory(const Parameters& given, const std::function<void(FreshMemory&)>& use) {
  const Bytes size = given.bytes("size");
  if (given.text("memory") == "gpu") return with_gpu_memory(size, use);
  if (size.count == 0) throw BadParameter("size: 0 B of the host are nothing to search");
  with_host_memory(size, use);
}

/// Whether every page that was written was found while it was held.
bool leave(const Parameters& given, const std::string& mark) {
  const auto page = page_of(mark);
  bool all = true;
  with_memory(given, [&](FreshMemory& memory) {
    fill(memory, page);
    all = all && pages_with(memory, page) == memory.size / kPage;
  });
  return all;
}

/// The same in a process of its own, whose memory goes back when it ends. Its failure is this one's.
bool leave_in_another(const Parameters& given, const std::string& mark) {
  constexpr int kSeen = 0, kUnseen = 3, kFailed = 4, kAbsent = 5;
  const pid_t child = ::fork();
  if (child < 0) throw std::runtime_error("no process for the memory to be left by");
  if (child == 0) {
    int code = kFailed;
    try {
      code = leave(given, mark) ? kSeen : kUnseen;
    } catch (const Skip&) {
      code = kAbsent;  // this process finds the same, and says it
    } catch (const std::exception& error) {
      (void)fprintf(stderr, "the process that leaves memory: %s\n", error.what());
    }
    ::_exit(code);
  }
  constexpr std::chrono::milliseconds kLookForEnd{10};
  int status = 0;
  while (::waitpid(child, &status, WNOHANG) == 0) {  // the deadline of the run ends it with its group
    if (stop_requested()) {
      (void)::kill(child, SIGKILL);
      (void)::waitpid(child, &status, 0);
      throw std::runtime_error("stopped before the memory was left");
    }
    sleep_until_stopped(kLookForEnd);
  }
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : kFailed;
  if (code == kFailed) throw std::runtime_error("the process that leaves memory failed; its words are on stderr");
  return code == kSeen;
}

void look(const Parameters& given, const std::string& mark, Recorder& record) {
  const auto page = page_of(mark);
  with_memory(given, [&](FreshMemory& memory) {
    const bool host = memory.subject.kind == "node";
    const std::uint64_t pages = host ? pages_not_zero(memory) : pages_with(memory, page);
    const Values at{{"kind", memory.kind}};
    record.measurement("residue_pages", static_cast<double>(pages), memory.subject, at);
    record.measurement("memory_searched", static_cast<double>(memory.size), memory.subject, at);
  });
}

void measure(const Parameters& given, Recorder& record) {
  const std::string& phase = given.text("phase");
  std::string mark = given.text("mark");
  if ((phase == "both") != mark.empty())
    throw BadParameter("mark: goes with phase=leave and phase=look, and they need one");
  if (phase == "both") mark = rendezvous::fresh_nonce();
  // Of a GPU the driver is opened after the fork: a process that has opened it cannot leave it to another.
  const bool seen = phase == "both" ? leave_in_another(given, mark) : phase == "leave" && leave(given, mark);
  if (phase != "leave") look(given, mark, record);
  record.condition("own_mark", std::string(seen ? "seen" : "unseen"));
}

}  // namespace
}  // namespace assay::crossing

int main(int argc, char** argv) {
  return assay::probe_main(argc, argv, assay::crossing::kSpec, assay::crossing::measure);
}
