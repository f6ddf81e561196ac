// block_stream: keeps several transfers in flight, and makes or compares the payload of one meanwhile.
#include "workloads/storage/cluster/block_stream.h"

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <vector>

#include <fcntl.h>
#include <liburing.h>

#include <fmt/format.h>

#include "probes/core/probe.h"

namespace assay::cluster_storage {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr const char* kStopped = "stopped by a signal";
constexpr __kernel_timespec kWaitSlice = {.tv_sec = 0, .tv_nsec = 200'000'000};  // the longest a stop goes unnoticed

[[noreturn]] void refuse_transfer(int number, const std::string& attempted) {
  throw std::system_error(number, std::generic_category(), attempted);
}

double seconds_between(SteadyClock::time_point from, SteadyClock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

/// Room for one transfer, so that each begins at a page.
std::size_t stride_of(std::size_t block) { return (block + kDirectBlock - 1) / kDirectBlock * kDirectBlock; }

}  // namespace

BlockFile open_block_file(const std::string& path, int flags) {
  BlockFile file{.path = path, .descriptor = Descriptor(::open(path.c_str(), flags | O_CLOEXEC, 0600))};
  if (!file.descriptor) refuse_transfer(errno, path);
  return file;
}

/// A transfer under way.
struct BlockStream::Flight {
  BlockOperation operation;
  std::size_t done = 0;
  SteadyClock::time_point begun;
};

BlockStream::BlockStream(const StreamPlan& plan)
    : plan_(plan), stride_(stride_of(plan.block)), memory_(stride_ * plan.depth), ring_(std::make_unique<io_uring>()) {
  const int made = io_uring_queue_init(plan.depth, ring_.get(), 0);
  if (made == 0) return;
  ring_.reset();
  refuse_transfer(-made, "io_uring_queue_init");
}

BlockStream::BlockStream(BlockStream&&) noexcept = default;

BlockStream::~BlockStream() {
  if (ring_) io_uring_queue_exit(ring_.get());
}

std::span<std::byte> BlockStream::memory_of(std::size_t slot) const {
  return memory_.bytes().subspan(slot * stride_, plan_.block);
}

void BlockStream::submit(const Flight& flight, std::size_t slot) {
  io_uring_sqe* const entry = io_uring_get_sqe(ring_.get());
  if (entry == nullptr) throw std::logic_error("block_stream: more transfers than the ring has room for");
  const auto rest = memory_of(slot).subspan(flight.done);
  const auto& operation = flight.operation;
  const int file = operation.file->descriptor.number();
  const std::uint64_t offset = operation.offset + flight.done;
  if (operation.reads) {
    io_uring_prep_read(entry, file, rest.data(), static_cast<unsigned>(rest.size()), offset);
  } else {
    io_uring_prep_write(entry, file, rest.data(), static_cast<unsigned>(rest.size()), offset);
  }
  io_uring_sqe_set_data64(entry, slot);
  const int submitted = io_uring_submit(ring_.get());
  if (submitted < 0) refuse_transfer(-submitted, operation.file->path + ": io_uring_submit");
}

void BlockStream::begin(Flight& flight, std::size_t slot, const BlockOperation& operation) {
  if (!operation.reads) fill_payload(operation.key, operation.payload_offset, memory_of(slot));
  flight = {.operation = operation, .done = 0, .begun = SteadyClock::now()};
  submit(flight, slot);
}

/// Takes a completion in; whether the transfer is over. The rest of a short one is submitted again.
bool BlockStream::advance(Flight& flight, std::size_t slot, int result) {
  const auto& operation = flight.operation;
  if (result < 0 && result != -EINTR && result != -EAGAIN) {
    refuse_transfer(-result, fmt::format("{}: {} of {} B at {}", operation.file->path,
                                         operation.reads ? "read" : "write", plan_.block, operation.offset));
  }
  if (result == 0 && !operation.reads) throw std::runtime_error(operation.file->path + ": a write of 0 B");
  if (result > 0) flight.done += static_cast<std::size_t>(result);
  const bool at_end = result == 0 || (plan_.direct && flight.done % kDirectBlock != 0);
  if (flight.done == plan_.block || (operation.reads && at_end)) return true;
  submit(flight, slot);
  return false;
}

int BlockStream::wait(std::size_t& slot, const std::string& path) {
  const auto until = SteadyClock::now() + std::chrono::duration<double>(plan_.deadline.count);
  while (true) {
    io_uring_cqe* entry = nullptr;
    auto slice = kWaitSlice;
    const int waited = io_uring_wait_cqe_timeout(ring_.get(), &entry, &slice);
    if (waited == 0) {
      slot = static_cast<std::size_t>(io_uring_cqe_get_data64(entry));
      const int result = entry->res;
      io_uring_cqe_seen(ring_.get(), entry);
      return result;
    }
    if (waited != -ETIME && waited != -EINTR) refuse_transfer(-waited, path + ": io_uring");
    if (stop_requested()) throw std::runtime_error(kStopped);
    if (SteadyClock::now() > until)
      throw std::runtime_error(fmt::format("{}: no transfer completed within {} s", path, plan_.deadline.count));
  }
}

std::uint64_t BlockStream::run(const StreamWork& work, SteadyClock::time_point origin, StreamTaken& taken) {
  std::vector<Flight> flights(plan_.depth);
  std::vector<std::size_t> idle;
  for (std::size_t slot = flights.size(); slot-- > 0;) idle.push_back(slot);
  std::uint64_t next = work.first;
  while (true) {
    if (stop_requested()) throw std::runtime_error(kStopped);
    if (work.abandoned != nullptr && *work.abandoned) throw std::runtime_error("given up, since the group has ended");
    while (!idle.empty() && next < work.limit && !(work.until && SteadyClock::now() >= *work.until)) {
      const std::size_t slot = idle.back();
      idle.pop_back();
      begin(flights[slot], slot, work.operation(next++));
    }
    if (idle.size() == flights.size()) return next;
    const auto busy = std::ranges::find_if(flights, [](const Flight& one) { return one.operation.file != nullptr; });
    std::size_t slot = 0;
    const int result = wait(slot, busy->operation.file->path);
    Flight& flight = flights[slot];
    if (!advance(flight, slot, result)) continue;
    const auto now = SteadyClock::now();
    taken.latency.add(seconds_between(flight.begun, now));
    taken.moved.add({seconds_between(origin, now)}, flight.done);
    if (flight.operation.reads) {
      const auto& [file, reads, offset, key, payload_offset] = flight.operation;
      const std::size_t whole = flight.done / sizeof(std::uint64_t) * sizeof(std::uint64_t);
      const std::uint64_t wrong =
          payload_mismatches(key, payload_offset, memory_of(slot).first(whole)) + plan_.block - whole;
      if (wrong > 0 && taken.first_wrong.empty())
        taken.first_wrong = fmt::format("{} of {} B at {} of {}", wrong, plan_.block, offset, file->path);
      taken.mismatches += wrong;
    }
    idle.push_back(slot);
  }
}

void BlockStream::sync(const BlockFile& file) {
  io_uring_sqe* const entry = io_uring_get_sqe(ring_.get());
  if (entry == nullptr) throw std::logic_error("block_stream: no room for an fsync");
  io_uring_prep_fsync(entry, file.descriptor.number(), 0);
  const int submitted = io_uring_submit(ring_.get());
  if (submitted < 0) refuse_transfer(-submitted, file.path + ": io_uring_submit");
  std::size_t slot = 0;
  const int result = wait(slot, file.path);
  if (result < 0) refuse_transfer(-result, file.path + ": fsync");
}

}  // namespace assay::cluster_storage
