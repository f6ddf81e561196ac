add_executable(unit_import unit/import/import_test.cpp unit/import/import_refusal_test.cpp unit/import/compare_test.cpp
  unit/import/storage_tools_test.cpp unit/import/mlperf_training_test.cpp unit/import/energy_table_test.cpp)
target_link_libraries(unit_import PRIVATE assay_import GTest::gtest_main)
target_compile_definitions(unit_import PRIVATE ASSAY_GOLDEN="${CMAKE_CURRENT_SOURCE_DIR}/golden/imports")
gtest_discover_tests(unit_import NO_PRETTY_VALUES PROPERTIES LABELS unit)
