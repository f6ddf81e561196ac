add_executable(unit_host unit/host/host_gemm_test.cpp unit/host/host_memory_test.cpp unit/host/host_crew_test.cpp unit/host/base_clock_test.cpp unit/host/blas_kernels_test.cpp)
target_link_libraries(unit_host PRIVATE assay_host GTest::gtest_main)
gtest_discover_tests(unit_host PROPERTIES LABELS unit)
