// hipblaslt_api: the part of hipBLASLt that assay uses, declared here so that nothing of ROCm is needed to build. Names
// and numbers are those of hipblaslt.h, hipblas-common.h and library_types.h of ROCm 6 and 7 (ROCm/hipBLASLt,
// ROCm/rocm-libraries, read on 2026-11-28).
#pragma once

#include <cstddef>
#include <cstdint>

#include "probes/amd/hip_api.h"

namespace assay::amd::hipblaslt {

/// The library by its sonames, newest first: of ROCm 7 and 6.
inline constexpr const char* kLibraries[] = {"libhipblaslt.so.1", "libhipblaslt.so.0"};

using Status = int;
inline constexpr Status kSuccess = 0, kInvalidValue = 3, kNotSupported = 7, kArchMismatch = 8;
/// By number; the library has no function for them.
inline constexpr const char* kStatusWords[] = {"success",           "not initialised", "allocation failed",
                                               "invalid value",     "mapping error",   "execution failed",
                                               "internal error",    "not supported",   "architecture mismatch",
                                               "handle is nullptr", "invalid enum",    "unknown"};

/// hipDataType.
enum class Type {
  fp32 = 0,
  fp64 = 1,
  fp16 = 2,
  int8 = 3,
  int32 = 10,
  bf16 = 14,
  e4m3 = 28,
  e5m2 = 29,
  e4m3_fnuz = 1000,
  e5m2_fnuz = 1001
};
/// hipblasComputeType_t; fast_tf32 multiplies XF32 where the GPU has it.
enum class Compute { fp32 = 2, fast_tf32 = 6, fp64 = 7, int32 = 9 };

inline constexpr std::int32_t kNormal = 111, kTransposed = 112;           // hipblasOperation_t
inline constexpr int kTransA = 0, kTransB = 1, kScaleA = 5, kScaleB = 6;  // hipblasLtMatmulDescAttributes_t
inline constexpr int kMostWorkspace = 1;                                  // of a preference
inline constexpr int kMajorUnit = 100'000, kMinorUnit = 100;              // of hipblasLtGetVersion

/// hipblasLtMatmulAlgo_t. The first 4 bytes are the number of the solution (hipblaslt_ext::getIndexFromAlgo).
struct Algorithm {
  std::uint8_t data[16] = {};
  std::size_t most_workspace = 0;
};
/// hipblasLtMatmulHeuristicResult_t.
struct Proposal {
  Algorithm algorithm;
  std::size_t workspace = 0;
  Status state = kSuccess;
  float waves = 1;
  int reserved[4] = {};
};
static_assert(sizeof(Algorithm) == 24 && sizeof(Proposal) == 56);

using Handle = void*;
using Description = void*;
using Layout = void*;
using Preference = void*;

struct Functions {
  template <class... Arguments>
  using Call = Status (*)(Arguments...);

  Library library;
  Call<Handle, int*> version = library.function("hipblasLtGetVersion");
  Call<Handle*> create = library.function("hipblasLtCreate");
  Call<Handle> destroy = library.function("hipblasLtDestroy");
  Call<Description*, Compute, Type> description_create = library.function("hipblasLtMatmulDescCreate");
  Call<Description> description_destroy = library.function("hipblasLtMatmulDescDestroy");
  Call<Description, int, const void*, std::size_t> description_set =
      library.function("hipblasLtMatmulDescSetAttribute");
  Call<Layout*, Type, std::uint64_t, std::uint64_t, std::int64_t> layout_create =
      library.function("hipblasLtMatrixLayoutCreate");
  Call<Layout> layout_destroy = library.function("hipblasLtMatrixLayoutDestroy");
  Call<Preference*> preference_create = library.function("hipblasLtMatmulPreferenceCreate");
  Call<Preference> preference_destroy = library.function("hipblasLtMatmulPreferenceDestroy");
  Call<Preference, int, const void*, std::size_t> preference_set =
      library.function("hipblasLtMatmulPreferenceSetAttribute");
  Call<Handle, Description, Layout, Layout, Layout, Layout, Preference, int, Proposal*, int*> heuristic =
      library.function("hipblasLtMatmulAlgoGetHeuristic");
  Call<Handle, Description, const void*, const void*, Layout, const void*, Layout, const void*, const void*, Layout,
       void*, Layout, const Algorithm*, void*, std::size_t, hip_api::Stream>
      matmul = library.function("hipblasLtMatmul");
};

}  // namespace assay::amd::hipblaslt
