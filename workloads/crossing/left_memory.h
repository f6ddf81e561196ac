// left_memory: fresh memory of this node, filled with a mark, or searched for the traces of another process.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "probes/core/record.h"
#include "probes/core/units.h"

namespace assay::crossing {

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

/// Calls `use` with each kind of memory of the host that there is, one after another: anonymous, tmpfs, hugetlb, `size`
/// B of each; each is given back before the next. A kind that the host has none of is left out.
void with_host_memory(Bytes size, const std::function<void(FreshMemory&)>& use);

/// The same with the memory of each GPU, in pieces: at most `size` B, 0: all that is to be had. Throws Skip without
/// driver or GPU.
void with_gpu_memory(Bytes size, const std::function<void(FreshMemory&)>& use);

/// The 32 bytes that follow from `mark`, over and over, for a page.
std::vector<std::byte> page_of(const std::string& mark);

/// Fills all of `memory` with the page.
void fill(FreshMemory& memory, std::span<const std::byte> page);

/// Pages that hold 32 bytes of `page` anywhere, on a boundary of 32 bytes.
std::uint64_t pages_with(const FreshMemory& memory, std::span<const std::byte> page);

/// Pages that are not zero throughout. A zero is written into each first: a page that is only read is one that all
/// processes share.
std::uint64_t pages_not_zero(FreshMemory& memory);

}  // namespace assay::crossing
