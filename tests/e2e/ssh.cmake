# The agent on several "nodes": sshd instances on the loopback that the test starts itself.
add_executable(e2e_ssh e2e/ssh_test.cpp ${CMAKE_SOURCE_DIR}/orchestrator/node/process_tree.cpp)
target_link_libraries(e2e_ssh PRIVATE assay_launch GTest::gtest_main)
target_compile_definitions(e2e_ssh PRIVATE ASSAY_NODE="$<TARGET_FILE:assay-node>" UNRULY="$<TARGET_FILE:unruly>"
  SSH_NODES="${CMAKE_CURRENT_SOURCE_DIR}/cluster/ssh_nodes")
add_dependencies(e2e_ssh assay-node unruly)
# One test, because the sshd instances are shared by all cases; 77: sshd or ssh is not installed.
add_test(NAME e2e.ssh COMMAND e2e_ssh)
set_tests_properties(e2e.ssh PROPERTIES LABELS "e2e;cluster" SKIP_RETURN_CODE 77 TIMEOUT 900)
