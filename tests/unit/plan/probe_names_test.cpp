// The names of probes that assay knows, and what a plan makes of others.
#include <algorithm>
#include <fstream>

#include <gtest/gtest.h>

#include "orchestrator/plan/catalogue.h"
#include "tests/unit/fixture.h"
#include "tests/unit/paths.h"

namespace assay::plan {
namespace {

std::string error_of_profile(const std::string& requirement) {
  const auto problem = find_unknown_probe(fixture::profile({requirement}), fixture::programs());
  return problem ? problem->text() : "known";
}

TEST(ProbeNames, are_those_of_the_table_in_the_documents) {
  std::ifstream file(source_file("docs/PROBES.md"));
  const auto known = known_probe_names();
  std::size_t rows = 0;
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("| `")) continue;
    ++rows;
    const std::string name = line.substr(3, line.find('`', 3) - 3);
    EXPECT_TRUE(std::ranges::binary_search(known, name)) << name;
  }
  EXPECT_GT(rows, 20U);
}

TEST(ProbeNames, a_misspelt_probe_is_refused_with_the_nearest_where_that_is_asked_for) {
  constexpr const char* kWrong = R"({"probe": "host_gem", "limit": {"at_least": 1, "unit": "B/s"}})";
  EXPECT_EQ(error_of_profile(kWrong),
            "profile p: requirements[0].probe: there is no probe 'host_gem'\n"
            "hint: did you mean 'host_gemm'?; --allow-missing plans without it");
}

TEST(ProbeNames, a_probe_that_this_build_leaves_out_is_planned_and_not_measured) {
  EXPECT_EQ(error_of_profile(R"({"probe": "cuda_gemm", "limit": {"at_least": 1, "unit": "B/s"}})"), "known");
  EXPECT_EQ(error_of_profile(R"({"probe": "disk", "limit": {"at_least": 1, "unit": "B/s"}})"), "known")
      << "it is at hand";
}

}  // namespace
}  // namespace assay::plan
