add_executable(unit_core unit/core/units_test.cpp unit/core/statistics_test.cpp unit/core/small_samples_test.cpp unit/core/record_test.cpp
  unit/core/strict_object_test.cpp unit/core/text_test.cpp unit/core/sha256_test.cpp unit/core/child_test.cpp unit/core/space_test.cpp unit/core/group_size_test.cpp
  unit/core/link_modes_test.cpp unit/core/step_response_test.cpp unit/core/description_test.cpp)
target_link_libraries(unit_core PRIVATE assay_core GTest::gtest_main)
gtest_discover_tests(unit_core PROPERTIES LABELS unit)
