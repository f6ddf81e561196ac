// algorithm_table: which algorithm each product is done by, agreed among all ranks: a library that chooses by itself
// may choose differently on two ranks, whose results then differ in their last bits and vote for nothing.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "workloads/train_gpu/device_shapes.h"

namespace assay::train_gpu {

/// A shape as words that order and compare: "128x512x256 lda 256 ldb 512 ldc 512 nt kept 0 batch 1 0 0 0".
std::string shape_words(const ProductShape& shape);

/// By shape_words(), an algorithm as a library writes it, in hexadecimal digits.
using AlgorithmTable = std::map<std::string, std::string>;

/// What all ranks use, and where they had not chosen alike.
struct AgreedAlgorithms {
  AlgorithmTable table;
  std::size_t differed = 0;  ///< shapes for which two ranks had chosen differently
};
/// Of every shape what the first rank that has it chose. Ranks are in order.
AgreedAlgorithms agreed(const std::vector<AlgorithmTable>& by_rank);

}  // namespace assay::train_gpu
