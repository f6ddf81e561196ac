// decode_products: products of large batches by cuBLASLt, as serving engines have them; a few sequences are faster by
// our own kernels. No CUDA header is needed to include this.
#pragma once

#include <memory>
#include <string>

#include "probes/cuda/device.h"
#include "workloads/inference/decode_pointers.h"

namespace assay::train_gpu {
class Products;
}

namespace assay::inference {

/// Sequences of one batch up to which our own kernels multiply.
inline constexpr std::int64_t kOwnBatch = 8;

/// The library's products on the current device.
class LibraryProducts {
 public:
  /// Opens the library where a batch of up to `most` sequences needs it. Where it is missing, our own kernels have all
  /// batches, and words() says why.
  explicit LibraryProducts(std::int64_t most);
  ~LibraryProducts();
  LibraryProducts(const LibraryProducts&) = delete;
  LibraryProducts& operator=(const LibraryProducts&) = delete;

  /// Enqueues a product of more than kOwnBatch sequences, and returns true; others, and all without the library, it
  /// leaves. Throws std::runtime_error when the library refuses.
  bool enqueue(const StepProduct& product, const cuda::Stream& stream);
  /// Who multiplies, for the record.
  [[nodiscard]] const std::string& words() const { return words_; }

 private:
  std::unique_ptr<train_gpu::Products> products_;
  std::string words_;
};

}  // namespace assay::inference
