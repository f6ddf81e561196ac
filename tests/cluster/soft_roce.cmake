# The RDMA probes on two emulated machines: `ctest --preset dev -C softroce -L softroce`. Too slow for every run, so it is in a
# configuration of its own, which the default run leaves out.
find_package(Python3 3.9 REQUIRED COMPONENTS Interpreter)
if(TARGET verbs_bandwidth)
  add_test(NAME cluster.soft_roce COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/cluster/soft_roce_test.py CONFIGURATIONS softroce)
  set_tests_properties(cluster.soft_roce PROPERTIES LABELS softroce SKIP_RETURN_CODE 77 TIMEOUT 5400 RUN_SERIAL ON
    ENVIRONMENT "ASSAY_E2E=${CMAKE_BINARY_DIR};PYTHONDONTWRITEBYTECODE=1")
endif()
# Memory nodes of one emulated machine, and the same machines as above at Open vSwitch.
foreach(what memory_guest switched_guests)
  add_test(NAME cluster.${what} COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/cluster/${what}_test.py CONFIGURATIONS softroce)
endforeach()
set_tests_properties(cluster.memory_guest cluster.switched_guests PROPERTIES LABELS softroce SKIP_RETURN_CODE 77 TIMEOUT 2400 RUN_SERIAL ON
  ENVIRONMENT "ASSAY_E2E=${CMAKE_BINARY_DIR};PYTHONDONTWRITEBYTECODE=1")
