add_executable(unit_train unit/train/model_card_test.cpp unit/train/step_graph_test.cpp unit/train/step_evidence_test.cpp
  unit/train/fault_plan_test.cpp unit/train/reliability_test.cpp)
target_link_libraries(unit_train PRIVATE assay_train_plan GTest::gtest_main)
gtest_discover_tests(unit_train PROPERTIES LABELS unit)

find_package(Gloo CONFIG REQUIRED)  # probes/gloo says which package it is
add_executable(unit_train_engine unit/train/host_engine_test.cpp unit/train/flipped_bit_test.cpp
  unit/train/step_math_test.cpp unit/train/kept_states_test.cpp unit/train/executor_test.cpp unit/train/step_edges_test.cpp)
target_link_libraries(unit_train_engine PRIVATE assay_train_wire gloo GTest::gtest_main)
gtest_discover_tests(unit_train_engine PROPERTIES LABELS unit)

# The engine for GPUs on a fake device.
add_executable(unit_train_device unit/train_gpu/device_engine_test.cpp unit/train_gpu/algorithm_table_test.cpp)
target_link_libraries(unit_train_device PRIVATE assay_train_device assay_train_wire assay_openblas gloo GTest::gtest_main)
gtest_discover_tests(unit_train_device PROPERTIES LABELS unit)
if(TARGET cuda_train_step)
  add_executable(unit_train_gpu_process unit/train_gpu/cuda_train_step_process_test.cpp)
  target_link_libraries(unit_train_gpu_process PRIVATE assay_train_plan GTest::gtest_main)
  target_compile_definitions(unit_train_gpu_process PRIVATE CUDA_TRAIN_STEP="$<TARGET_FILE:cuda_train_step>")
  add_dependencies(unit_train_gpu_process cuda_train_step)
  gtest_discover_tests(unit_train_gpu_process PROPERTIES LABELS unit)
endif()

add_executable(unit_train_step unit/train/train_step_process_test.cpp)
target_link_libraries(unit_train_step PRIVATE assay_core GTest::gtest_main)
target_compile_definitions(unit_train_step PRIVATE TRAIN_STEP="$<TARGET_FILE:train_step>" TRAIN_STEP_RANK="$<TARGET_FILE:train_step_rank>")
add_dependencies(unit_train_step train_step train_step_rank)
gtest_discover_tests(unit_train_step PROPERTIES LABELS unit)

add_executable(unit_train_soak unit/train/train_soak_process_test.cpp)
target_link_libraries(unit_train_soak PRIVATE assay_core GTest::gtest_main)
target_compile_definitions(unit_train_soak PRIVATE TRAIN_SOAK="$<TARGET_FILE:train_soak>")
add_dependencies(unit_train_soak train_soak)
gtest_discover_tests(unit_train_soak PROPERTIES LABELS unit)

add_executable(unit_fault_resume unit/train/fault_resume_process_test.cpp)
add_executable(fault_cases unit/train/fault_cases_test.cpp)
foreach(test unit_fault_resume fault_cases)
  target_link_libraries(${test} PRIVATE assay_core GTest::gtest_main)
  target_compile_definitions(${test} PRIVATE FAULT_RESUME="$<TARGET_FILE:fault_resume>" FAULT_RESUME_RANK="$<TARGET_FILE:fault_resume_rank>")
  add_dependencies(${test} fault_resume fault_resume_rank)
endforeach()
gtest_discover_tests(unit_fault_resume PROPERTIES LABELS unit)
# The same records as the judge sees them.
add_executable(unit_fault_verdict unit/train/fault_verdict_test.cpp)
target_link_libraries(unit_fault_verdict PRIVATE assay_run assay_judge GTest::gtest_main)
target_compile_definitions(unit_fault_verdict PRIVATE FAULT_RESUME="$<TARGET_FILE:fault_resume>")
add_dependencies(unit_fault_verdict fault_resume)
gtest_discover_tests(unit_fault_verdict PROPERTIES LABELS unit)
# All faults in all phases of three divisions take three minutes: -C train.
add_test(NAME fault_cases COMMAND fault_cases CONFIGURATIONS train)
set_tests_properties(fault_cases PROPERTIES LABELS train TIMEOUT 900 RUN_SERIAL ON)

# A rank stopped at sixty moments: -C train.
add_executable(stopped_anywhere unit/train/stopped_anywhere_test.cpp)
target_link_libraries(stopped_anywhere PRIVATE assay_core GTest::gtest_main)
target_compile_definitions(stopped_anywhere PRIVATE TRAIN_SOAK="$<TARGET_FILE:train_soak>"
  TRAIN_STEP="$<TARGET_FILE:train_step>" FAULT_RESUME="$<TARGET_FILE:fault_resume>")
add_dependencies(stopped_anywhere train_soak train_step fault_resume)
add_test(NAME stopped_anywhere COMMAND stopped_anywhere CONFIGURATIONS train)
set_tests_properties(stopped_anywhere PROPERTIES LABELS train TIMEOUT 1500 RUN_SERIAL ON)
