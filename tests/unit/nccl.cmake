add_executable(fake_rank fakes/fake_rank.cpp)
target_link_libraries(fake_rank PRIVATE assay_flags)

add_executable(unit_nccl unit/nccl/nccl_arithmetic_test.cpp unit/nccl/nccl_log_test.cpp unit/nccl/nccl_ranks_test.cpp unit/nccl/nccl_conductor_test.cpp
  unit/nccl/watched_ranks_test.cpp)
target_link_libraries(unit_nccl PRIVATE assay_nccl GTest::gtest_main)
target_compile_definitions(unit_nccl PRIVATE ASSAY_GOLDEN="${CMAKE_CURRENT_SOURCE_DIR}/golden" ASSAY_FAKE_RANK="$<TARGET_FILE:fake_rank>")
add_dependencies(unit_nccl fake_rank)
gtest_discover_tests(unit_nccl PROPERTIES LABELS unit)

if(TARGET nccl_collective)
  add_executable(unit_nccl_process unit/nccl/nccl_process_test.cpp)
  target_link_libraries(unit_nccl_process PRIVATE assay_core GTest::gtest_main)
  target_compile_definitions(unit_nccl_process PRIVATE ASSAY_NCCL_COLLECTIVE="$<TARGET_FILE:nccl_collective>")
  add_dependencies(unit_nccl_process nccl_collective)
  gtest_discover_tests(unit_nccl_process PROPERTIES LABELS unit)
endif()
