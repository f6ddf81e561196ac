add_executable(unit_orchestrator unit/judge_test.cpp unit/plan_test.cpp unit/journal_test.cpp unit/placement_test.cpp
  unit/forecast_test.cpp unit/launch_process_test.cpp unit/site_test.cpp)
target_link_libraries(unit_orchestrator PRIVATE assay_orchestrator GTest::gtest_main)
gtest_discover_tests(unit_orchestrator PROPERTIES LABELS unit)
