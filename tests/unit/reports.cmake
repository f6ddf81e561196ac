# The rooms of reports/.
add_library(run_fixture STATIC unit/run_fixture.cpp)
target_link_libraries(run_fixture PUBLIC assay_judge)
# For end-to-end tests that need a run without running anything.
add_executable(make_run unit/make_run.cpp)
target_link_libraries(make_run PRIVATE run_fixture)
add_executable(unit_dossier unit/dossier/canonical_json_test.cpp unit/dossier/dsse_test.cpp unit/dossier/manifest_test.cpp
  unit/dossier/dossier_test.cpp unit/dossier/large_evidence_test.cpp unit/dossier/dishonest_signer_test.cpp unit/dossier/sign_test.cpp
  unit/dossier/closed_dossier_test.cpp unit/dossier/expectations_test.cpp unit/dossier/private_key_test.cpp
  unit/dossier/simulation_dossier_test.cpp unit/dossier/trust_test.cpp)
add_executable(unit_page unit/page/report_test.cpp unit/page/content_test.cpp unit/page/pdf_test.cpp)
add_executable(unit_figures unit/figures/charts_test.cpp unit/figures/fault_chart_test.cpp unit/figures/training_chart_test.cpp unit/figures/network_curves_test.cpp unit/figures/power_figures_test.cpp unit/figures/power_curves_test.cpp)
add_executable(unit_nightly unit/nightly/nights_test.cpp unit/nightly/exports_test.cpp)
target_link_libraries(unit_nightly PRIVATE assay_nightly)
foreach(room dossier page figures nightly)
  target_link_libraries(unit_${room} PRIVATE assay_dossier run_fixture GTest::gtest_main)
  target_compile_definitions(unit_${room} PRIVATE ASSAY_GOLDEN="${CMAKE_CURRENT_SOURCE_DIR}/golden")
  gtest_discover_tests(unit_${room} PROPERTIES LABELS unit)
endforeach()
