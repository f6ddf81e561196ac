// algorithm_table: the first rank's choice is everybody's.
#include "workloads/train_gpu/algorithm_table.h"

#include <array>
#include <set>

#include <fmt/format.h>

namespace assay::train_gpu {

std::string shape_words(const ProductShape& s) {
  constexpr std::array kFp8 = {"", " of fp8 forward", " of fp8 input", " of fp8 weight"};
  return fmt::format("{}x{}x{} lda {} ldb {} ldc {} {}{} kept {} batch {} {} {} {}{}{}", s.m, s.n, s.k, s.lda, s.ldb,
                     s.ldc, s.a_turned ? 't' : 'n', s.b_turned ? 't' : 'n', s.kept, s.batch, s.a_stride, s.b_stride,
                     s.c_stride, s.narrow ? " bf16" : "", kFp8.at(static_cast<std::size_t>(s.fp8)));
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
