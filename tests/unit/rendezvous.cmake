add_executable(unit_rendezvous unit/core/rendezvous_test.cpp unit/core/rendezvous_callers_test.cpp)
target_link_libraries(unit_rendezvous PRIVATE assay_core GTest::gtest_main)
gtest_discover_tests(unit_rendezvous PROPERTIES LABELS unit)
