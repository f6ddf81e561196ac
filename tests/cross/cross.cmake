# The same bytes from x86-64 and aarch64: `ctest --preset dev -C aarch64 -L aarch64`. It builds assay a second time, so it is in a
# configuration of its own, which the default run leaves out.
add_test(NAME cross.aarch64 COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/cross/aarch64 CONFIGURATIONS aarch64)
set_tests_properties(cross.aarch64 PROPERTIES LABELS aarch64 SKIP_RETURN_CODE 77 TIMEOUT 5400 RUN_SERIAL ON
  ENVIRONMENT "ASSAY_BUILD=${CMAKE_BINARY_DIR}")
# A site of an x86-64 and an aarch64 node, the second emulated.
add_test(NAME cross.two_machines COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/cross/two_machines.py CONFIGURATIONS aarch64)
set_tests_properties(cross.two_machines PROPERTIES LABELS aarch64 SKIP_RETURN_CODE 77 TIMEOUT 5400 RUN_SERIAL ON
  ENVIRONMENT "ASSAY_BUILD=${CMAKE_BINARY_DIR};PYTHONDONTWRITEBYTECODE=1")
