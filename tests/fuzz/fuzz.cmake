# fuzz_target(NAME LIBRARY): NAME_fuzz.cpp with the driver; NAME's seeds lie in seeds/NAME. The number of inputs is fixed.
set(ASSAY_FUZZ_INPUTS 20000 CACHE STRING "Mutated inputs for each fuzz target")
function(fuzz_target name library)
  add_executable(fuzz_${name} fuzz/${name}_fuzz.cpp fuzz/driver.cpp)
  target_link_libraries(fuzz_${name} PRIVATE ${library})
  add_test(NAME fuzz.${name} COMMAND fuzz_${name} ${CMAKE_CURRENT_SOURCE_DIR}/fuzz/seeds/${name} ${ASSAY_FUZZ_INPUTS})
  set_tests_properties(fuzz.${name} PROPERTIES LABELS fuzz)
endfunction()

fuzz_target(record assay_core)
fuzz_target(profile assay_plan)
fuzz_target(site assay_plan)
