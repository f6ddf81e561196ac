# Nightly sweeps: who is visited, what is measured, what is drained.
add_executable(unit_sweep unit/sweep/due_test.cpp unit/sweep/choice_test.cpp unit/sweep/outcome_test.cpp unit/sweep/files_test.cpp
  unit/sweep/jobs_test.cpp unit/sweep/pairs_test.cpp)
target_link_libraries(unit_sweep PRIVATE assay_sweep GTest::gtest_main)
add_executable(unit_drain unit/drain/decide_test.cpp unit/drain/apply_test.cpp)
target_link_libraries(unit_drain PRIVATE assay_drain GTest::gtest_main)
foreach(room sweep drain)
  gtest_discover_tests(unit_${room} PROPERTIES LABELS unit)
endforeach()
