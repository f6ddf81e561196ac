# Nightly sweeps and drains from the outside, with the installation of accept.cmake.
find_package(Python3 3.9 REQUIRED COMPONENTS Interpreter)
add_library(nightly_network_disk MODULE e2e/nightly_network_disk.cpp)
foreach(area sweep sweep_files nightly_collect nightly_install drain history night_exports tables)
  add_test(NAME e2e.${area} COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/e2e/${area}_test.py)
  set_tests_properties(e2e.${area} PROPERTIES LABELS e2e SKIP_RETURN_CODE 77 TIMEOUT 900
    ENVIRONMENT "ASSAY_E2E=${CMAKE_BINARY_DIR}/e2e;NETWORK_DISK=$<TARGET_FILE:nightly_network_disk>;PYTHONDONTWRITEBYTECODE=1")
endforeach()
