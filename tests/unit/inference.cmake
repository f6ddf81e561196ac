add_executable(unit_inference unit/inference/routing_test.cpp unit/inference/expert_exchange_test.cpp unit/inference/moe_record_test.cpp
  ${PROJECT_SOURCE_DIR}/workloads/inference/moe_record.cpp)
target_link_libraries(unit_inference PRIVATE assay_inference_wire gloo GTest::gtest_main)
gtest_discover_tests(unit_inference PROPERTIES LABELS unit)

add_executable(unit_decode unit/inference/decode_test.cpp)
target_link_libraries(unit_decode PRIVATE assay_decode GTest::gtest_main)
gtest_discover_tests(unit_decode PROPERTIES LABELS unit)

add_executable(unit_kv unit/inference/kv_blocks_test.cpp)
target_link_libraries(unit_kv PRIVATE assay_kv GTest::gtest_main)
gtest_discover_tests(unit_kv PROPERTIES LABELS unit)

add_executable(unit_inference_probes unit/inference/moe_dispatch_process_test.cpp unit/inference/decode_step_process_test.cpp
  unit/inference/kv_transfer_process_test.cpp)
set_target_properties(unit_inference_probes PROPERTIES UNITY_BUILD OFF)  # each has a probe of its own
target_link_libraries(unit_inference_probes PRIVATE assay_core GTest::gtest_main)
target_compile_definitions(unit_inference_probes PRIVATE MOE_DISPATCH="$<TARGET_FILE:moe_dispatch>"
  MOE_DISPATCH_RANK="$<TARGET_FILE:moe_dispatch_rank>" DECODE_STEP="$<TARGET_FILE:decode_step>" KV_TRANSFER="$<TARGET_FILE:kv_transfer>")
add_dependencies(unit_inference_probes moe_dispatch moe_dispatch_rank decode_step kv_transfer)
gtest_discover_tests(unit_inference_probes PROPERTIES LABELS unit)
