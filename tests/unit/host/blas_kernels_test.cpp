// Kernels narrower than the processor's vectors are replaced, and where they cannot be, nothing is measured.
#include <gtest/gtest.h>

#include "probes/core/probe.h"
#include "probes/host/blas_kernels.h"

namespace assay::host {

TEST(blas_kernels, a_library_that_does_not_know_the_processor_is_asked_for_wide_kernels) {
  EXPECT_EQ(wider_kernels("Prescott", Vectors::avx512), "SkylakeX");
  EXPECT_EQ(wider_kernels("Haswell", Vectors::avx512), "SkylakeX");
  EXPECT_EQ(wider_kernels("Zen", Vectors::avx512), "SkylakeX");
  EXPECT_EQ(wider_kernels("Barcelona", Vectors::avx2_fma), "Haswell");
  EXPECT_EQ(wider_kernels("Prescott", Vectors::avx), "Sandybridge");
}

TEST(blas_kernels, as_wide_as_the_processor_is_left_as_the_library_chose) {
  EXPECT_EQ(wider_kernels("Cooperlake", Vectors::avx512), "");
  EXPECT_EQ(wider_kernels("SkylakeX", Vectors::avx512), "");
  EXPECT_EQ(wider_kernels("Zen", Vectors::avx2_fma), "");
  EXPECT_EQ(wider_kernels("Prescott", Vectors::sse), "");
  EXPECT_EQ(wider_kernels("SkylakeX", Vectors::avx2_fma), "");
  EXPECT_EQ(wider_kernels("SKYLAKEX", Vectors::avx512), "");  // a library built for that processor alone
}

TEST(blas_kernels, an_unknown_core_or_another_architecture_changes_nothing) {
  EXPECT_EQ(wider_kernels("neoversen1", std::nullopt), "");
  EXPECT_EQ(wider_kernels("Prescott", std::nullopt), "");
  EXPECT_EQ(wider_kernels("DiamondRapids", Vectors::avx512), "");
}

TEST(blas_kernels, every_wider_set_that_is_asked_for_is_as_wide_as_the_processor) {
  for (const auto processor : {Vectors::avx, Vectors::avx2_fma, Vectors::avx512}) {
    EXPECT_EQ(kernel_vectors(wider_kernels("Prescott", processor)), processor);
  }
}

TEST(blas_kernels, kernels_that_stay_narrow_are_a_skip_with_both_names) {
  if (processor_vectors().value_or(Vectors::sse) == Vectors::sse) GTEST_SKIP() << "no vectors wider than SSE here";
  try {
    require_wide_kernels("Prescott");
    FAIL() << "Prescott's kernels were taken for this processor's";
  } catch (const Skip& skip) {
    EXPECT_NE(std::string_view(skip.what()).find("kernels for Prescott, which are written for SSE"),
              std::string_view::npos)
        << skip.what();
  }
}

}  // namespace assay::host
