// rdma: attempts over RDMA, by the kernel's connection manager (/dev/infiniband/rdma_cm, linux/rdma_user_cm.h).
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "workloads/crossing/tried.h"
#include "workloads/crossing/watch.h"

namespace assay::crossing {

/// One request for a connection to `target` with `mark` as private data; over RoCE v2 a datagram to UDP port 4791. What
/// is granted is dropped at once: no queue pair is made. Throws Skip on a node without the connection manager.
Tried try_rdma_cm(const Target& target, std::string_view mark);

/// Asks the subnet manager for a path to the port with the GID `target.address` in the partition `pkey` ("0x8005").
/// Refused where the manager gives none, or put that key into the table of no active port of this node below
/// `root`/sys.
Tried try_ib_path(const Target& target, const std::string& pkey, const std::string& root = "");

/// Accepts requests for connections at `at` until `until` or both ranks have come, by their marks.
Arrivals watch_rdma_cm(const Target& at, std::string_view token, Clock::time_point until);

/// Time after the last arrival in which a target still replies.
inline constexpr std::chrono::seconds kForReplies{1};

/// B of a mark; as private data of a request at most 56.
inline constexpr std::size_t kMark = 8;

/// The mark of rank 0 or 1 of the step with this token.
std::string mark_of_rank(std::string_view token, int rank);

/// The outcome by an event of the connection manager and its status, a negative error number or the reason of a reject.
Tried of_cm_event(std::uint32_t event, int status, const Target& target);

/// The outcome by the end of an RDMA write: `status` is an ibv_wc_status, `words` are the library's.
Tried of_completion(int status, const std::string& words);

/// A P_Key in hexadecimal; 0 if it is none.
std::uint16_t pkey_from(const std::string& text);

}  // namespace assay::crossing
