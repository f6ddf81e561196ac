# The detector of nightly sweeps, and their history.
add_executable(unit_drift unit/drift/drift_test.cpp unit/drift/detector_test.cpp
  unit/drift/holes_test.cpp unit/drift/pairs_test.cpp unit/drift/counters_test.cpp unit/drift/rehearsal_test.cpp)
target_link_libraries(unit_drift PRIVATE assay_simulate GTest::gtest_main)
add_executable(unit_history unit/history/history_test.cpp unit/history/packed_figures_test.cpp
  unit/history/sweep_of_run_test.cpp)
target_link_libraries(unit_history PRIVATE assay_history assay_simulate GTest::gtest_main)
foreach(room drift history)
  gtest_discover_tests(unit_${room} PROPERTIES LABELS unit)
endforeach()
