# The slurm and kubernetes launchers without Slurm and Kubernetes: fakes that start the real agent on this machine.
add_executable(e2e_dial e2e/dial_test.cpp)
target_link_libraries(e2e_dial PRIVATE assay_launch GTest::gtest_main)
target_compile_definitions(e2e_dial PRIVATE ASSAY_NODE="$<TARGET_FILE:assay-node>" UNRULY="$<TARGET_FILE:unruly>"
  FAKES="${CMAKE_CURRENT_SOURCE_DIR}/fakes")
add_dependencies(e2e_dial assay-node unruly)
gtest_discover_tests(e2e_dial PROPERTIES LABELS e2e)
