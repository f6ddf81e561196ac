# The probe of the build tree, in environments with and without a choice of kernels.
find_package(Python3 3.9 REQUIRED COMPONENTS Interpreter)
add_test(NAME e2e.gemm_kernels COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/e2e/gemm_kernels_test.py)
set_tests_properties(e2e.gemm_kernels PROPERTIES LABELS e2e TIMEOUT 300 ENVIRONMENT "ASSAY_E2E=${CMAKE_BINARY_DIR};PYTHONDONTWRITEBYTECODE=1")
