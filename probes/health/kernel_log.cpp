// kernel_log: reads /dev/kmsg, one record a call; a gap in the record numbers shows that the oldest were overwritten.
#include "probes/health/kernel_log.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <map>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "probes/core/descriptor.h"
#include "probes/core/error.h"
#include "probes/nvml/nvml.h"

namespace assay::health {
namespace {

constexpr std::size_t kMostBytes = 256U << 20;  // a log of months; a kernel's own buffer has at most 32 MiB
constexpr std::size_t kRecordSize = 8192;       // the longest record of /dev/kmsg (CONSOLE_EXT_LOG_MAX)

/// Opens `path` for reading without waiting for data.
Descriptor open_input(const std::string& path) {
  return Descriptor(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
}

KernelLog absent(const std::string& path, int cause) {
  return {.text = "",
          .whole = std::nullopt,
          .absence = fmt::format("{}: {}", path, std::generic_category().message(cause))};
}

/// Takes one record "6,0,0,-;text" in; the number after the first comma counts records since boot.
void take_record(std::string_view record, KernelLog& log) {
  const auto semicolon = record.find(';');
  const auto comma = record.find(',');
  if (semicolon == std::string_view::npos || comma > semicolon) return;
  if (!log.whole) log.whole = record.substr(comma + 1).starts_with("0,");
  log.text += record.substr(semicolon + 1);
  if (!log.text.ends_with('\n')) log.text += '\n';
}

/// Every record that is there now; the device gives EAGAIN at its end.
KernelLog read_device(const Descriptor& input, const std::string& path) {
  KernelLog log;
  std::array<char, kRecordSize> record = {};
  while (log.text.size() < kMostBytes) {
    const auto length = read(input.number(), record.data(), record.size());
    if (length > 0) {
      take_record({record.data(), static_cast<std::size_t>(length)}, log);
    } else if (length == 0 || errno == EAGAIN) {
      break;
    } else if (errno == EPIPE) {
      log.whole = false;  // records were overwritten while we read
    } else if (errno != EINTR) {
      return absent(path, errno);
    }
  }
  if (!log.whole) return {.text = "", .whole = std::nullopt, .absence = path + " is empty"};
  return log;
}

/// A file from its beginning. The kernel's first lines name its version.
KernelLog read_file(const Descriptor& input, const std::string& path) {
  constexpr std::size_t kFirstLines = 2000;
  KernelLog log;
  std::array<char, 1 << 16> page = {};
  ssize_t length = 0;
  while (log.text.size() < kMostBytes && (length = read(input.number(), page.data(), page.size())) > 0) {
    log.text.append(page.data(), static_cast<std::size_t>(length));
  }
  if (length < 0) return absent(path, errno);
  log.whole =
      length == 0 && std::string_view(log.text).substr(0, kFirstLines).find("Linux version ") != std::string::npos;
  return log;
}

bool is_address_digit(char c) { return std::isxdigit(static_cast<unsigned char>(c)) != 0 || c == ':' || c == '.'; }

}  // namespace

KernelLog read_kernel_log(const std::string& path) {
  const Descriptor input = open_input(path);
  struct stat status = {};
  if (!input || fstat(input.number(), &status) != 0) return absent(path, errno);
  return S_ISCHR(status.st_mode) ? read_device(input, path) : read_file(input, path);
}

std::vector<XidEvent> find_xid_events(std::string_view text) {
  constexpr std::string_view kMark = "NVRM: Xid (";
  std::vector<XidEvent> events;
  for (auto at = text.find(kMark); at != std::string_view::npos; at = text.find(kMark, at + kMark.size())) {
    std::string_view rest = text.substr(at + kMark.size());
    rest = rest.substr(0, rest.find('\n'));
    if (rest.starts_with("PCI:")) rest.remove_prefix(4);
    const auto end = std::ranges::find_if_not(rest, is_address_digit);
    const auto length = static_cast<std::size_t>(end - rest.begin());
    const std::string_view address = rest.substr(0, std::min(length, rest.find('.')));
    rest.remove_prefix(length);
    if (address.empty() || !rest.starts_with("): ")) continue;
    rest.remove_prefix(3);
    int number = 0;
    const auto [after, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
    if (error != std::errc{}) continue;
    events.push_back({.pci_address = nvml::pci_address_of(address), .number = number});
  }
  return events;
}

std::string words_of(const std::vector<int>& numbers) {
  std::map<int, int> counts;
  for (const int number : numbers) ++counts[number];
  std::vector<std::string> words;
  words.reserve(counts.size());
  for (const auto& [number, count] : counts) {
    words.push_back(count == 1 ? fmt::format("{}", number) : fmt::format("{} ({} times)", number, count));
  }
  return fmt::format("{}", fmt::join(words, ", "));
}

}  // namespace assay::health
