// error: prints an InputError and reads a whole file.
#include "probes/core/error.h"

#include <cerrno>
#include <fstream>
#include <system_error>

#include <sys/stat.h>

#include <fmt/format.h>

#include "probes/core/text.h"

namespace assay {

std::string InputError::text() const {
  std::string line = where.empty() ? harmless(what) : fmt::format("{}: {}", harmless(where), harmless(what));
  if (!hint.empty()) line += "\nhint: " + harmless(hint);
  return line;
}

std::expected<std::string, InputError> read_file(const std::string& path, std::size_t max_bytes) {
  struct stat info = {};
  if (::stat(path.c_str(), &info) != 0) {
    return std::unexpected(InputError{path, fmt::format("cannot be read: {}", std::generic_category().message(errno)),
                                      "check the path and its permissions"});
  }
  if (!S_ISREG(info.st_mode)) return std::unexpected(InputError{path, "is not a regular file", "name a file"});
  if (static_cast<std::size_t>(info.st_size) > max_bytes) {
    return std::unexpected(InputError{path, fmt::format("{} bytes, over the limit of {}", info.st_size, max_bytes),
                                      "check that this is the right file"});
  }
  std::ifstream file(path, std::ios::binary);
  std::string content(static_cast<std::size_t>(info.st_size), '\0');
  file.read(content.data(), static_cast<std::streamsize>(content.size()));
  if (file.gcount() != static_cast<std::streamsize>(content.size())) {
    return std::unexpected(
        InputError{path, "could not be read whole", "check the disk and that no process writes to the file"});
  }
  return content;
}

}  // namespace assay
