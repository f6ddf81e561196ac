# The agent on this machine, driven through the local launcher and by hand.
add_executable(unruly fakes/unruly.cpp)
target_link_libraries(unruly PRIVATE assay_flags)

add_executable(e2e_node e2e/node_test.cpp e2e/node_bare_test.cpp
  ${CMAKE_SOURCE_DIR}/orchestrator/node/process_tree.cpp)
target_link_libraries(e2e_node PRIVATE assay_launch GTest::gtest_main)
target_compile_definitions(e2e_node PRIVATE ASSAY_NODE="$<TARGET_FILE:assay-node>" UNRULY="$<TARGET_FILE:unruly>")
add_dependencies(e2e_node assay-node unruly)
gtest_discover_tests(e2e_node PROPERTIES LABELS e2e)
