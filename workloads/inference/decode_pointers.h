// decode_pointers: where the arrays of a step are in a GPU's memory, and the factors of one product.
#pragma once

#include <cstdint>

#include "workloads/inference/decode_sizes.h"

namespace assay::inference {

/// Inputs that steps take in turn: a result of the step before does not pass.
inline constexpr std::int64_t kDecodeInputs = 4;

/// Memory of one GPU that a step uses. Rows of a batch follow each other.
struct DecodePointers {
  Bf16 *weights = nullptr, *cache = nullptr;  ///< one set
  std::int32_t* table = nullptr;              ///< of pages
  float *inputs = nullptr, *x = nullptr;      ///< kDecodeInputs of batch x hidden, and the one that a step changes
  int *whole_x = nullptr, *whole_from = nullptr, *whole_to = nullptr;  ///< of the step in whole numbers
  Bf16 *h = nullptr, *attended = nullptr, *inner = nullptr;            ///< inputs of products: hidden, q, ffn wide
  float *qkv = nullptr, *gate_up = nullptr, *logits = nullptr;         ///< results of products
  float *largest = nullptr, *sums = nullptr, *parts = nullptr;         ///< of tasks of attention
};

/// One product of a step: y = x w^T, or added to y. `x` has room for whole tiles of sequences; numbers behind the
/// batch change nothing.
struct StepProduct {
  const Bf16* w = nullptr;
  std::int64_t rows = 0, columns = 0;
  const Bf16* x = nullptr;
  std::int64_t batch = 0;
  float* y = nullptr;  ///< batch x rows
  bool add = false;    ///< to the numbers of y
  bool ring = false;
};

}  // namespace assay::inference
