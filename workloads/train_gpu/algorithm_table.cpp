// algorithm_table: the first rank's choice is everybody's.
#include "workloads/train_gpu/algorithm_table.h"

#include <set>

#include <fmt/format.h>

namespace assay::train_gpu {

std::string shape_words(const ProductShape& s) {
  return fmt::format("{}x{}x{} lda {} ldb {} ldc {} {}{} kept {} batch {} {} {} {}{}", s.m, s.n, s.k, s.lda, s.ldb,
                     s.ldc, s.a_turned ? 't' : 'n', s.b_turned ? 't' : 'n', s.kept, s.batch, s.a_stride, s.b_stride,
                     s.c_stride, s.narrow ? " bf16" : "");
}

AgreedAlgorithms agreed(const std::vector<AlgorithmTable>& by_rank) {
  AgreedAlgorithms all;
  std::set<std::string> differing;
  for (const AlgorithmTable& one : by_rank) {
    for (const auto& [shape, algorithm] : one) {
      const auto [found, added] = all.table.emplace(shape, algorithm);
      if (!added && found->second != algorithm) differing.insert(shape);
    }
  }
  all.differed = differing.size();
  return all;
}

}  // namespace assay::train_gpu
