// host_facts: facts of this machine, and the load of other processes on it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "probes/core/machine_tree.h"
#include "probes/core/record.h"
#include "probes/core/units.h"

namespace assay {

/// The facts every record starts with: name, kernel, machine, cpu_model, cpus, cores, sockets, numa_nodes, memory (B),
/// last_level_cache (B), hypervisor ("none" on bare metal). A fact that cannot be read is absent.
Values host_facts();

/// The error of facts that a node reported of itself; nothing if they are fit to be used. They are closed: the names
/// above, boot_id, and `simulated` of a node that does not exist; name is there; texts have at most 255 bytes and no
/// controls, a name nothing but visible ASCII; counts are whole numbers from 1 up, memory and last_level_cache up to
/// 2^50 B.
std::optional<std::string> problem_of_facts(const Values& facts);

/// One logical CPU per physical core that this process may run on, in ascending order; by the topology that `tree` has.
std::vector<int> one_cpu_per_core(const MachineTree& tree = MachineTree("/"));

/// Sum of all last-level caches that the allowed CPUs see. Nothing if the kernel does not say.
std::optional<Bytes> last_level_cache();

/// Physical memory.
Bytes total_memory();

/// Whether the kernel says that its clock follows a time source (adjtimex). Nothing if it cannot be asked.
std::optional<bool> clock_synchronised();

/// The processor's feature flags as /proc/cpuinfo names them; empty if it names none.
std::vector<std::string> cpu_flags();

/// Content of a small text file under /proc or /sys without trailing white space; nothing if it cannot be read.
std::optional<std::string> read_fact(const std::string& path);

/// Use of the CPUs by others between construction and a reading.
class LoadMeter {
 public:
  LoadMeter();
  /// Shares of all CPUs' time, 0..1: `others` ran in other processes than ours and our finished children; `steal` was
  /// given away by the hypervisor. Absent when /proc/stat cannot be read or no time has passed.
  struct Shares {
    double others = 0;
    double steal = 0;
  };
  [[nodiscard]] std::optional<Shares> read() const;

 private:
  struct Reading {
    double total_s = 0, busy_s = 0, steal_s = 0, ours_s = 0;
  };
  static std::optional<Reading> take();
  std::optional<Reading> begin_;
};

}  // namespace assay
