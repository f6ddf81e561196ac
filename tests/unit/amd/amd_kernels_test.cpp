// The text of the kernels as clang makes it for AMD GPUs.
#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <regex>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "tests/unit/paths.h"

namespace assay::amd::kernels_test {
namespace {

/// The assembly of the kernels' text for one architecture, as clang writes it; nothing where no clang can.
std::string assembly_for(const std::string& architecture) {
  const std::string command = "clang-19 -x hip --offload-device-only --offload-arch=" + architecture +
                              " -nogpulib -nogpuinc -nostdinc -std=c++20 -O3 -Wall -Wextra -Werror "
                              "-Wno-unused-function -S -o - " +
                              build_file("probes/amd/kernels.hip");
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  std::string text;
  std::array<char, 65536> buffer = {};
  for (std::size_t n = 0; pipe && (n = fread(buffer.data(), 1, buffer.size(), pipe.get())) > 0;)
    text.append(buffer.data(), n);
  return text;
}

}  // namespace

TEST(amd_kernels, clang_makes_every_kernel_for_each_architecture_without_a_spill) {
  if (std::system("clang-19 --version > /dev/null 2>&1") != 0)
    GTEST_SKIP() << "clang-19 is not here: apt-get install clang-19";
  const std::set<std::string> wanted = {
      "assay_gemm_fill",   "assay_gemm_sum", "assay_whole_check", "assay_whole_fill", "assay_whole_halves",
      "assay_whole_terms", "assay_add",      "assay_check",       "assay_chase",      "assay_copy",
      "assay_dot",         "assay_fill",     "assay_hold",        "assay_right_dot",  "assay_right_sum",
      "assay_scale",       "assay_start",    "assay_sum",         "assay_walk",       "assay_send",
      "assay_compare"};
  for (const char* architecture : {"gfx942", "gfx90a"}) {
    const std::string text = assembly_for(architecture);
    EXPECT_NE(text.find(std::string("amdhsa--") + architecture), std::string::npos) << text.substr(0, 400);
    const std::regex kernel(
        R"(\.name: +(assay_\w+)[\s\S]*?\.sgpr_spill_count: +(\d+)[\s\S]*?\.vgpr_spill_count: +(\d+))");
    std::set<std::string> found;
    for (std::sregex_iterator one(text.begin(), text.end(), kernel), end; one != end; ++one) {
      found.insert((*one)[1]);
      EXPECT_EQ((*one)[3], "0") << (*one)[1] << " on " << architecture;
      // Scalars of a wave may go to lanes of a vector register where nothing is timed: operands are made once.
      if ((*one)[1] != "assay_gemm_fill" && (*one)[1] != "assay_whole_fill")
        EXPECT_EQ((*one)[2], "0") << (*one)[1] << " on " << architecture;
    }
    EXPECT_EQ(found, wanted) << architecture;
    // A thread moves 16 bytes at once, and the gate is held by the clock of constant rate.
    for (const char* instruction : {"global_load_dwordx4", "global_store_dwordx4", "s_memrealtime", "s_barrier"})
      EXPECT_NE(text.find(instruction), std::string::npos) << instruction << " on " << architecture;
  }
}

}  // namespace assay::amd::kernels_test
