// rank_board: one memfd, a page apart from each other so that ranks share no cache line.
#include "probes/collective/rank_board.h"

#include <cerrno>
#include <chrono>
#include <new>
#include <system_error>

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace assay::collective {
namespace {

constexpr std::size_t kApart = 4096;
static_assert(sizeof(RankPage) <= kApart);

}  // namespace

std::int64_t monotonic_ns() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

void RankBoard::Unmap::operator()(void* memory) const noexcept { (void)munmap(memory, size); }

RankBoard::RankBoard(std::size_t ranks) : file_(memfd_create("rank_board", 0)), ranks_(ranks) {
  if (!file_ || ftruncate(file_.number(), static_cast<off_t>(ranks * kApart)) != 0)
    throw std::system_error(errno, std::generic_category(), "memory that ranks share with their leader");
  map();
  for (std::size_t rank = 0; rank < ranks; ++rank) clear(rank);
}

RankBoard::RankBoard(int descriptor, std::size_t ranks) : file_(descriptor), ranks_(ranks) {
  struct stat found = {};
  if (fstat(descriptor, &found) != 0 || found.st_size != static_cast<off_t>(ranks * kApart))
    throw std::system_error(EBADF, std::generic_category(), "memory that the leader shares");
  map();
}

void RankBoard::map() {
  const std::size_t size = ranks_ * kApart;
  void* const memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file_.number(), 0);
  if (memory == MAP_FAILED)
    throw std::system_error(errno, std::generic_category(), "memory that ranks share with their leader");
  memory_ = std::unique_ptr<void, Unmap>(memory, Unmap{size});
}

RankPage& RankBoard::page(std::size_t rank) const {
  return *std::launder(reinterpret_cast<RankPage*>(static_cast<std::byte*>(memory_.get()) + rank * kApart));
}

void RankBoard::clear(std::size_t rank) {
  RankPage& page = this->page(rank);
  page.beat_ns = page.joined_ns = page.heard_ns = page.struck_ns = page.place = page.give_up = 0;
}

}  // namespace assay::collective
