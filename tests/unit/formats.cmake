add_executable(unit_formats unit/formats/formats_test.cpp)
target_link_libraries(unit_formats PRIVATE assay_core GTest::gtest_main)
target_compile_definitions(unit_formats PRIVATE FORMATS_DOCUMENT="${CMAKE_SOURCE_DIR}/docs/FORMATS.md")
gtest_discover_tests(unit_formats PROPERTIES LABELS unit)
