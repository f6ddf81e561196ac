add_executable(unit_core unit/units_test.cpp unit/statistics_test.cpp unit/record_test.cpp)
target_link_libraries(unit_core PRIVATE assay_core GTest::gtest_main)
gtest_discover_tests(unit_core PROPERTIES LABELS unit)
