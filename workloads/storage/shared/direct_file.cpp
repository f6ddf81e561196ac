// direct_file: moves chunks with liburing; a short transfer is continued at its end.
#include "workloads/storage/shared/direct_file.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <system_error>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <liburing.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "probes/core/probe.h"

namespace assay::cluster_storage {
namespace {

[[noreturn]] void fail(int number, const std::string& attempted) {
  throw std::system_error(number, std::generic_category(), attempted);
}

__kernel_timespec timespec_of(Seconds time) {
  const double whole = std::floor(time.count);
  return {.tv_sec = static_cast<long long>(whole), .tv_nsec = static_cast<long long>((time.count - whole) * 1e9)};
}

struct Completion {
  std::uint64_t slot = 0;
  int result = 0;
};

/// The next completion; -ETIME as an error when it is overdue.
Completion next(io_uring& ring, const ChunkPlan& plan, const std::string& path) {
  io_uring_cqe* entry = nullptr;
  auto limit = timespec_of(plan.deadline);
  int waited = -EINTR;
  while (waited == -EINTR && !stop_requested()) waited = io_uring_wait_cqe_timeout(&ring, &entry, &limit);
  if (stop_requested()) throw std::runtime_error("stopped by a signal");
  if (waited == -ETIME)
    throw std::runtime_error(fmt::format("{}: no I/O completed within {} s", path, plan.deadline.count));
  if (waited != 0) fail(-waited, path + ": io_uring");
  const Completion completion{.slot = io_uring_cqe_get_data64(entry), .result = entry->res};
  io_uring_cqe_seen(&ring, entry);
  return completion;
}

io_uring_sqe& free_entry(io_uring& ring) {
  io_uring_sqe* const entry = io_uring_get_sqe(&ring);
  if (entry == nullptr) throw std::logic_error("direct_file: more I/Os than the ring has room for");
  return *entry;
}

void submit(io_uring& ring, const std::string& path) {
  const int submitted = io_uring_submit(&ring);
  if (submitted < 0) fail(-submitted, path + ": io_uring_submit");
}

}  // namespace

DirectMemory::DirectMemory(std::size_t size) : size_(size), memory_(nullptr, Unmap{size}) {
  if (size == 0) return;
  void* const map = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (map == MAP_FAILED) throw std::bad_alloc();
  (void)madvise(map, size, MADV_HUGEPAGE);  // only a wish: fewer pages to pin for each I/O
  memory_.reset(static_cast<std::byte*>(map));
  std::ranges::fill(bytes(), std::byte{0});
}

void DirectMemory::Unmap::operator()(std::byte* memory) const { munmap(memory, size); }

void demand_io_uring() {
  io_uring ring = {};
  const int made = io_uring_queue_init(1, &ring, 0);
  if (made == -ENOSYS || made == -EPERM) {
    throw Skip(fmt::format(
        "io_uring is not permitted here: {} (see sysctl kernel.io_uring_disabled and the container's seccomp profile)",
        std::generic_category().message(-made)));
  }
  if (made < 0) fail(-made, "io_uring_queue_init");
  io_uring_queue_exit(&ring);
}

/// One pass over a file. `piece` gives the memory of the chunk that begins at an offset from the start of the pass.
struct DirectFile::Transfer {
  bool writes = false;
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
  std::uint64_t border = 0;  ///< where the memory changes: no chunk crosses it
  std::function<std::byte*(std::uint64_t)> piece;
  std::function<void(std::uint64_t, std::size_t)> submitted;
};

DirectFile::DirectFile(std::string path, int descriptor, const ChunkPlan& plan)
    : path_(std::move(path)), descriptor_(descriptor), plan_(plan), ring_(std::make_unique<io_uring>()) {
  const int made = io_uring_queue_init(plan.depth, ring_.get(), 0);
  if (made == 0) return;
  ring_.reset();
  fail(-made, path_ + ": io_uring_queue_init");
}

DirectFile::DirectFile(DirectFile&& other) noexcept = default;

DirectFile::~DirectFile() {
  if (ring_) io_uring_queue_exit(ring_.get());
}

DirectFile DirectFile::open_to_read(const std::string& path, const ChunkPlan& plan) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC);
  if (descriptor < 0) fail(errno, path);
  return {path, descriptor, plan};
}

DirectFile DirectFile::make(const std::string& path, std::uint64_t size, const ChunkPlan& plan) {
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_DIRECT | O_CLOEXEC, 0600);
  if (descriptor < 0) fail(errno, path);
  DirectFile file{path, descriptor, plan};
  if (fallocate(descriptor, 0, 0, static_cast<off_t>(size)) == 0) return file;
  if (errno != EOPNOTSUPP) fail(errno, path + ": fallocate");
  if (ftruncate(descriptor, static_cast<off_t>(size)) != 0) fail(errno, path + ": ftruncate");
  return file;
}

