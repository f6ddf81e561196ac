add_executable(unit_orchestrator unit/judge_test.cpp unit/plan_test.cpp unit/journal_test.cpp unit/placement_test.cpp
  unit/fabric_plan_test.cpp unit/topology_test.cpp unit/forecast_test.cpp unit/launch_process_test.cpp unit/site_test.cpp)
target_link_libraries(unit_orchestrator PRIVATE assay_orchestrator GTest::gtest_main)
target_compile_definitions(unit_orchestrator PRIVATE ASSAY_GOLDEN="${CMAKE_CURRENT_SOURCE_DIR}/golden")
gtest_discover_tests(unit_orchestrator PROPERTIES LABELS unit)
