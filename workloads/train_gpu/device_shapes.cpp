// device_shapes: where the factors of a product are, as they are kept and as they are packed.
#include "workloads/train_gpu/device_shapes.h"

namespace assay::train_gpu {

FactorShape a_of(const ProductShape& s) {
  return {.rows = s.a_turned ? s.k : s.m,
          .columns = s.a_turned ? s.m : s.k,
          .leading = s.lda,
          .batch = s.batch,
          .stride = s.a_stride};
}

FactorShape b_of(const ProductShape& s) {
  return {.rows = s.b_turned ? s.n : s.k,
          .columns = s.b_turned ? s.k : s.n,
          .leading = s.ldb,
          .batch = s.batch,
          .stride = s.b_stride};
}

FactorShape packed(const FactorShape& kept) {
  constexpr std::int64_t kGroup = 8;
  FactorShape to = kept;
  to.leading = (kept.columns + kGroup - 1) / kGroup * kGroup;
  to.stride = kept.batch > 1 ? to.rows * to.leading : 0;
  return to;
}

ProductShape packed(const ProductShape& kept) {
  const FactorShape a = packed(a_of(kept)), b = packed(b_of(kept));
  ProductShape to = kept;
  to.lda = a.leading;
  to.a_stride = a.stride;
  to.ldb = b.leading;
  to.b_stride = b.stride;
  return to;
}

}  // namespace assay::train_gpu
