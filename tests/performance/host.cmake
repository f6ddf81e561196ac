# Yardsticks of the host probes, run by hand with side_by_side.py; docs/PERFORMANCE.md says how and what came out.
find_package(OpenMP COMPONENTS CXX)
add_executable(openblas_loop performance/openblas_loop.cpp)
target_link_libraries(openblas_loop PRIVATE assay_core assay_openblas benchmark::benchmark)
target_compile_options(openblas_loop PRIVATE -O3)
set_target_properties(openblas_loop PROPERTIES CXX_CLANG_TIDY "")  # it takes what Google Benchmark keeps for a leak
if(OpenMP_CXX_FOUND)
  add_executable(stream_loop performance/stream_loop.cpp)
  target_link_libraries(stream_loop PRIVATE assay_core OpenMP::OpenMP_CXX)
  target_compile_options(stream_loop PRIVATE -O3)
  special(performance stream_loop)
  set_target_properties(stream_loop PROPERTIES CXX_CLANG_TIDY "")  # clang-tidy does not see GCC's omp.h
else()  # g++ brings it; a clang for the fuzz targets need not have it
  message(STATUS "OpenMP: not found; stream_loop, a yardstick, is left out")
endif()
add_executable(loaded_loop performance/loaded_loop.cpp)
target_link_libraries(loaded_loop PRIVATE assay_core)
target_compile_options(loaded_loop PRIVATE -O3)
# The yardstick of host_collective: collective.py.
add_executable(gloo_loop performance/gloo_loop.cpp)
target_compile_options(gloo_loop PRIVATE -O3)
target_link_libraries(gloo_loop PRIVATE assay_flags gloo)
# The training step's engine beside the same calls written down one after the other.
add_executable(train_loop performance/train_loop.cpp)
target_compile_options(train_loop PRIVATE -O3)
target_link_libraries(train_loop PRIVATE assay_train_engine)
special(performance openblas_loop loaded_loop gloo_loop train_loop)
