// fake_rccl: an RCCL of made-up ranks, over the fake HIP runtime beside it. Each rank is a process; it puts what it
// sends in memory of its own that others open by its number (/proc/<pid>/fd), and waits in its stream until all have.
// Nothing is left behind by a rank that dies. ASSAY_FAKE_RCCL has what differs:
//   version=22606            the number of ncclGetVersion
//   rank=1 fault=KIND        of that rank: wrong (a bit of each result), lost (its part of a sum is missing), hang (no
//                            collective is ever done), slow (each takes 50 ms), dies (at its third collective), refuses
//                            (to enter)
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "probes/nccl/nccl_api.h"
#include "tests/fakes/settings.h"

using namespace assay::nccl::api;  // NOLINT(google-build-using-namespace): a fake of all of it

extern "C" {
void assay_fake_enqueue(Stream stream, bool (*work)(void*), void* of);  // of fake_amdhip
}

namespace {

using Clock = std::chrono::steady_clock;
constexpr Result kSystemError = 2, kInvalid = 4;
constexpr int kMostRanks = 64;

std::string setting(const std::string& name, const std::string& otherwise) {
  std::istringstream words(assay::fakes::told("ASSAY_FAKE_RCCL", reinterpret_cast<const void*>(&setting)));
  for (std::string word; words >> word;)
    if (word.starts_with(name + "=")) return word.substr(name.size() + 1);
  return otherwise;
}

/// The meeting place of a communicator, in memory of rank 0.
struct Board {
  struct Place {
    std::atomic<int> pid, files[2];     ///< where its posts are, in turn
    std::atomic<std::uint64_t> posted;  ///< how many
  };
  std::array<Place, kMostRanks> ranks;
};

/// What a rank sends in one collective: parts to all (-1) or to one rank, and their bytes behind.
struct Part {
  int to = -1;
  std::size_t offset = 0, bytes = 0;
};

void* mapped(int file, std::size_t size) { return mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0); }

int opened(int pid, int file) {
  return open(("/proc/" + std::to_string(pid) + "/fd/" + std::to_string(file)).c_str(), O_RDWR | O_CLOEXEC);
}

}  // namespace

struct ncclComm {
  int rank = 0, ranks = 1;
  Board* board = nullptr;
  std::array<int, 2> files = {};
  std::uint64_t collectives = 0;  ///< enqueued
  std::string fault;
};

namespace {

/// What arrives: bytes of `from` at `to`, or its numbers added there.
struct Arrival {
  int from;
  std::size_t skip, bytes;  ///< of what that rank sends to this one
  std::byte* to;
};

/// One collective in a stream.
struct Work {
  ncclComm* comm;
  std::uint64_t number;
  std::vector<std::pair<Part, const std::byte*>> sends;
  std::vector<Arrival> arrivals;
  int adds = -1;  ///< the type of numbers that are added
  std::byte* result = nullptr;
  bool posted = false;
  std::optional<Clock::time_point> asked = {};  ///< whether it is done, for the first time
};

void post(Work& work) {
  ncclComm& comm = *work.comm;
  if (comm.fault == "dies" && work.number == 2) (void)std::raise(SIGKILL);
  std::size_t size = sizeof(std::size_t) + work.sends.size() * sizeof(Part);
  for (auto& [part, bytes] : work.sends) {
    part.offset = size;
    size += part.bytes;
  }
  const int file = comm.files.at(work.number % 2);
  const bool grown = ftruncate(file, static_cast<off_t>(size)) == 0;
  auto* const memory = static_cast<std::byte*>(grown ? mapped(file, size) : MAP_FAILED);
  if (memory == MAP_FAILED) std::abort();
  const std::size_t count = work.sends.size();
  std::memcpy(memory, &count, sizeof count);
  auto* at = memory + sizeof count;
  for (const auto& [part, bytes] : work.sends) {
    std::memcpy(at, &part, sizeof part);
    at += sizeof part;
    std::memcpy(memory + part.offset, bytes, part.bytes);
  }
  munmap(memory, size);
  comm.board->ranks.at(static_cast<std::size_t>(comm.rank)).posted = work.number + 1;
  work.posted = true;
}

/// The bytes that `from` sends to this rank in this collective; none if it has died.
std::vector<std::byte> bytes_from(const Work& work, int from) {
  const auto& place = work.comm->board->ranks.at(static_cast<std::size_t>(from));
  const int file = opened(place.pid, place.files[work.number % 2]);
  if (file < 0) return {};
  const off_t size = lseek(file, 0, SEEK_END);
  if (size <= 0) std::abort();
  auto* const memory = static_cast<const std::byte*>(mapped(file, static_cast<std::size_t>(size)));
  std::size_t count = 0;
  std::memcpy(&count, memory, sizeof count);
  std::vector<std::byte> all;
  for (std::size_t i = 0; i < count; ++i) {
    Part part;
    std::memcpy(&part, memory + sizeof count + i * sizeof part, sizeof part);
    if (part.to == -1 || part.to == work.comm->rank)
      all.insert(all.end(), memory + part.offset, memory + part.offset + part.bytes);
  }
  munmap(const_cast<std::byte*>(memory), static_cast<std::size_t>(size));
  close(file);
  return all;
}

template <class Number>
void add(std::byte* to, const std::byte* from, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes / sizeof(Number); ++i) {
    Number a, b;
    std::memcpy(&a, to + i * sizeof a, sizeof a);
    std::memcpy(&b, from + i * sizeof b, sizeof b);
    a = static_cast<Number>(a + b);
    std::memcpy(to + i * sizeof a, &a, sizeof a);
  }
}
/// Numbers of 16 bits whose upper half of a float they are.
void add_bfloats(std::byte* to, const std::byte* from, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; i += 2) {
    std::array<std::uint32_t, 2> bits = {};
    std::memcpy(reinterpret_cast<std::byte*>(&bits[0]) + 2, to + i, 2);
    std::memcpy(reinterpret_cast<std::byte*>(&bits[1]) + 2, from + i, 2);
    const float sum = __builtin_bit_cast(float, bits[0]) + __builtin_bit_cast(float, bits[1]);
    std::memcpy(to + i, reinterpret_cast<const std::byte*>(&sum) + 2, 2);
  }
}

