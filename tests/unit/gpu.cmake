add_executable(unit_gpu unit/cuda/gpu_choice_test.cpp unit/cuda/library_test.cpp unit/cuda/gemm_arithmetic_test.cpp
  unit/cuda/patience_test.cpp unit/cuda/whole_test.cpp unit/cuda/algorithm_choice_test.cpp)
target_link_libraries(unit_gpu PRIVATE assay_cuda_driver GTest::gtest_main)
# A library to open and to miss functions in.
add_library(fake_library SHARED fakes/fake_library.cpp)
target_link_libraries(fake_library PRIVATE assay_flags)
set_target_properties(fake_library PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/fakes/library)
target_compile_definitions(unit_gpu PRIVATE ASSAY_FAKE_LIBRARIES="${CMAKE_CURRENT_BINARY_DIR}/fakes/library")
add_dependencies(unit_gpu fake_library)
gtest_discover_tests(unit_gpu PROPERTIES LABELS unit)

if(ASSAY_WITH_CUDA)
  # Neither driver nor GPU is needed: NVIDIA's headers on the host, and what a probe refuses before it looks for a GPU.
  add_executable(unit_cuda unit/cuda/quantise_test.cpp unit/cuda/cuda_gemm_test.cpp)
  target_link_libraries(unit_cuda PRIVATE assay_gpu CUDA::cudart_static GTest::gtest_main)
  target_compile_definitions(unit_cuda PRIVATE CUDA_GEMM="$<TARGET_FILE:cuda_gemm>")
  add_dependencies(unit_cuda cuda_gemm)
  gtest_discover_tests(unit_cuda PROPERTIES LABELS unit)
endif()
