# The yardstick of the GPU probes, run by hand with side_by_side.py on a machine that has a GPU and cuBLASLt.
if(ASSAY_WITH_CUDA AND TARGET CUDA::cublasLt)
  add_executable(gpu_loop performance/gpu_loop.cpp)
  target_compile_options(gpu_loop PRIVATE -O3)
  target_link_libraries(gpu_loop PRIVATE assay_core CUDA::cudart_static CUDA::cublasLt)
  special(performance gpu_loop)
endif()