/// Whether it is done: not before every rank has posted.
bool progress(void* of) {
  auto& work = *static_cast<Work*>(of);
  ncclComm& comm = *work.comm;
  if (comm.fault == "hang") return false;
  if (!work.asked) work.asked = Clock::now();
  if (comm.fault == "slow" && Clock::now() < *work.asked + std::chrono::milliseconds(50)) return false;
  if (!work.posted) post(work);
  for (int rank = 0; rank < comm.ranks; ++rank)
    if (comm.board->ranks.at(static_cast<std::size_t>(rank)).posted <= work.number) return false;
  bool first = true;
  for (const Arrival& one : work.arrivals) {
    const auto bytes = bytes_from(work, one.from);
    if (bytes.size() < one.skip + one.bytes) return false;  // it waits for ever, as for a GPU that is gone
    const std::byte* const from = bytes.data() + one.skip;
    const bool is_missing = comm.fault == "lost" && one.from == comm.rank && work.adds >= 0;
    if (work.adds < 0 || first)
      std::memcpy(one.to, from, one.bytes);
    else if (is_missing)
      continue;
    else if (work.adds == kFloat32)
      add<float>(one.to, from, one.bytes);
    else if (work.adds == kFloat64)
      add<double>(one.to, from, one.bytes);
    else if (work.adds == kFloat16)
      add<_Float16>(one.to, from, one.bytes);
    else
      add_bfloats(one.to, from, one.bytes);
    first = false;
  }
  if (comm.fault == "wrong" && work.result != nullptr) *work.result ^= std::byte{1};
  delete &work;
  return true;
}

/// A group of sends and receives that is open.
struct Group {
  bool open = false;
  std::unique_ptr<Work> work;
  Stream stream = nullptr;
  std::map<int, std::size_t> received;  ///< bytes of each rank so far
};
Group group;

std::size_t width(int type) { return type == kInt8 ? 1 : type == kFloat64 ? 8 : type == kFloat32 ? 4 : 2; }

std::unique_ptr<Work> begun(Comm comm) {
  return std::make_unique<Work>(Work{.comm = comm, .number = comm->collectives++, .sends = {}, .arrivals = {}});
}

Result done(std::unique_ptr<Work> work, Stream stream) {
  if (!work->arrivals.empty()) work->result = work->arrivals.front().to;
  assay_fake_enqueue(stream, progress, work.release());
  return kSuccess;
}

FILE* log_file() {
  static FILE* const kFile = [] {
    const char* name = std::getenv("NCCL_DEBUG_FILE");
    return name == nullptr ? stderr : std::fopen(name, "w");
  }();
  return kFile;
}
template <class... Words>
void log(const char* form, Words... words) {
  if (log_file() == nullptr) return;
  (void)std::fprintf(log_file(), "n01:%d:%d [0] NCCL INFO ", getpid(), getpid());
  (void)std::fprintf(log_file(), form, words...);
  (void)std::fputc('\n', log_file());
  (void)std::fflush(log_file());
}
void log_choice(Comm comm, const char* function, std::size_t bytes) {
  if (comm->rank == 0) log("%s: %ld Bytes -> Algo RING proto SIMPLE channel{Lo..Hi}={0..31}", function, bytes);
}

}  // namespace

