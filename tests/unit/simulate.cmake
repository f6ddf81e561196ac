add_executable(unit_simulate unit/judge/localise_test.cpp unit/judge/searches_test.cpp unit/simulate/simulate_test.cpp)
target_link_libraries(unit_simulate PRIVATE assay_orchestrator GTest::gtest_main)
gtest_discover_tests(unit_simulate PROPERTIES LABELS unit)
