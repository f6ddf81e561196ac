# The rooms of orchestrator/, each with its tests in the folder of its name.
add_executable(unit_files unit/files/own_folder_test.cpp unit/files/staging_test.cpp unit/files/terminal_test.cpp)
target_link_libraries(unit_files PRIVATE assay_files GTest::gtest_main)
add_executable(unit_site unit/site/site_test.cpp unit/site/topology_test.cpp unit/site/meter_list_test.cpp)
target_link_libraries(unit_site PRIVATE assay_plan GTest::gtest_main)
add_executable(unit_plan unit/plan/plan_test.cpp unit/plan/placement_test.cpp unit/plan/fabric_plan_test.cpp unit/plan/forecast_test.cpp unit/plan/storage_use_test.cpp unit/plan/group_size_test.cpp unit/plan/passes_test.cpp unit/plan/machines_test.cpp unit/plan/acceptance_test.cpp
  unit/plan/lint_test.cpp unit/plan/limits_test.cpp unit/plan/probe_names_test.cpp)
target_compile_definitions(unit_plan PRIVATE ASSAY_DOCS="${CMAKE_SOURCE_DIR}/docs")
target_link_libraries(unit_plan PRIVATE assay_run GTest::gtest_main)
add_executable(unit_run unit/run/progress_test.cpp)
target_link_libraries(unit_run PRIVATE assay_run GTest::gtest_main)
add_executable(unit_judge unit/judge/judge_test.cpp unit/judge/attempts_test.cpp unit/judge/decision_test.cpp unit/judge/steadiness_test.cpp unit/judge/lying_node_test.cpp unit/judge/journal_test.cpp unit/judge/journal_guard_test.cpp unit/judge/controls_test.cpp unit/judge/localise_test.cpp unit/judge/localise_seeds_test.cpp unit/judge/searches_order_test.cpp unit/judge/searches_test.cpp unit/judge/pairs_test.cpp unit/judge/pair_matrix_test.cpp
  unit/judge/second_stage_test.cpp unit/judge/chance_test.cpp unit/judge/node_verdicts_test.cpp unit/judge/references_test.cpp unit/judge/rises_test.cpp unit/judge/faults_test.cpp
  unit/judge/condition_words_test.cpp unit/judge/verdict_table_test.cpp unit/judge/verdict_test.cpp unit/judge/site_evidence_test.cpp unit/judge/site_efficiency_test.cpp unit/judge/site_step_test.cpp unit/judge/site_outlets_test.cpp)
target_link_libraries(unit_judge PRIVATE assay_simulate GTest::gtest_main)
add_executable(unit_simulate unit/simulate/simulate_test.cpp unit/simulate/search_rehearsal_test.cpp unit/simulate/attempts_simulation_test.cpp unit/simulate/hall_test.cpp unit/simulate/training_model_test.cpp)
target_link_libraries(unit_simulate PRIVATE assay_simulate GTest::gtest_main)
# Twenty plants take two minutes of processor time, and more where other work shares the machine.
add_test(NAME twenty_plants COMMAND unit_simulate --gtest_filter=Hall.honest_plants* CONFIGURATIONS meters)
set_tests_properties(twenty_plants PROPERTIES LABELS meters TIMEOUT 1200 ENVIRONMENT ASSAY_HONEST_PLANTS=20)
add_executable(unit_launch unit/launch/launch_process_test.cpp unit/launch/launch_bootstrap_test.cpp unit/launch/launch_callers_test.cpp unit/launch/launch_ssh_test.cpp unit/launch/launch_words_test.cpp)
target_link_libraries(unit_launch PRIVATE assay_launch GTest::gtest_main)
add_executable(unit_wire unit/wire/protocol_test.cpp)
target_link_libraries(unit_wire PRIVATE assay_wire GTest::gtest_main)
foreach(room files site plan run judge simulate launch wire)
  target_compile_definitions(unit_${room} PRIVATE ASSAY_GOLDEN="${CMAKE_CURRENT_SOURCE_DIR}/golden")
  gtest_discover_tests(unit_${room} PROPERTIES LABELS unit)
endforeach()
