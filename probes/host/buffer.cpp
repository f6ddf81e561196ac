// buffer: mmap, madvise, and what /proc/self/smaps says of the result.
#include "probes/host/buffer.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>

#include <sys/mman.h>

#include <fmt/format.h>

#include "probes/core/host_facts.h"
#include "probes/core/scale.h"

namespace assay::host {
namespace {

std::uintptr_t address(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

/// Whether a line of smaps opens a mapping ("7f00-7f10 rw-p …"); then its bounds.
bool read_bounds(const std::string& line, std::uintptr_t& begin, std::uintptr_t& end) {
  char dash = 0;
  std::istringstream text(line);
  return (text >> std::hex >> begin >> dash >> end) && dash == '-';
}

}  // namespace

Buffer::Buffer(Bytes size, Pages pages) : size_(size) {
  const std::size_t rounded = (size.count + kHugePage - 1) / kHugePage * kHugePage;
  mapped_ = rounded + kHugePage;
  void* const mapping =
      mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) {
    throw std::runtime_error(fmt::format("cannot map {}: {}; choose a smaller size",
                                         for_people(static_cast<double>(size.count), "B"), std::strerror(errno)));
  }
  mapping_ = mapping;
  const std::size_t skip = (kHugePage - address(mapping) % kHugePage) % kHugePage;
  begin_ = static_cast<std::byte*>(mapping) + skip;
  // Advice may be refused where the kernel has no huge pages; huge_share() then has the result.
  (void)madvise(begin_, rounded, pages == Pages::huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
}

Buffer::~Buffer() {
  if (mapping_ != nullptr) (void)munmap(mapping_, mapped_);  // cannot fail for a mapping of ours
}

Buffer::Buffer(Buffer&& other) noexcept
    : size_(other.size_),
      mapping_(std::exchange(other.mapping_, nullptr)),
      mapped_(other.mapped_),
      begin_(other.begin_) {}

double Buffer::huge_share() const {
  std::ifstream file("/proc/self/smaps");
  bool inside = false;
  for (std::string line; std::getline(file, line);) {
    std::uintptr_t begin = 0, end = 0;
    if (read_bounds(line, begin, end)) inside = begin <= address(begin_) && address(begin_) < end;
    constexpr std::string_view kKey = "AnonHugePages:";
    if (!inside || !line.starts_with(kKey)) continue;
    const double huge = std::stod(line.substr(kKey.size())) * 1024;  // smaps counts in KiB
    return std::min(1.0, huge / static_cast<double>(size_.count));
  }
  return 0;
}

Bytes affordable(Bytes wanted, std::size_t count, Bytes granule) {
  const std::uint64_t most = total_memory().count / 2 / count;
  const std::uint64_t size = std::min(wanted.count, most) / granule.count * granule.count;
  return {std::max(size, granule.count)};
}

}  // namespace assay::host
