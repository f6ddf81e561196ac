add_executable(unit_train unit/train/model_card_test.cpp unit/train/step_graph_test.cpp unit/train/step_evidence_test.cpp)
target_link_libraries(unit_train PRIVATE assay_train_plan GTest::gtest_main)
gtest_discover_tests(unit_train PROPERTIES LABELS unit)

find_package(Gloo CONFIG REQUIRED)  # probes/gloo says which package it is
add_executable(unit_train_engine unit/train/host_engine_test.cpp unit/train/flipped_bit_test.cpp
  unit/train/step_math_test.cpp)
target_link_libraries(unit_train_engine PRIVATE assay_train_wire gloo GTest::gtest_main)
gtest_discover_tests(unit_train_engine PROPERTIES LABELS unit)

add_executable(unit_train_step unit/train/train_step_process_test.cpp)
target_link_libraries(unit_train_step PRIVATE assay_core GTest::gtest_main)
target_compile_definitions(unit_train_step PRIVATE TRAIN_STEP="$<TARGET_FILE:train_step>" TRAIN_STEP_RANK="$<TARGET_FILE:train_step_rank>")
add_dependencies(unit_train_step train_step train_step_rank)
gtest_discover_tests(unit_train_step PROPERTIES LABELS unit)
