// The graphs of attention before an installed cuDNN: it builds plans for GPUs that are described in
// words, with a driver that takes every kernel. Nothing runs, and nothing is said of a result.
#include <list>
#include <optional>

#include <dlfcn.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "probes/core/probe.h"
#include "tests/unit/paths.h"
#include "workloads/train_gpu/fused_attention.h"

namespace assay::train_gpu::plans {
namespace {

/// A GPU as cuDNN 9.19.0 writes its properties (CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION); those of one generation.
std::string described(int version, int processors) {
  return fmt::format(
      R"({{"maxGridSize": [2147483647, 65535, 65535], "maxBlockSize": [1024, 1024, 64], "regsPerBlock": 65536,)"
      R"( "multiProcessorCount": {}, "smClockRateKHz": 1980000, "memClockRateKHz": 3201000, "l2CacheSize": 62914560,)"
      R"( "warpSize": 32, "maxSharedMemoryPerBlock": 49152, "maxSharedMemoryPerBlockOptin": 232448,)"
      R"( "reservedSharedMemoryPerBlock": 1024, "maxRegistersPerSM": 65536, "pciDeviceId": 0, "maxCtasPerSM": 32,)"
      R"( "maxThreadsPerBlock": 1024, "maxThreadsPerSM": 2048, "isTccDriver": 0, "supportCoopLaunch": 1,)"
      R"( "deviceVer": {}, "driverVer": 13000, "driverVersion": 13000, "totalGlobalMem": 150109880320,)"
      R"( "cudaDeviceId": 0, "deviceName": "described"}})",
      processors, version);
}

class Plans : public ::testing::Test {
 protected:
  Plans() {
    try {
      call_ = cudnn::Functions::open();
    } catch (const Skip& missing) {
      reason_ = missing.what();
    }
    // cuDNN finds a loaded library by its name.
    if (dlopen(build_file("tests/fakes/fake_compiling_driver/libcuda.so.1").c_str(), RTLD_NOW) == nullptr)
      reason_ = dlerror();
  }
  void SetUp() override {
    if (!reason_.empty()) GTEST_SKIP() << reason_;
    constexpr std::size_t kKnown = 91900;
    if (call_->version_code() != kKnown) GTEST_SKIP() << "properties are known of 9.19.0, this is " << call_->version();
  }
  AttentionPlans planned(int version, int processors, SumOrder order, std::size_t width = 128) {
    const std::string words = described(version, processors);
    const cudnn::Descriptor& device = devices_.emplace_back(*call_, cudnn::Kind::device);
    device.set(cudnn::Attribute::device_words, cudnn::Type::character, std::ssize(words), words.data());
    device.finalize();
    return attention_plans(*call_, {.described = &device},
                           {.sequences = 1, .seq = 4096, .heads = 32, .kv_heads = 8, .width = width}, order);
  }

 private:
  std::optional<cudnn::Functions> call_;
  std::list<cudnn::Descriptor> devices_;
  std::string reason_;
};

constexpr std::int64_t kScores = std::int64_t{32} * 4096 * 4096 * 2;  // B, of all heads

TEST_F(Plans, of_attention_exist_for_the_h200_and_the_b200) {
  const AttentionPlans ordered = planned(900, 132, SumOrder::one), any = planned(1000, 148, SumOrder::any);
  EXPECT_FALSE(ordered.adds);
  EXPECT_GE(ordered.backward.workspace, kScores);
  EXPECT_TRUE(any.adds);
  EXPECT_LT(any.backward.workspace, kScores / 4) << "no scores are kept";
}

TEST_F(Plans, of_heads_that_are_too_wide_do_not_exist) {
  try {
    (void)planned(900, 132, SumOrder::one_if_offered, 264);
    FAIL() << "a plan was made";
  } catch (const cudnn::Unsupported& refused) {
    EXPECT_STREQ(refused.what(),
                 "cuDNN 9.19.0 has no plan: heuristics A name no engine; heuristics FALLBACK name no engine");
  }
}

}  // namespace
}  // namespace assay::train_gpu::plans
