// gemm_library: the vendor's library of matrix products, opened at run time, and one product described to it: cuBLASLt
// (cublaslt.cpp) or hipBLASLt (probes/amd/hipblaslt.cpp), whichever this is linked with. No header of either is needed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "probes/core/units.h"
#include "probes/cuda/device.h"
#include "probes/cuda/gemm_operands.h"
#include "probes/cuda/gemm_type.h"

namespace assay::cuda {

struct GemmFunctions;  // the library's functions; in the file that opens it

/// The library of this node. One for the process; its functions may be called from any thread.
class GemmLibrary {
 public:
  /// Opens the library of a major version that is known, switches off the emulation of FP64 and FP32 and keeps TF32 as
  /// it is, despite a user's environment. `folders` are searched first. Throws Skip when it is missing or of another
  /// version. Call before other threads run: it sets environment variables.
  explicit GemmLibrary(std::string_view folders);
  ~GemmLibrary();

  /// Its common name.
  static const char* const kTitle;
  /// "13.1.0" and its path.
  [[nodiscard]] const std::string& version() const { return version_; }
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] const GemmFunctions& functions() const { return *functions_; }

 private:
  std::unique_ptr<GemmFunctions> functions_;
  std::string version_, path_;
};

/// One way to compute a product, as the library proposes it.
struct Algorithm {
  std::array<std::uint64_t, 8> opaque = {};  ///< cublasLtMatmulAlgo_t, or hipblasLtMatmulAlgo_t and zeros
  Bytes workspace;

  friend bool operator==(const Algorithm&, const Algorithm&) = default;
};

/// The library does not run an algorithm on this machine, though it proposed it: one that it compiles at run time, for
/// instance, where the compiler's library is missing.
struct AlgorithmRefused : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Products of one type and shape on the current device: D = op(A) op(B), nothing added.
class Matmul {
 public:
  /// Throws std::runtime_error when the library refuses the description; Skip when it knows no type like these.
  Matmul(const GemmLibrary& library, const GemmType& type, const GemmShape& shape, bool fast_accumulation);
  ~Matmul();

  /// The proposals of the library's heuristic, the best ranked first, at most `most`; algorithms that its own check
  /// refuses are left out, and while emulation is allowed such as can emulate a wider type by narrower ones. `set` is
  /// one that will be multiplied. Empty when it has none for this device.
  [[nodiscard]] std::vector<Algorithm> algorithms(const OperandSet& set, std::size_t most);
  /// Enqueues one product. Throws AlgorithmRefused when the library does.
  void enqueue(const Algorithm& algorithm, const OperandSet& set, const Stream& stream);
  /// How many partial sums `algorithm` rounds to the type of the result before it adds them up; 1: none.
  [[nodiscard]] std::size_t stored_parts(const Algorithm& algorithm) const;
  /// "id 66, tile 20, stages 36, split_k 1, reduction 0, inner_shape 0, cluster 5, workspace 0 B" or "solution 4438,
  /// workspace 0 B", in the library's own numbers.
  [[nodiscard]] std::string text(const Algorithm& algorithm) const;

 private:
  struct State;  // the library's handle and descriptors
  std::unique_ptr<State> state_;
};

}  // namespace assay::cuda
