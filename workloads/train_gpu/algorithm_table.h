// algorithm_table: the algorithm of each product, agreed among all ranks: a library that chooses separately on each
// rank may choose differently on two ranks, whose results then differ in their last bits and vote for nothing.
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

/// The algorithms that all ranks use, and the number of shapes for which their choices had differed.
struct AgreedAlgorithms {
  AlgorithmTable table;
  std::size_t differed = 0;  ///< shapes for which two ranks had chosen differently
};
/// For every shape the choice of the first rank that has it. Ranks are in order.
AgreedAlgorithms agreed(const std::vector<AlgorithmTable>& by_rank);

}  // namespace assay::train_gpu
