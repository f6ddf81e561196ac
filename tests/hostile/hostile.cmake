# An enemy on a node, on the network, on the head or behind a file, against the real binaries: the rows (docs/ATTACKS.md) beside those
# of the dossier. What takes minutes, gigabytes or thousands of sockets runs with `ctest -C hostile -L attacks`.
find_package(Python3 3.9 REQUIRED COMPONENTS Interpreter)
foreach(area agent node rendezvous text user)
  add_test(NAME hostile.${area} COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/hostile/${area}_test.py)
endforeach()
foreach(area flood listener node_long reader)
  add_test(NAME hostile.${area} COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/hostile/${area}_test.py CONFIGURATIONS hostile)
endforeach()
set_tests_properties(hostile.agent hostile.node hostile.rendezvous hostile.text hostile.user PROPERTIES LABELS hostile)
set_tests_properties(hostile.flood hostile.listener hostile.node_long hostile.reader PROPERTIES LABELS "hostile;attacks")
foreach(area agent flood listener node node_long reader rendezvous text user)
  set_tests_properties(hostile.${area} PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 900 ENVIRONMENT
    "ASSAY_E2E=${CMAKE_BINARY_DIR}/e2e;ASSAY=$<TARGET_FILE:assay>;ASSAY_REPORT=$<TARGET_FILE:assay-report>;\
MAKE_RUN=$<TARGET_FILE:make_run>;PYTHONDONTWRITEBYTECODE=1")
endforeach()
