// main of the unit programs: runs what the command line asks for.
#include <gtest/gtest.h>

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (RUN_ALL_TESTS() != 0) return 1;
  constexpr int kSkipped = 77;  // what CTest is told: SKIP_RETURN_CODE
  return testing::UnitTest::GetInstance()->skipped_test_count() > 0 ? kSkipped : 0;
}
