# Tests on a cluster of namespaces. They need root; where that or anything else is missing they skip and say what it is.
foreach(area cluster)
  add_test(NAME cluster.${area} COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/cluster/${area}_test.py)
  set_tests_properties(cluster.${area} PROPERTIES LABELS cluster SKIP_RETURN_CODE 77 TIMEOUT 300
    ENVIRONMENT "ASSAY_E2E=${CMAKE_BINARY_DIR}/e2e;PYTHONDONTWRITEBYTECODE=1;PYTHONPATH=${CMAKE_CURRENT_SOURCE_DIR}/e2e")
endforeach()
