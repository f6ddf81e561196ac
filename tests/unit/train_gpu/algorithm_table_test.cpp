// All ranks multiply by one algorithm for each shape, and what their libraries would have chosen is compared.
#include <gtest/gtest.h>

#include "workloads/train_gpu/algorithm_table.h"

namespace assay::train_gpu {
namespace {

TEST(AlgorithmTable, is_the_first_ranks_choice_and_counts_shapes_that_differed) {
  const AgreedAlgorithms all = agreed({{{"a", "1"}, {"b", "2"}}, {{"a", "1"}, {"b", "3"}, {"c", "4"}}, {{"b", "5"}}});
  EXPECT_EQ(all.table, (AlgorithmTable{{"a", "1"}, {"b", "2"}, {"c", "4"}}));
  EXPECT_EQ(all.differed, 1U);
}

TEST(AlgorithmTable, of_ranks_that_choose_alike_differs_nowhere) {
  EXPECT_EQ(agreed({{{"a", "1"}}, {{"a", "1"}}}).differed, 0U);
}

TEST(ShapeWords, tell_shapes_apart_that_differ_in_anything) {
  const ProductShape shape{.m = 2, .n = 3, .k = 4, .lda = 4, .ldb = 3, .ldc = 3};
  EXPECT_EQ(shape_words(shape), "2x3x4 lda 4 ldb 3 ldc 3 nn kept 0 batch 1 0 0 0");
  ProductShape other = shape;
  other.b_turned = true;
  other.kept = 1;
  other.batch = 8;
  other.c_stride = 6;
  other.narrow = true;
  EXPECT_EQ(shape_words(other), "2x3x4 lda 4 ldb 3 ldc 3 nt kept 1 batch 8 0 0 6 bf16");
  other.fp8 = Fp8::input;
  EXPECT_EQ(shape_words(other), "2x3x4 lda 4 ldb 3 ldc 3 nt kept 1 batch 8 0 0 6 bf16 of fp8 input");
}

}  // namespace
}  // namespace assay::train_gpu
