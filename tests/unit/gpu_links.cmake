# Memory and links of GPUs, as far as they need no GPU.
add_executable(unit_gpu_links unit/cuda/gpu_memory_test.cpp unit/cuda/gpu_links_test.cpp)
target_link_libraries(unit_gpu_links PRIVATE assay_links GTest::gtest_main)
gtest_discover_tests(unit_gpu_links PROPERTIES LABELS unit)
