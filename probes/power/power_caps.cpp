// power_caps: reads and writes files of powercap. A guardian process restores the limit when the pipe to this process
// closes.
#include "probes/power/power_caps.h"

#include <array>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probes/core/machine_tree.h"
#include "probes/core/restorer.h"

namespace assay::power {
namespace {

constexpr double kMicrowatts = 1e6;
constexpr char kRestored = 'r', kReady = 'y';
constexpr int kMostFiles = 1024;  // of a process, by default

/// Writes `text` to `file` with nothing but system calls: a child of fork may do no more. 0, or the cause.
int write_number(const char* file, const char* text, std::size_t length) noexcept {
  const int number = ::open(file, O_WRONLY | O_CLOEXEC | O_TRUNC);
  if (number < 0) return errno;
  const ssize_t written = ::write(number, text, length);
  const int cause = written == static_cast<ssize_t>(length) ? 0 : written < 0 ? errno : EIO;
  ::close(number);
  return cause;
}

/// Waits until the other process says that the limit is back, or is gone; in that case it puts it back.
[[noreturn]] void guard(int from_probe, int to_probe, const char* file, const char* text, std::size_t length) noexcept {
  ::setsid();  // a signal to the probe's group does not end this
  ::prctl(PR_SET_NAME, kRestorerName);
  for (const int one : {SIGTERM, SIGINT, SIGHUP, SIGPIPE}) (void)::signal(one, SIG_IGN);
  const int nowhere = ::open("/dev/null", O_RDWR);
  for (int standard = 0; standard < 3; ++standard)
    ::dup2(nowhere, standard);  // readers of the probe's output see its end
  // The pipes of other guardians above all: held open here, they would never end.
  for (int other = 3; other < kMostFiles; ++other)
    if (other != from_probe && other != to_probe) ::close(other);
  char word = kReady;
  if (::write(to_probe, &word, 1) != 1) ::_exit(1);
  ::close(to_probe);
  ssize_t got = 0;
  while ((got = ::read(from_probe, &word, 1)) < 0 && errno == EINTR) {
  }
  if (got == 1 && word == kRestored) ::_exit(0);
  ::_exit(write_number(file, text, length));
}

}  // namespace

std::optional<PowerCap> rapl_cap(const RaplZone& zone) {
  const std::string directory = std::filesystem::path(zone.path).parent_path().string();
  const MachineTree tree(directory);
  for (int i = 0; i < 3; ++i) {
    const std::string constraint = fmt::format("constraint_{}_", i);
    if (tree.text(constraint + "name") != "long_term") continue;
    const auto limit_uw = tree.number(constraint + "power_limit_uw");
    if (!limit_uw || *limit_uw <= 0) return std::nullopt;
    const auto window_us = tree.number(constraint + "time_window_us");
    return PowerCap{.subject = {.kind = "cpu", .id = zone.package},
                    .limit_w = static_cast<double>(*limit_uw) / kMicrowatts,
                    .window_s = window_us ? static_cast<double>(*window_us) / kMicrowatts : 1,
                    .source = directory + "/" + constraint + "power_limit_uw",
                    .file = directory + "/" + constraint + "power_limit_uw"};
  }
  return std::nullopt;
}

LoweredCap::LoweredCap(const PowerCap& cap, double lower_w)
    : file_(cap.file),
      former_(fmt::format("{:.0f}", cap.limit_w * kMicrowatts)),
      lower_(fmt::format("{:.0f}", std::floor(lower_w * kMicrowatts))) {
  std::array<int, 2> down{}, up{};
  if (::pipe2(down.data(), O_CLOEXEC) != 0 || ::pipe2(up.data(), O_CLOEXEC) != 0)
    throw std::runtime_error("no pipe for the guardian of the limit; nothing was changed");
  guardian_ = ::fork();
  if (guardian_ == 0) {
    ::close(down[1]);
    ::close(up[0]);
    guard(down[0], up[1], file_.c_str(), former_.c_str(), former_.size());
  }
  ::close(down[0]);
  ::close(up[1]);
  to_guardian_ = down[1];
  char word = 0;
  const bool ready = guardian_ > 0 && ::read(up[0], &word, 1) == 1 && word == kReady;
  ::close(up[0]);
  if (!ready) {
    ::close(to_guardian_);
    throw std::runtime_error("the guardian of the limit did not start; nothing was changed");
  }
}

void LoweredCap::lower() {
  restored_ = false;
  if (const int cause = write_number(file_.c_str(), lower_.c_str(), lower_.size()); cause != 0) {
    restored_ = true;
    release(kRestored);
    throw std::runtime_error(
        fmt::format("{} takes no limit: {}; nothing was changed", file_, std::generic_category().message(cause)));
  }
}

void LoweredCap::release(char word) {
  if (to_guardian_ < 0) return;
  if (word != 0) (void)!::write(to_guardian_, &word, 1);  // a guardian that is gone needs no word
  ::close(to_guardian_);
  to_guardian_ = -1;
  int status = 0;
  while (::waitpid(guardian_, &status, 0) < 0 && errno == EINTR) {
  }
}

void LoweredCap::restore() {
  if (restored_) return release(kRestored);
  const int cause = write_number(file_.c_str(), former_.c_str(), former_.size());
  const std::filesystem::path path(file_);
  const auto now = MachineTree(path.parent_path().string()).text(path.filename().string());
  restored_ = cause == 0 && now == former_;
  if (restored_) return release(kRestored);
  release(0);  // it writes once more
  throw std::runtime_error(fmt::format("{} did not go back to {} microwatts; hint: write it by hand", file_, former_));
}

LoweredCap::~LoweredCap() {
  release(restored_ ? kRestored : 0);  // without that word the guardian puts the limit back
}

}  // namespace assay::power
