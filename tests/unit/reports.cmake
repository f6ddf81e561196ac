add_library(run_fixture STATIC unit/run_fixture.cpp)
target_link_libraries(run_fixture PUBLIC assay_orchestrator)
# For end-to-end tests that need a run without running anything.
add_executable(make_run unit/make_run.cpp)
target_link_libraries(make_run PRIVATE run_fixture)
add_executable(unit_reports unit/dossier/canonical_json_test.cpp unit/dossier/dsse_test.cpp unit/dossier/manifest_test.cpp unit/dossier/dossier_test.cpp unit/page/report_test.cpp
  unit/dossier/simulation_dossier_test.cpp)
target_link_libraries(unit_reports PRIVATE assay_reports run_fixture GTest::gtest_main)
target_compile_definitions(unit_reports PRIVATE ASSAY_GOLDEN="${CMAKE_CURRENT_SOURCE_DIR}/golden")
gtest_discover_tests(unit_reports PROPERTIES LABELS unit)
add_executable(unit_charts unit/figures/charts_test.cpp unit/figures/network_curves_test.cpp)
target_link_libraries(unit_charts PRIVATE assay_reports GTest::gtest_main)
gtest_discover_tests(unit_charts PROPERTIES LABELS unit)
