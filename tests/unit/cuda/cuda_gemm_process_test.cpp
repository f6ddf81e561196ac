// What cuda_gemm refuses before it looks for a GPU.
#include <gtest/gtest.h>

#include "tests/unit/paths.h"
#include "tests/unit/probe_process.h"

namespace assay::cuda {
namespace {

std::string refusal(std::vector<std::string> arguments) {
  const Record record = record_of(probe_file("cuda_gemm"), std::move(arguments));
  return record.end.status == Status::error ? record.end.reason : "no error";
}

}  // namespace

TEST(cuda_gemm, a_shape_that_no_kernel_takes_is_refused_with_one_that_it_takes) {
  EXPECT_EQ(refusal({"--k", "100"}), "k: 100 is no multiple of 8, which bf16 needs; hint: 104 is");
}

TEST(cuda_gemm, fast_accumulation_is_refused_where_there_is_no_such_choice) {
  EXPECT_EQ(refusal({"--type", "fp64", "--fast-accumulation", "1"}),
            "fast_accumulation: type fp64 has no such choice; hint: fp8_e4m3 and fp8_e5m2 have");
  EXPECT_EQ(refusal({"--type", "fp8_e4m3", "--fast-accumulation", "2"}), "fast_accumulation: give 0 or 1");
}

}  // namespace assay::cuda
