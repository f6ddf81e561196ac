# Two runs side by side.
add_executable(unit_compare unit/compare/rank_test_test.cpp unit/compare/comparison_test.cpp)
target_link_libraries(unit_compare PRIVATE assay_compare run_fixture GTest::gtest_main)
gtest_discover_tests(unit_compare PROPERTIES LABELS unit)
foreach(area compare exports printed)
  add_test(NAME e2e.${area} COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/e2e/${area}_test.py)
  set_tests_properties(e2e.${area} PROPERTIES LABELS e2e TIMEOUT 900 ENVIRONMENT
    "ASSAY=$<TARGET_FILE:assay>;ASSAY_REPORT=$<TARGET_FILE:assay-report>;MAKE_RUN=$<TARGET_FILE:make_run>;PYTHONDONTWRITEBYTECODE=1")
endforeach()
# A run in the formats of other programs, and the published schemas.
add_executable(unit_exports unit/exports/exports_test.cpp unit/exports/schemas_test.cpp)
target_link_libraries(unit_exports PRIVATE assay_exports assay_profiles run_fixture GTest::gtest_main)
gtest_discover_tests(unit_exports PROPERTIES LABELS unit)