std::uint64_t DirectFile::size() const {
  struct stat status = {};
  if (fstat(descriptor_.number(), &status) != 0) fail(errno, path_);
  return static_cast<std::uint64_t>(status.st_size);
}

void DirectFile::queue(const Transfer& transfer, std::size_t slot, std::uint64_t begin, std::size_t done,
                       std::size_t length) {
  io_uring_sqe* const entry = &free_entry(*ring_);
  std::byte* const memory = transfer.piece(begin) + done;
  const std::uint64_t offset = transfer.offset + begin + done;
  const auto bytes = static_cast<unsigned>(length - done);
  if (transfer.writes) {
    io_uring_prep_write(entry, descriptor_.number(), memory, bytes, offset);
  } else {
    io_uring_prep_read(entry, descriptor_.number(), memory, bytes, offset);
  }
  io_uring_sqe_set_data64(entry, slot);
}

void DirectFile::run(const Transfer& transfer) {
  struct Flight {
    std::uint64_t begin = 0;
    std::size_t length = 0, done = 0;
  };
  std::vector<Flight> flights(plan_.depth);
  std::vector<std::size_t> idle;
  for (std::size_t slot = flights.size(); slot-- > 0;) idle.push_back(slot);
  std::uint64_t queued = 0, finished = 0;
  while (finished < transfer.size) {
    const std::uint64_t first_new = queued;
    while (queued < transfer.size && !idle.empty()) {
      const std::size_t slot = idle.back();
      idle.pop_back();
      const std::uint64_t end = queued < transfer.border ? transfer.border : transfer.size;
      flights[slot] = {.begin = queued,
                       .length = static_cast<std::size_t>(std::min<std::uint64_t>(plan_.chunk, end - queued))};
      queue(transfer, slot, queued, 0, flights[slot].length);
      queued += flights[slot].length;
    }
    submit(*ring_, path_);
    for (std::uint64_t begin = first_new; transfer.submitted && begin < queued; begin += plan_.chunk) {
      transfer.submitted(begin, static_cast<std::size_t>(std::min<std::uint64_t>(plan_.chunk, queued - begin)));
    }
    const Completion completion = next(*ring_, plan_, path_);
    if (completion.result < 0) fail(-completion.result, path_);
    if (completion.result == 0) throw std::runtime_error(path_ + ": the file ends early");
    Flight& flight = flights[completion.slot];
    flight.done += static_cast<std::size_t>(completion.result);
    finished += static_cast<std::uint64_t>(completion.result);
    if (flight.done < flight.length) {
      queue(transfer, completion.slot, flight.begin, flight.done, flight.length);
    } else {
      idle.push_back(completion.slot);
    }
  }
}

void DirectFile::write(std::span<const std::byte> from,
                       const std::function<void(std::span<const std::byte>)>& submitted) {
  run({.writes = true,
       .offset = 0,
       .size = from.size(),
       .border = 0,
       .piece =
           [&](std::uint64_t begin) { return const_cast<std::byte*>(from.data()) + begin; },  // liburing takes no const
       .submitted = [&](std::uint64_t begin, std::size_t length) { submitted(from.subspan(begin, length)); }});
}

void DirectFile::write_at(std::span<const std::byte> from, std::uint64_t offset) {
  run({.writes = true,
       .offset = offset,
       .size = from.size(),
       .border = 0,
       .piece = [&](std::uint64_t begin) { return const_cast<std::byte*>(from.data()) + begin; },  // as above
       .submitted = {}});
}

void DirectFile::read(std::span<std::byte> into, std::uint64_t offset) {
  run({.writes = false,
       .offset = offset,
       .size = into.size(),
       .border = 0,
       .piece = [&](std::uint64_t begin) { return into.data() + begin; },
       .submitted = {}});
}

void DirectFile::read(std::span<std::byte> body, std::span<std::byte> rest) {
  run({.writes = false,
       .offset = 0,
       .size = body.size() + rest.size(),
       .border = body.size(),
       .piece =
           [&](std::uint64_t begin) {
             return begin < body.size() ? body.data() + begin : rest.data() + (begin - body.size());
           },
       .submitted = {}});
}

void DirectFile::read_and_forget(std::uint64_t size, std::span<std::byte> ring) {
  run({.writes = false,
       .offset = 0,
       .size = size,
       .border = 0,
       .piece = [&](std::uint64_t begin) { return ring.data() + begin % ring.size(); },
       .submitted = {}});
}

void DirectFile::sync() {
  io_uring_prep_fsync(&free_entry(*ring_), descriptor_.number(), 0);
  submit(*ring_, path_);
  const Completion completion = next(*ring_, plan_, path_);
  if (completion.result < 0) fail(-completion.result, path_ + ": fsync");
}

void sync_directory(const std::string& path) {
  const Descriptor directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory) fail(errno, path);
  if (fsync(directory.number()) != 0) fail(errno, path + ": fsync");
}

}  // namespace assay::cluster_storage
