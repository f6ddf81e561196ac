// Our declarations of NCCL's interface beside its own header, where CUDA's folder has it.
#include <gtest/gtest.h>

#include "probes/nccl/nccl_api.h"

#if __has_include(<nccl.h>)
#include <nccl.h>

namespace assay::nccl {
namespace {

TEST(nccl_api, is_that_of_the_header) {
  EXPECT_EQ(api::kSuccess, ncclSuccess);
  EXPECT_EQ(api::kInProgress, ncclInProgress);
  EXPECT_EQ(api::kSum, ncclSum);
  EXPECT_EQ(api::kInt8, ncclInt8);
  EXPECT_EQ(api::kFloat16, ncclFloat16);
  EXPECT_EQ(api::kFloat32, ncclFloat32);
  EXPECT_EQ(api::kFloat64, ncclFloat64);
  EXPECT_EQ(api::kBfloat16, ncclBfloat16);
  EXPECT_EQ(sizeof(api::UniqueId), sizeof(ncclUniqueId));
  EXPECT_EQ(offsetof(api::Config, blocking), offsetof(ncclConfig_t, blocking));
  EXPECT_EQ(offsetof(api::Config, network), offsetof(ncclConfig_t, netName));
  EXPECT_EQ(offsetof(api::Config, shares_on_split), offsetof(ncclConfig_t, splitShare));
  const ncclConfig_t theirs = NCCL_CONFIG_INITIALIZER;
  const api::Config ours;
  EXPECT_EQ(ours.magic, theirs.magic);
  EXPECT_EQ(ours.blocking, theirs.blocking);
  EXPECT_LE(ours.size, theirs.size);
  EXPECT_LE(ours.version, theirs.version);
}

}  // namespace
}  // namespace assay::nccl
#else
TEST(nccl_api, is_that_of_the_header) { GTEST_SKIP() << "nccl.h is not here"; }
#endif
