# The RDMA probes of this build on nodes without an adapter. The build tree is the installation.
if(TARGET verbs_bandwidth)
  find_package(Python3 3.9 REQUIRED COMPONENTS Interpreter)
  add_test(NAME e2e.verbs COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/e2e/verbs_test.py)
  set_tests_properties(e2e.verbs PROPERTIES LABELS "e2e;cluster" SKIP_RETURN_CODE 77 TIMEOUT 900
    ENVIRONMENT "ASSAY_E2E=${CMAKE_BINARY_DIR};PYTHONDONTWRITEBYTECODE=1")
endif()
