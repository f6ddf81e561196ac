add_executable(unit_portable_math unit/core/portable_math_test.cpp)
target_link_libraries(unit_portable_math PRIVATE assay_core GTest::gtest_main)
target_compile_definitions(unit_portable_math PRIVATE ASSAY_SOURCE="${CMAKE_SOURCE_DIR}")
gtest_discover_tests(unit_portable_math PROPERTIES LABELS unit)
