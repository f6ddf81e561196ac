// nccl_api: the part of NCCL's interface that assay uses, which is also RCCL's, declared here so that neither is needed
// to build. Names and numbers are those of nccl.h 2.18 to 2.30 (NVIDIA/nccl) and of RCCL's 2.18 to 2.28 (ROCm/rccl,
// ROCm/rocm-systems, read on 2026-11-28).
#pragma once

#include <climits>
#include <cstddef>

struct ncclComm;           // the target of ncclComm_t
struct ncclWindow_vidmem;  // the target of ncclWindow_t
struct CUstream_st;        // the target of a stream of any runtime

namespace assay::nccl::api {

using Comm = ncclComm*;
using Stream = CUstream_st*;
using Window = ncclWindow_vidmem*;
using Result = int;
inline constexpr Result kSuccess = 0, kInProgress = 7;
inline constexpr int kInt8 = 0, kFloat16 = 6, kFloat32 = 7, kFloat64 = 8, kBfloat16 = 9;  // ncclDataType_t
inline constexpr int kSum = 0;                                                            // ncclRedOp_t

inline constexpr int kSymmetricWindow = 0x01;  // NCCL_WIN_COLL_SYMMETRIC

/// ncclTeam_t of nccl_device.h.
struct Team {
  int ranks, rank, stride;
};
struct UniqueId {
  char internal[128];
};
/// The configuration of 2.17, which says so by its size and version: a newer library takes its own values for the rest
/// (parseCommConfig in its init.cc).
struct Config {
  std::size_t size = sizeof(Config);
  unsigned magic = 0xcafebeef;
  unsigned version = 21800;
  int blocking = INT_MIN, cluster_size = INT_MIN, blocks_min = INT_MIN, blocks_max = INT_MIN;
  const char* network = nullptr;
  int shares_on_split = INT_MIN;
};
static_assert(sizeof(Config) == 48);

template <class... Arguments>
using Call = Result (*)(Arguments...);
using Exchange = Call<void*, std::size_t, int, int, Comm, Stream>;  ///< buffer, count, type, peer

}  // namespace assay::nccl::api
