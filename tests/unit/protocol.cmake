add_executable(unit_protocol unit/wire/protocol_test.cpp unit/launch/launch_ssh_test.cpp unit/launch/launch_words_test.cpp)
target_link_libraries(unit_protocol PRIVATE assay_orchestrator GTest::gtest_main)
gtest_discover_tests(unit_protocol PROPERTIES LABELS unit)
