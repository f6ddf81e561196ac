add_executable(unit_gpu unit/gpu_choice_test.cpp unit/library_test.cpp)
target_link_libraries(unit_gpu PRIVATE assay_gpu GTest::gtest_main)
# A library to open and to miss functions in.
add_library(fake_library SHARED fakes/fake_library.cpp)
target_link_libraries(fake_library PRIVATE assay_flags)
set_target_properties(fake_library PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/fakes/library)
target_compile_definitions(unit_gpu PRIVATE ASSAY_FAKE_LIBRARIES="${CMAKE_CURRENT_BINARY_DIR}/fakes/library")
add_dependencies(unit_gpu fake_library)
gtest_discover_tests(unit_gpu PROPERTIES LABELS unit)
