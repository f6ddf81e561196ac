// process_tree: walks /proc, and signals through pidfds.
#include "orchestrator/node/process_tree.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <csignal>
#include <filesystem>
#include <optional>
#include <string>
#include <unordered_map>

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "probes/core/descriptor.h"
#include "probes/core/restorer.h"
#include "probes/core/whole_number.h"

namespace assay::node {
namespace {

namespace fs = std::filesystem;

/// Reads one /proc/PID/stat; nothing if the process has ended. Fields are numbered as in proc(5).
std::optional<ProcessEntry> read_stat(pid_t pid) {
  const Descriptor file(open(("/proc/" + std::to_string(pid) + "/stat").c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return std::nullopt;
  std::array<char, 1024> buffer = {};  // 52 numbers and a name of 16 bytes stay below 700
  const ssize_t size = read(file.number(), buffer.data(), buffer.size());
  if (size <= 0) return std::nullopt;
  const std::string_view text(buffer.data(), static_cast<std::size_t>(size));
  const auto name_end = text.rfind(')');  // the name may hold anything, brackets and blanks too
  const auto name_begin = text.find('(');
  if (name_end == std::string_view::npos || name_begin >= name_end || name_end + 2 >= text.size()) return std::nullopt;

  constexpr int kState = 3, kParent = 4, kStarted = 22, kResident = 24;
  ProcessEntry entry{.pid = pid};
  entry.restorer = text.substr(name_begin + 1, name_end - name_begin - 1) == kRestorerName;
  int field = kState;
  for (std::string_view rest = text.substr(name_end + 2); !rest.empty() && field <= kResident; ++field) {
    const std::string_view word = rest.substr(0, rest.find(' '));
    std::int64_t number = 0;
    std::from_chars(word.data(), word.data() + word.size(), number);
    if (field == kState) entry.zombie = word == "Z" || word == "X";
    if (field == kParent) entry.parent = static_cast<pid_t>(number);
    if (field == kStarted) entry.started = static_cast<std::uint64_t>(number);
    if (field == kResident)
      entry.resident = static_cast<std::uint64_t>(number) * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
    rest.remove_prefix(std::min(rest.size(), word.size() + 1));
  }
  if (field <= kResident) return std::nullopt;
  return entry;
}

}  // namespace

std::vector<ProcessEntry> descendants(pid_t root) {
  std::unordered_multimap<pid_t, ProcessEntry> children;
  std::error_code error;  // entries vanish during the walk
  for (fs::directory_iterator entry("/proc", error), end; !error && entry != end; entry.increment(error)) {
    const auto pid = whole_number<pid_t>(entry->path().filename().string());
    if (!pid) continue;
    if (const auto process = read_stat(*pid)) children.emplace(process->parent, *process);
  }
  std::vector<ProcessEntry> found;
  const auto add_children_of = [&](pid_t parent) {
    const auto [begin, end] = children.equal_range(parent);
    for (auto child = begin; child != end; ++child) found.push_back(child->second);
    children.erase(parent);  // a pid that was reused during the walk cannot close a circle
  };
  add_children_of(root);
  for (std::size_t i = 0; i < found.size(); ++i) add_children_of(found[i].pid);
  return found;
}

std::vector<ProcessEntry> without_restorers_at_work(std::vector<ProcessEntry> processes,
                                                    std::chrono::steady_clock::duration waited) {
  constexpr auto kRestoring = std::chrono::seconds(2);  // it writes one file
  if (waited < kRestoring) std::erase_if(processes, [](const ProcessEntry& one) { return one.restorer; });
  return processes;
}

void signal_each(const std::vector<ProcessEntry>& processes, int signal_number) {
  for (const auto& process : processes) {
    const Descriptor handle(static_cast<int>(syscall(SYS_pidfd_open, process.pid, 0)));
    const auto now = read_stat(process.pid);
    if (!now || now->started != process.started) continue;
    if (handle) {
      (void)syscall(SYS_pidfd_send_signal, handle.number(), signal_number, nullptr, 0);  // it may have ended already
    } else {
      (void)kill(process.pid, signal_number);  // Linux before 5.3 has no pidfd_open; delete when RHEL 8 (4.18) is gone
    }
  }
}

}  // namespace assay::node
