// program_store: sealed memfds, or unlinked files.
#include "orchestrator/node/program_store.h"

#include <cerrno>
#include <system_error>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <fmt/format.h>

#include "orchestrator/files/digest.h"

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U  // Linux 6.3; delete with a glibc that has it (2.38)
#endif

namespace assay::node {
namespace {

constexpr std::uint64_t kMaxTotal = 4ULL << 30;  // every probe of a suite with statically linked CUDA libraries
constexpr std::size_t kMaxPrograms = 256;        // the suite has below 40

std::string reason_of(int error) { return std::generic_category().message(error); }

/// The SHA-256 of the first `size` bytes of `file`; empty if it cannot be mapped.
std::string hash_of(const Descriptor& file, std::uint64_t size) {
  void* const begin = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.number(), 0);
  if (begin == MAP_FAILED) return {};
  std::string hash = files::sha256({static_cast<const char*>(begin), size});
  munmap(begin, size);
  return hash;
}

/// The same file again, for reading only.
Descriptor reopen(const Descriptor& file) {
  return Descriptor(open(fmt::format("/proc/self/fd/{}", file.number()).c_str(), O_RDONLY | O_CLOEXEC));
}

}  // namespace

std::expected<ProgramStore::Arrival, std::string> ProgramStore::make_file(const std::string& sha256) const {
  if (place_ == ProgramPlace::memfd) {
    int number = memfd_create("assay-probe", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC);
    if (number < 0 && errno == EINVAL)
      number = memfd_create("assay-probe", MFD_CLOEXEC | MFD_ALLOW_SEALING);  // before 6.3
    if (number >= 0) return Arrival{.file = Descriptor(number), .place = ProgramPlace::memfd};
  }
  const std::string path = fmt::format("{}/programs/{}.{}", directory_, sha256, getpid());
  (void)unlink(path.c_str());  // usually not there; a dead agent of the same pid may have left it
  Descriptor file(open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, S_IRWXU));
  if (!file) return std::unexpected(fmt::format("{} cannot be created: {}", path, reason_of(errno)));
  if (unlink(path.c_str()) != 0)
    return std::unexpected(fmt::format("{} cannot be unlinked: {}", path, reason_of(errno)));
  return Arrival{.file = std::move(file), .place = ProgramPlace::file};
}

std::expected<void, std::string> ProgramStore::begin(const std::string& sha256, std::uint64_t size) {
  if (ready_.contains(sha256)) return {};
  if (const auto half = arriving_.find(sha256); half != arriving_.end()) {
    total_ -= half->second.size;
    arriving_.erase(half);
  }
  if (ready_.size() + arriving_.size() >= kMaxPrograms)
    return std::unexpected(fmt::format("more than {} programs", kMaxPrograms));
  if (total_ + size > kMaxTotal)
    return std::unexpected(fmt::format("all programs together have more than {} bytes", kMaxTotal));
  auto arrival = make_file(sha256);
  if (!arrival) return std::unexpected(arrival.error());
  arrival->size = size;
  total_ += size;
  arriving_.emplace(sha256, std::move(*arrival));
  return {};
}

std::expected<bool, std::string> ProgramStore::add(const std::string& sha256, std::string_view bytes) {
  const auto found = arriving_.find(sha256);
  if (found == arriving_.end()) {
    if (ready_.contains(sha256)) return true;
    return std::unexpected("the program was not announced");
  }
  Arrival& arrival = found->second;
  const auto drop = [&](std::string reason) {
    total_ -= arrival.size;
    arriving_.erase(found);
    return std::unexpected(std::move(reason));
  };
  if (bytes.size() > arrival.size - arrival.have) return drop("more bytes than announced");
  while (!bytes.empty()) {
    const ssize_t written = write(arrival.file.number(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return drop(fmt::format("the program cannot be stored: {}", reason_of(errno)));
    bytes.remove_prefix(static_cast<std::size_t>(written));
    arrival.have += static_cast<std::uint64_t>(written);
  }
  if (arrival.have < arrival.size) return false;
  auto whole = finish(sha256, arrival);
  if (!whole) return drop(whole.error());
  arriving_.erase(found);
  return true;
}

/// Makes the content immutable first and hashes it then: the program that runs is the one that was hashed.
std::expected<bool, std::string> ProgramStore::finish(const std::string& sha256, Arrival& arrival) {
  Descriptor reader = reopen(arrival.file);
  if (!reader) return std::unexpected(fmt::format("the program cannot be opened again: {}", reason_of(errno)));
  if (arrival.place == ProgramPlace::memfd) {
    // The kernel mistakes a page that it holds itself for a moment, as while it ages memory, for one with a writer:
    // EBUSY after some 75 ms (Linux mm/memfd.c), seen on 2 of 16 busy nodes. A real writer stays longer.
    constexpr int kSealTries = 20;
    int sealed = -1;
    for (int tries = 0; sealed != 0 && tries < kSealTries; ++tries) {
      sealed = fcntl(arrival.file.number(), F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
      if (sealed != 0 && errno != EBUSY) break;
    }
    if (sealed != 0) return std::unexpected(fmt::format("the program cannot be sealed: {}", reason_of(errno)));
  }
  arrival.file.close();  // a file that is open for writing cannot be executed (ETXTBSY)
  if (hash_of(reader, arrival.size) != sha256) return std::unexpected("the bytes do not have the announced SHA-256");
  ready_.emplace(sha256, std::move(reader));
  return true;
}

int ProgramStore::find(const std::string& sha256) const {
  const auto found = ready_.find(sha256);
  return found == ready_.end() ? -1 : found->second.number();
}

}  // namespace assay::node
