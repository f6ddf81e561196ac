add_executable(unit_formats unit/formats/formats_test.cpp)
target_link_libraries(unit_formats PRIVATE assay_judge GTest::gtest_main)
target_compile_definitions(unit_formats PRIVATE FORMATS_DOCUMENT="${CMAKE_SOURCE_DIR}/docs/FORMATS.md"
  PROFILE_SCHEMA="${CMAKE_SOURCE_DIR}/profiles/schemas/schema.json" RECORD_SCHEMA="${CMAKE_SOURCE_DIR}/profiles/schemas/record.schema.json")
gtest_discover_tests(unit_formats PROPERTIES LABELS unit)
