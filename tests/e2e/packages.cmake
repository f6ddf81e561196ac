# Debian packages: `ctest -C packages -L packages`, after a whole build.
add_test(NAME e2e.packages
  COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/e2e/packages_test.py CONFIGURATIONS packages)
set_tests_properties(e2e.packages PROPERTIES LABELS packages TIMEOUT 2400
  ENVIRONMENT "ASSAY_BUILD=${CMAKE_BINARY_DIR};ASSAY_WITH_CUDA=${ASSAY_WITH_CUDA};PYTHONDONTWRITEBYTECODE=1")
