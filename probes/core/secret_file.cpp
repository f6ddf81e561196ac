// secret_file: mode and owner are those of the opened file, so that it cannot be exchanged after the look.
//
// The rule follows ssh for ~/.ssh/config: of the user or root, and not for others to write (ssh_config(5)); Debian's
// ssh allows a group that is the owner's alone (its patch "Allow harmless group-writability"), because umask 002 with
// such groups is the default there. Under sudo the caller's own files count as well, as git's safe.directory has it.
#include "probes/core/secret_file.h"

#include <cerrno>
#include <cstdlib>
#include <system_error>

#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "probes/core/descriptor.h"

namespace assay {
namespace {

constexpr std::size_t kLongestSecret = 64 << 10;

std::string cause_of(int error) { return std::generic_category().message(error); }

/// Whether a file of `owner` is the word of the person who runs assay, or of root.
bool is_own(uid_t owner) {
  if (owner == 0 || owner == ::geteuid()) return true;
  const char* const caller = ::geteuid() == 0 ? std::getenv("SUDO_UID") : nullptr;
  return caller != nullptr && std::to_string(owner) == caller;
}

/// Whether the group of a file has no member but its owner, as distributions make one for each user.
bool is_private_group(const struct stat& facts) {
  const passwd* const owner = ::getpwuid(facts.st_uid);
  if (owner == nullptr || owner->pw_gid != facts.st_gid) return false;
  const std::string name = owner->pw_name;
  const group* const its = ::getgrgid(facts.st_gid);
  if (its == nullptr || name != its->gr_name) return false;
  char** member = its->gr_mem;
  while (*member != nullptr && name == *member) ++member;
  return *member == nullptr;
}

/// Forbidden to others than the owner of a file.
struct Guard {
  mode_t refused;  ///< bits
  const char *may, *remedy;
};

constexpr Guard kSecret{.refused = S_IRWXG | S_IRWXO,
                        .may = "use",
                        .remedy = "chmod 600, and change what it held if others have been on this machine"};
constexpr Guard kDeciding{
    .refused = S_IWGRP | S_IWOTH, .may = "change", .remedy = "chmod go-w, after a look at what it says"};

std::optional<InputError> problem_of(const std::string& path, const struct stat& facts, const Guard& guard) {
  if (!is_own(facts.st_uid)) {
    return InputError{path, fmt::format("belongs to user {}, not to the user who runs assay", facts.st_uid),
                      "chown it, or make a copy of your own after a look at it"};
  }
  mode_t refused = facts.st_mode & guard.refused;
  if (refused == S_IWGRP && is_private_group(facts)) refused = 0;
  if (refused == 0) return std::nullopt;
  return InputError{path,
                    fmt::format("has mode {:04o}: others than its owner may {} it", facts.st_mode & 07777U, guard.may),
                    guard.remedy};
}

/// A link of another user, who chooses its target.
std::optional<InputError> foreign_link(const std::string& path) {
  struct stat link {};
  if (::lstat(path.c_str(), &link) != 0 || !S_ISLNK(link.st_mode) || is_own(link.st_uid)) return std::nullopt;
  return InputError{path, fmt::format("is a link of user {}, not of the user who runs assay", link.st_uid),
                    "name the file itself"};
}

std::expected<std::string, InputError> read_guarded(const std::string& path, const Guard& guard,
                                                    std::size_t max_bytes) {
  const auto refuse = [&](std::string what, std::string hint) {
    return std::unexpected(InputError{path, std::move(what), std::move(hint)});
  };
  // O_NONBLOCK: opening a pipe would wait for its writer.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file) return refuse(fmt::format("cannot be read: {}", cause_of(errno)), "check the path and its permissions");
  struct stat facts {};
  if (::fstat(file.number(), &facts) != 0) return refuse(fmt::format("cannot be read: {}", cause_of(errno)), "");
  if (!S_ISREG(facts.st_mode)) return refuse("is not a regular file", "name a file");
  if (auto problem = problem_of(path, facts, guard)) return std::unexpected(std::move(*problem));
  if (const auto size = static_cast<std::size_t>(facts.st_size); size > max_bytes)
    return refuse(fmt::format("{} bytes, over the limit of {}", size, max_bytes), "check that this is the right file");
  std::string bytes(static_cast<std::size_t>(facts.st_size) + 1, '\0');
  std::size_t length = 0;
  while (length < bytes.size()) {
    const ssize_t got = ::read(file.number(), bytes.data() + length, bytes.size() - length);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return refuse(fmt::format("cannot be read: {}", cause_of(errno)), "");
    if (got == 0) break;
    length += static_cast<std::size_t>(got);
  }
  if (length + 1 != bytes.size())
    return refuse("could not be read whole", "check the disk and that no process writes to the file");
  bytes.resize(length);
  return bytes;
}

}  // namespace

std::expected<std::string, InputError> read_secret_file(const std::string& path) {
  return read_guarded(path, kSecret, kLongestSecret);
}

std::expected<std::string, InputError> read_deciding_file(const std::string& path, std::size_t max_bytes) {
  if (auto problem = foreign_link(path)) return std::unexpected(std::move(*problem));
  return read_guarded(path, kDeciding, max_bytes);
}

std::optional<InputError> check_deciding_file(const std::string& path) {
  if (auto problem = foreign_link(path)) return problem;
  struct stat facts {};
  if (::stat(path.c_str(), &facts) != 0) return std::nullopt;  // reading it says why
  return problem_of(path, facts, kDeciding);
}

}  // namespace assay
