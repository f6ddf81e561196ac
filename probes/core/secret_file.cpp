// secret_file: mode and owner are those of the opened file, so that it cannot be exchanged after the look.
#include "probes/core/secret_file.h"

#include <cerrno>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "probes/core/descriptor.h"

namespace assay {
namespace {

constexpr std::size_t kLongestSecret = 64 << 10;

std::string cause_of(int error) { return std::generic_category().message(error); }

/// What others than its owner must not do with a file, and words for one of another kind.
struct Guard {
  int flags;       ///< for open, further ones
  mode_t refused;  ///< bits
  std::size_t max_bytes;
  const char *absent, *kept, *may, *remedy;  ///< hints, but for `may`, which is part of a sentence
};

std::expected<std::string, InputError> read_guarded(const std::string& path, const Guard& guard) {
  const auto refuse = [&](std::string what, std::string hint) {
    return std::unexpected(InputError{path, std::move(what), std::move(hint)});
  };
  // O_NONBLOCK: opening a pipe would wait for its writer.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | guard.flags));
  if (!file)
    return refuse(errno == ELOOP ? "is a link" : fmt::format("cannot be read: {}", cause_of(errno)), guard.absent);
  struct stat facts {};
  if (::fstat(file.number(), &facts) != 0) return refuse(fmt::format("cannot be read: {}", cause_of(errno)), "");
  if (!S_ISREG(facts.st_mode)) return refuse("is no regular file", guard.kept);
  if (facts.st_uid != ::geteuid() && facts.st_uid != 0)
    return refuse(fmt::format("belongs to user {}, not to the user who runs assay", facts.st_uid), "chown it");
  if ((facts.st_mode & guard.refused) != 0)
    return refuse(fmt::format("has mode {:04o}: others than its owner may {} it", facts.st_mode & 07777U, guard.may),
                  guard.remedy);
  std::string bytes(guard.max_bytes + 1, '\0');
  std::size_t length = 0;
  while (length < bytes.size()) {
    const ssize_t got = ::read(file.number(), bytes.data() + length, bytes.size() - length);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return refuse(fmt::format("cannot be read: {}", cause_of(errno)), "");
    if (got == 0) break;
    length += static_cast<std::size_t>(got);
  }
  if (length > guard.max_bytes) return refuse(fmt::format("has more than {} bytes", guard.max_bytes), "");
  bytes.resize(length);
  return bytes;
}

}  // namespace

std::expected<std::string, InputError> read_secret_file(const std::string& path) {
  return read_guarded(path, {.flags = 0,
                             .refused = S_IRWXG | S_IRWXO,
                             .max_bytes = kLongestSecret,
                             .absent = "make a file that only you can read: chmod 600",
                             .kept = "credentials are kept in a file of mode 0600",
                             .may = "use",
                             .remedy = "chmod 600, and change what it held if others have been on this machine"});
}

std::expected<std::string, InputError> read_deciding_file(const std::string& path, std::size_t max_bytes) {
  return read_guarded(path, {.flags = O_NOFOLLOW,
                             .refused = S_IWGRP | S_IWOTH,
                             .max_bytes = max_bytes,
                             .absent = "check the path, that it is no link, and its permissions",
                             .kept = "name the file itself",
                             .may = "change",
                             .remedy = "chmod go-w, after a look at what it says"});
}

}  // namespace assay
