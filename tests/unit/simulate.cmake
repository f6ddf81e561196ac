add_executable(unit_simulate unit/localise_test.cpp unit/searches_test.cpp unit/simulate_test.cpp)
target_link_libraries(unit_simulate PRIVATE assay_orchestrator GTest::gtest_main)
gtest_discover_tests(unit_simulate PROPERTIES LABELS unit)
