// cold_read: how well it is proved that data came from the storage and not from a cache.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "probes/core/filesystem_facts.h"
#include "probes/core/recorder.h"

namespace assay::cluster_storage {

/// Reads of one rank in a phase.
struct ColdReader {
  bool active = false;
  double bytes = 0;
  std::optional<std::uint64_t> resident;  ///< pages of its input in its page cache before; if reported
  std::optional<double> wire;             ///< B received by wire or from devices; if reported
};

/// Asks the page cache to drop these files; pages that stayed. Nothing if a file system does not report it.
std::optional<std::uint64_t> drop_cached(const std::vector<std::string>& paths);

/// Evidence of one rank over a run.
class ColdLedger {
 public:
  /// `server_memory`: B that the operator declares; 0: none.
  ColdLedger(bool on_other_nodes, std::uint64_t server_memory, std::size_t rank)
      : on_other_nodes_(on_other_nodes), server_memory_(server_memory), rank_(rank) {}
  /// Takes a phase in, by rank. If it also writes, no reader has `wire`.
  void take(const std::vector<ColdReader>& readers);
  /// Records cold_rung, resident_pages, wire_share, set_over_client_memory and set_over_server_memory where known.
  void record(Recorder& record) const;

 private:
  bool on_other_nodes_;
  std::uint64_t server_memory_;
  std::size_t rank_;
  std::optional<int> rung_;
  std::optional<std::uint64_t> resident_;
  std::optional<double> wire_share_, over_client_, over_server_;
};

/// Evidence of a phase that read.
struct ColdEvidence {
  std::optional<std::uint64_t> resident_pages;   ///< of the files, in the readers' page caches before; unknown: nothing
  std::optional<double> wire_share;              ///< bytes that came by wire or from devices over payload
  bool other_node = false;                       ///< every byte was read by another machine than wrote it
  std::optional<double> set_over_server_memory;  ///< payload over the servers' memory; nothing if not declared
};

/// The rung of the ladder that the evidence proves: 0 nothing; 1 the readers' page caches were empty; 2 the wire moved
/// the payload; 3 another machine reads than wrote; 4 and the payload is larger than the servers' memory. A page of the
/// files in a reader's page cache is rung 0 in any case.
int cold_rung(const ColdEvidence& evidence);

/// Bytes received so far by the network ports below `sys`, of Ethernet (all hardware ports, or if there are none all
/// but the loopback) and of RDMA. Nothing if no port reports it.
std::optional<std::uint64_t> wire_bytes_received(const std::string& sys = "/sys");

/// Bytes that the server's replies to READ have carried so far, of the mount by the kernel's NFS client that holds
/// `directory`, by the text of /proc/self/mountstats. Of mounts at one place the last counts. Nothing if the directory
/// is on another file system.
std::optional<std::uint64_t> nfs_bytes_read(std::string_view mountstats, const std::string& directory);

/// Work of the RPC transports of such a mount so far, all of its connections together.
struct RpcWork {
  std::uint64_t sends = 0;    ///< requests sent
  std::uint64_t backlog = 0;  ///< requests that waited for a slot, added up at every request sent
  std::uint64_t slots = 0;    ///< requests under way at once at most, of all connections
};

/// The work by the text of /proc/self/mountstats; nothing as of nfs_bytes_read(), and of a kernel or a transport that
/// does not report slots.
std::optional<RpcWork> nfs_rpc_work(std::string_view mountstats, const std::string& directory);

/// RPC work of a mount by the kernel's NFS client since construction.
class RpcQueue {
 public:
  explicit RpcQueue(const std::string& directory);
  /// Records rpc_backlog and rpc_slots; nothing on other file systems, or if nothing was sent.
  void record(Recorder& record) const;

 private:
  std::string directory_;
  std::optional<RpcWork> before_;
};

/// Bytes received by this node since construction.
class Arrivals {
 public:
  /// For reads of files in `directory`.
  explicit Arrivals(const std::string& directory);
  /// On a mount by the kernel's NFS client the bytes of READ replies; else the larger of the bytes by wire and the
  /// bytes that this process read from devices. B; nothing if not reported.
  [[nodiscard]] std::optional<double> since() const;

 private:
  std::string directory_;
  std::optional<std::uint64_t> nfs_, wire_;
  std::optional<DeviceTraffic> device_;
};

/// Libraries loaded before the program's own, which could replace its calls: LD_PRELOAD and the text of `list`; "none"
/// if there is nothing.
std::string preloaded(const std::string& list = "/etc/ld.so.preload");

}  // namespace assay::cluster_storage
