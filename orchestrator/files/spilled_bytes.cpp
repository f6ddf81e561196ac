// spilled_bytes: fills a buffer, appends it to the file, begins anew.
#include "orchestrator/files/spilled_bytes.h"

#include <cstdlib>
#include <utility>

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

namespace assay::files {
namespace {

/// A new file in `folder` that has no name any more; none if it cannot be made.
Descriptor nameless_file(const std::string& folder) {
  const char* const given = std::getenv("TMPDIR");  // NOLINT(concurrency-mt-unsafe): nothing changes the environment
  const std::string usual = given != nullptr && *given != '\0' ? given : "/var/tmp";
  std::string path = (folder.empty() ? usual : folder) + "/assay-XXXXXX";
  Descriptor file(::mkostemp(path.data(), O_CLOEXEC));
  if (file && ::unlink(path.c_str()) != 0) file.close();
  return file;
}

/// Whether 1 GiB stays free after `size` bytes more. The evidence of a run may be on the same disk, and a run without
/// room for its evidence ends.
bool has_room(int file, std::size_t size) {
  constexpr std::uint64_t kLeft = std::uint64_t{1} << 30;
  struct statvfs disk = {};
  return ::fstatvfs(file, &disk) == 0 && std::uint64_t{disk.f_bavail} * disk.f_frsize > kLeft + size;
}

bool write_at(int file, std::string_view bytes, std::uint64_t begin) {
  while (!bytes.empty()) {
    const auto written = ::pwrite(file, bytes.data(), bytes.size(), static_cast<off_t>(begin));
    if (written <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(written));
    begin += static_cast<std::uint64_t>(written);
  }
  return true;
}

}  // namespace

SpilledBytes::SpilledBytes(std::size_t in_memory, std::uint64_t most, std::string folder)
    : in_memory_(in_memory), most_(most), folder_(std::move(folder)) {}

bool SpilledBytes::is_full() const {
  const std::lock_guard lock(mutex_);
  return full_;
}

std::optional<std::uint64_t> SpilledBytes::add(std::string_view piece) {
  const std::lock_guard lock(mutex_);
  full_ = full_ || spilled_ + latest_.size() + piece.size() > most_ ||
          (!latest_.empty() && latest_.size() + piece.size() > in_memory_ && !spill());
  if (full_) return std::nullopt;
  if (latest_.capacity() < in_memory_) latest_.reserve(in_memory_);  // growing, it would take twice of that
  latest_ += piece;
  return spilled_ + latest_.size() - piece.size();
}

bool SpilledBytes::spill() {
  if (!file_) file_ = nameless_file(folder_);
  if (!file_ || !has_room(file_.number(), latest_.size()) || !write_at(file_.number(), latest_, spilled_)) return false;
  spilled_ += latest_.size();
  latest_.clear();
  return true;
}

std::optional<std::string> SpilledBytes::read(std::uint64_t begin, std::size_t size) const {
  {
    const std::lock_guard lock(mutex_);
    if (begin >= spilled_) return latest_.substr(begin - spilled_, size);
  }
  std::string piece(size, '\0');
  for (std::size_t done = 0; done < size;) {
    const auto some = ::pread(file_.number(), piece.data() + done, size - done, static_cast<off_t>(begin + done));
    if (some <= 0) return std::nullopt;
    done += static_cast<std::size_t>(some);
  }
  return piece;
}

}  // namespace assay::files
