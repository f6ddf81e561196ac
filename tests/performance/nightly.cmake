# False flags, nights to a flag, time and memory of the detector of nightly sweeps; docs/PERFORMANCE.md has what came out.
add_executable(nightly performance/nightly.cpp)
target_link_libraries(nightly PRIVATE assay_history assay_rehearse)
target_compile_options(nightly PRIVATE -O2)
special(months nightly)
# They take some ten minutes of two cores, so they are in a configuration of their own: ctest --preset release -C months -L months.
find_package(Python3 3.9 REQUIRED COMPONENTS Interpreter)
add_test(NAME performance.months COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/performance/months_test.py CONFIGURATIONS months)
set_tests_properties(performance.months PROPERTIES LABELS months TIMEOUT 2400 RUN_SERIAL TRUE FIXTURES_REQUIRED special_months
  ENVIRONMENT "NIGHTLY=$<TARGET_FILE:nightly>;PYTHONDONTWRITEBYTECODE=1")
