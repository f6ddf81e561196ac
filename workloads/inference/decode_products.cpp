// decode_products: each shape by the first algorithm of the library's heuristic.
#include "workloads/inference/decode_products.h"

#include <fmt/format.h>

#include "probes/core/probe.h"
#include "workloads/train_gpu/products.h"

namespace assay::inference {

LibraryProducts::LibraryProducts(std::int64_t most) : words_("own kernels") {
  if (most <= kOwnBatch) return;
  try {
    products_ = std::make_unique<train_gpu::Products>(train::FactorType::bf16);
    words_ = fmt::format("own kernels up to {} sequences, above cuBLASLt {}", kOwnBatch, products_->version());
  } catch (const Skip& missing) {
    words_ = fmt::format("own kernels; {}", missing.what());
  }
}
LibraryProducts::~LibraryProducts() = default;

bool LibraryProducts::enqueue(const StepProduct& p, const cuda::Stream& stream) {
  if (!products_ || p.batch <= kOwnBatch) return false;
  const train_gpu::ProductShape shape{.m = p.batch,
                                      .n = p.rows,
                                      .k = p.columns,
                                      .lda = p.columns,
                                      .ldb = p.columns,
                                      .ldc = p.rows,
                                      .b_turned = true,
                                      .kept = p.add ? 1.0F : 0.0F};
  products_->settle(shape);
  products_->enqueue(shape, {.numbers = p.x}, {.numbers = p.w}, p.y, stream);
  return true;
}

}  // namespace assay::inference
