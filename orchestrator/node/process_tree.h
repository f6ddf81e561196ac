// process_tree: the process tree under a process, read from /proc.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include <sys/types.h>

namespace assay::node {

/// One process, from /proc/PID/stat.
struct ProcessEntry {
  pid_t pid = 0;
  pid_t parent = 0;
  bool zombie = false;
  bool restorer = false;       ///< named kRestorerName
  std::uint64_t started = 0;   ///< clock ticks since boot; unique together with the pid
  std::uint64_t resident = 0;  ///< B; pages shared between processes count in each
};

/// Every process below `root` (not `root` itself), parents before children. One walk over /proc: a process that forks
/// meanwhile can be missed, so a caller that kills them repeats the walk until waitpid reports that none is left.
std::vector<ProcessEntry> descendants(pid_t root);

/// Processes to be killed `waited` after the first of them was: all, but restorers only once they had two seconds for
/// their task.
std::vector<ProcessEntry> without_restorers_at_work(std::vector<ProcessEntry> processes,
                                                    std::chrono::steady_clock::duration waited);

/// Sends `signal_number` to exactly these processes: a pid that another process has got since is skipped.
void signal_each(const std::vector<ProcessEntry>& processes, int signal_number);

}  // namespace assay::node