extern "C" {

Result ncclGetVersion(int* version) {
  *version = std::stoi(setting("version", "22606"));
  return kSuccess;
}
const char* ncclGetErrorString(Result result) { return result == kSystemError ? "unhandled system error" : "no error"; }
const char* ncclGetLastError(Comm) { return "a word of RCCL"; }

/// The id says whose memory the board is in.
Result ncclGetUniqueId(UniqueId* id) {
  const int file = memfd_create("board", MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, sizeof(Board)) != 0) return kSystemError;
  (void)std::snprintf(id->internal, sizeof id->internal, "%d %d", getpid(), file);
  return kSuccess;
}
Result ncclCommInitRankConfig(Comm* to, int ranks, UniqueId id, int rank, Config* config) {
  if (config->size != sizeof(Config) || config->magic != 0xcafebeef || config->blocking != 0 || ranks > kMostRanks)
    return kInvalid;
  const bool is_faulty = std::to_string(rank) == setting("rank", "1");
  const std::string fault = is_faulty ? setting("fault", "none") : "none";
  if (fault == "refuses") return kSystemError;
  int pid = 0, number = 0;
  if (!(std::istringstream(id.internal) >> pid >> number)) return kInvalid;
  const int file = opened(pid, number);
  void* const memory = file < 0 ? MAP_FAILED : mapped(file, sizeof(Board));
  if (memory == MAP_FAILED) return kSystemError;
  auto* const comm = *to = new ncclComm{.rank = rank, .ranks = ranks, .board = static_cast<Board*>(memory)};
  comm->fault = fault;
  auto& place = comm->board->ranks.at(static_cast<std::size_t>(rank));
  for (std::size_t i = 0; i < 2; ++i) place.files[i] = comm->files[i] = memfd_create("posts", MFD_CLOEXEC);
  place.pid = getpid();
  log("Channel 00/0 : %d[5000] -> %d[%x] via P2P/IPC comm %p nRanks %02d", rank, (rank + 1) % ranks, 0x15000,
      static_cast<void*>(comm), ranks);
  return kInProgress;
}
Result ncclCommAbort(Comm) { return kSuccess; }
Result ncclCommGetAsyncError(Comm comm, Result* state) {
  *state = kSuccess;
  for (int rank = 0; rank < comm->ranks; ++rank)
    if (comm->board->ranks.at(static_cast<std::size_t>(rank)).pid == 0) *state = kInProgress;
  return kSuccess;
}

Result ncclAllReduce(const void* from, void* to, std::size_t count, int type, int, Comm comm, Stream stream) {
  auto work = begun(comm);
  const std::size_t bytes = count * width(type);
  work->sends.emplace_back(Part{.bytes = bytes}, static_cast<const std::byte*>(from));
  work->adds = type;
  for (int rank = 0; rank < comm->ranks; ++rank)
    work->arrivals.push_back({rank, 0, bytes, static_cast<std::byte*>(to)});
  log_choice(comm, "AllReduce", bytes);
  return done(std::move(work), stream);
}
Result ncclReduceScatter(const void* from, void* to, std::size_t count, int type, int, Comm comm, Stream stream) {
  auto work = begun(comm);
  const std::size_t bytes = count * width(type), own = static_cast<std::size_t>(comm->rank) * bytes;
  work->sends.emplace_back(Part{.bytes = bytes * static_cast<std::size_t>(comm->ranks)},
                           static_cast<const std::byte*>(from));
  work->adds = type;
  for (int rank = 0; rank < comm->ranks; ++rank)
    work->arrivals.push_back({rank, own, bytes, static_cast<std::byte*>(to)});
  log_choice(comm, "ReduceScatter", bytes);
  return done(std::move(work), stream);
}
Result ncclAllGather(const void* from, void* to, std::size_t count, int type, Comm comm, Stream stream) {
  auto work = begun(comm);
  const std::size_t bytes = count * width(type);
  work->sends.emplace_back(Part{.bytes = bytes}, static_cast<const std::byte*>(from));
  for (int rank = 0; rank < comm->ranks; ++rank)
    work->arrivals.push_back({rank, 0, bytes, static_cast<std::byte*>(to) + static_cast<std::size_t>(rank) * bytes});
  log_choice(comm, "AllGather", bytes);
  return done(std::move(work), stream);
}
Result ncclBroadcast(const void* from, void* to, std::size_t count, int type, int root, Comm comm, Stream stream) {
  auto work = begun(comm);
  const std::size_t bytes = count * width(type);
  if (comm->rank == root) work->sends.emplace_back(Part{.bytes = bytes}, static_cast<const std::byte*>(from));
  work->arrivals.push_back({root, 0, bytes, static_cast<std::byte*>(to)});
  log_choice(comm, "Broadcast", bytes);
  return done(std::move(work), stream);
}
Result ncclGroupStart() {
  group = {};
  group.open = true;
  return kSuccess;
}
Result ncclSend(const void* from, std::size_t count, int type, int peer, Comm comm, Stream stream) {
  if (!group.open) return kInvalid;
  if (!group.work) group.work = begun(comm), group.stream = stream;
  group.work->sends.emplace_back(Part{.to = peer, .bytes = count * width(type)}, static_cast<const std::byte*>(from));
  return kSuccess;
}
Result ncclRecv(void* to, std::size_t count, int type, int peer, Comm comm, Stream stream) {
  if (!group.open) return kInvalid;
  if (!group.work) group.work = begun(comm), group.stream = stream;
  group.work->arrivals.push_back({peer, group.received[peer], count * width(type), static_cast<std::byte*>(to)});
  group.received[peer] += count * width(type);
  return kSuccess;
}
Result ncclGroupEnd() {
  group.open = false;
  return group.work ? done(std::move(group.work), group.stream) : kSuccess;
}

}  // extern "C"
