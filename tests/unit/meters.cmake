add_executable(unit_meters unit/meters/plant_test.cpp unit/meters/answers_test.cpp unit/meters/derived_test.cpp unit/meters/guard_test.cpp unit/meters/load_shape_test.cpp unit/meters/failover_test.cpp)
target_link_libraries(unit_meters PRIVATE assay_meters assay_simulate GTest::gtest_main)
gtest_discover_tests(unit_meters PROPERTIES LABELS unit)
