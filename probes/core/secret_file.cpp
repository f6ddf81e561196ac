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

}  // namespace

std::expected<std::string, InputError> read_secret_file(const std::string& path) {
  const auto refuse = [&](std::string what, std::string hint) {
    return std::unexpected(InputError{path, std::move(what), std::move(hint)});
  };
  // O_NONBLOCK: opening a pipe would wait for its writer.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file)
    return refuse(fmt::format("cannot be read: {}", cause_of(errno)), "make a file that only you can read: chmod 600");
  struct stat facts {};
  if (::fstat(file.number(), &facts) != 0) return refuse(fmt::format("cannot be read: {}", cause_of(errno)), "");
  if (!S_ISREG(facts.st_mode)) return refuse("is no regular file", "credentials are kept in a file of mode 0600");
  if (facts.st_uid != ::geteuid() && facts.st_uid != 0)
    return refuse(fmt::format("belongs to user {}, not to the user who runs assay", facts.st_uid), "chown it");
  if ((facts.st_mode & (S_IRWXG | S_IRWXO)) != 0)
    return refuse(fmt::format("has mode {:04o}: others than its owner may use it", facts.st_mode & 07777U),
                  "chmod 600, and change what it held if others have been on this machine");
  std::string bytes(kLongestSecret + 1, '\0');
  std::size_t length = 0;
  while (length < bytes.size()) {
    const ssize_t got = ::read(file.number(), bytes.data() + length, bytes.size() - length);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return refuse(fmt::format("cannot be read: {}", cause_of(errno)), "");
    if (got == 0) break;
    length += static_cast<std::size_t>(got);
  }
  if (length > kLongestSecret) return refuse("is larger than 64 KiB", "credentials are a few lines");
  bytes.resize(length);
  return bytes;
}

}  // namespace assay
