// roce: attempts by a queue pair of RoCE v2 that no connection manager brings up: ranks hand its numbers over in notes.
#pragma once

#include "workloads/crossing/notes.h"
#include "workloads/crossing/tried.h"
#include "workloads/crossing/watch.h"

namespace assay::crossing {

/// As rank 0 or 1: one RDMA write of 8 B from the port that the route to `target` leaves by, to that address and into
/// memory that rank 2 offers, once its numbers have come until `until`. Answered where the adapter there acknowledges
/// it or rejects it. Throws Skip without libibverbs, or in a build without verbs. `root`: where /sys is; for tests.
Tried try_roce(const Target& target, const NoteFolder& notes, int rank, Clock::time_point until,
               const std::string& root = "/");

/// As rank 2: offers 16 B of this process to ranks 0 and 1, a queue pair for each, until both have written or `until`.
/// Throws std::runtime_error where no active port has the address, and Skip as try_roce.
Arrivals watch_roce(const Target& at, const NoteFolder& notes, Clock::time_point until, const std::string& root = "/");

}  // namespace assay::crossing
