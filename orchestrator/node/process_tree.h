// process_tree: the process tree under a process, read from /proc.
#pragma once

#include <cstdint>
#include <vector>

#include <sys/types.h>

namespace assay::node {

/// One process as /proc/PID/stat tells it.
struct ProcessEntry {
  pid_t pid = 0;
  pid_t parent = 0;
  bool zombie = false;
  std::uint64_t started = 0;   ///< clock ticks since boot; with the pid it names a process for good
  std::uint64_t resident = 0;  ///< B; pages shared between processes count in each
};

/// Every process below `root` (not `root` itself), parents before children. One walk over /proc: a process that forks
/// meanwhile can be missed, so whoever kills walks again until waitpid says that nobody is left.
std::vector<ProcessEntry> descendants(pid_t root);

/// Sends `signal_number` to exactly these processes: one whose pid has since gone to another process is passed over.
void signal_each(const std::vector<ProcessEntry>& processes, int signal_number);

}  // namespace assay::node
