# The profiles against the probes of this build: what they ask must be what the probes say of themselves.
add_executable(unit_profiles unit/profiles/profiles_test.cpp unit/profiles/catalogue_test.cpp unit/profiles/profiles_simulated_test.cpp
  unit/profiles/gpu_limits_test.cpp)
target_link_libraries(unit_profiles PRIVATE assay_simulate GTest::gtest_main)
target_compile_definitions(unit_profiles PRIVATE ASSAY_PROBES="${CMAKE_BINARY_DIR}/${ASSAY_PROBE_DIR}"
  ASSAY_CATALOGUE="${CMAKE_SOURCE_DIR}/profiles/probes.json"
  ASSAY_TYPICAL="${CMAKE_CURRENT_SOURCE_DIR}/unit/profiles/typical_gpu_figures.json")
get_property(every_probe GLOBAL PROPERTY ASSAY_PROBES)
add_dependencies(unit_profiles ${every_probe})
# Fleets are simulated and judged here: the linker takes templates of the tests for those of the libraries, and they shall be as fast.
target_compile_options(unit_profiles PRIVATE -O1)
gtest_discover_tests(unit_profiles PROPERTIES LABELS unit)
