add_executable(unit_orchestrator unit/judge/judge_test.cpp unit/plan/plan_test.cpp unit/judge/journal_test.cpp unit/plan/placement_test.cpp
  unit/plan/fabric_plan_test.cpp unit/site/topology_test.cpp unit/plan/forecast_test.cpp unit/launch/launch_process_test.cpp unit/site/site_test.cpp)
target_link_libraries(unit_orchestrator PRIVATE assay_orchestrator GTest::gtest_main)
target_compile_definitions(unit_orchestrator PRIVATE ASSAY_GOLDEN="${CMAKE_CURRENT_SOURCE_DIR}/golden")
gtest_discover_tests(unit_orchestrator PROPERTIES LABELS unit)
