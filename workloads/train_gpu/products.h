// products: the products of a step by cuBLASLt, opened at run time, each shape by one algorithm that was settled before
// the first step. No CUDA header is needed to include this.
#pragma once

#include <memory>
#include <string>

#include "probes/cuda/device.h"
#include "workloads/train/graph/step_job.h"
#include "workloads/train_gpu/algorithm_table.h"

namespace assay::train_gpu {

/// One factor: its numbers, and of FP8 the place on the device of the number that they are multiplied by.
struct Factor {
  const void* numbers = nullptr;
  const float* scale = nullptr;
};

/// Products of one rank on the current device, on tensor cores, added up in fp32 and written as fp32 or BF16.
class Products {
 public:
  /// Throws Skip when the library is missing or of another major version.
  static void demand_library();

  /// As demand_library(); with a handle and a workspace on the current device. Factors are BF16 numbers, of type tf32
  /// fp32 ones, and FP8 where a shape says so.
  explicit Products(train::FactorType type);
  ~Products();
  Products(const Products&) = delete;
  Products& operator=(const Products&) = delete;

  /// "13.1.0", and where the library is.
  [[nodiscard]] const std::string& version() const;
  [[nodiscard]] const std::string& path() const;
  [[nodiscard]] train::FactorType type() const;

  /// Makes room for products of this shape and takes the heuristic's first choice; nothing is multiplied. Of a shape
  /// that is known, nothing. Throws std::runtime_error when the library has no algorithm for it.
  void settle(const ProductShape& shape);
  /// All settled shapes and their algorithms.
  [[nodiscard]] AlgorithmTable choices() const;
  /// Uses these algorithms from now on. Throws std::runtime_error for a shape that is not in the table, and for an
  /// algorithm that the library's own check refuses on this device.
  void adopt(const AlgorithmTable& table);
  /// Enqueues c = a b + kept c. Throws std::logic_error for a shape that was not settled,
  /// std::runtime_error when the library refuses.
  void enqueue(const ProductShape& shape, const Factor& a, const Factor& b, void* c, const cuda::Stream& stream);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace assay::train_gpu
