add_executable(unit_verbs unit/verbs_facts_test.cpp unit/verbs_messages_test.cpp)
target_link_libraries(unit_verbs PRIVATE assay_verbs_facts GTest::gtest_main)
gtest_discover_tests(unit_verbs PROPERTIES LABELS unit)

if(TARGET verbs_bandwidth)
  # fake_verbs carries the name that the probes open; old_verbs does, too, and has none of the functions.
  add_library(fake_verbs SHARED fakes/fake_verbs.cpp)
  target_link_libraries(fake_verbs PRIVATE assay_flags)
  target_include_directories(fake_verbs SYSTEM PRIVATE ${ASSAY_VERBS_INCLUDE})
  set_target_properties(fake_verbs PROPERTIES PREFIX "" OUTPUT_NAME libibverbs SUFFIX .so.1
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/fakes/verbs)
  add_library(old_verbs SHARED fakes/fake_library.cpp)
  target_link_libraries(old_verbs PRIVATE assay_flags)
  set_target_properties(old_verbs PROPERTIES PREFIX "" OUTPUT_NAME libibverbs SUFFIX .so.1
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/fakes/old_verbs)
  add_executable(unit_verbs_process unit/verbs_process_test.cpp)
  target_link_libraries(unit_verbs_process PRIVATE assay_core GTest::gtest_main)
  target_compile_definitions(unit_verbs_process PRIVATE
    VERBS_BANDWIDTH="$<TARGET_FILE:verbs_bandwidth>" VERBS_LATENCY="$<TARGET_FILE:verbs_latency>" VERBS_PORT="$<TARGET_FILE:verbs_port>"
    ASSAY_FAKE_VERBS_FOLDER="${CMAKE_CURRENT_BINARY_DIR}/fakes/verbs"
    ASSAY_OLD_VERBS_FOLDER="${CMAKE_CURRENT_BINARY_DIR}/fakes/old_verbs")
  add_dependencies(unit_verbs_process fake_verbs old_verbs verbs_bandwidth verbs_latency verbs_port)
  gtest_discover_tests(unit_verbs_process PROPERTIES LABELS unit)
endif()
