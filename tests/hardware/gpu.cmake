# Tests of accelerator probes. Each is a program hardware_NAME that takes the folder of the probes, so that a build tree can
# be carried to a machine without CMake and run there: see tests/hardware/README.md.
function(add_hardware_test name)
  add_executable(hardware_${name} hardware/${name}_test.cpp)
  target_link_libraries(hardware_${name} PRIVATE assay_core)
  if(NOT ASSAY_SANITIZE)
    target_link_options(hardware_${name} PRIVATE -static-libstdc++ -static-libgcc)
  endif()
  add_test(NAME hardware.contract.${name} COMMAND hardware_${name} ${CMAKE_BINARY_DIR}/${ASSAY_PROBE_DIR})
  set_tests_properties(hardware.contract.${name} PROPERTIES LABELS hardware SKIP_RETURN_CODE 77 RUN_SERIAL ON TIMEOUT 1800)
endfunction()

if(ASSAY_WITH_CUDA)
  add_hardware_test(gemm)
  if(TARGET nccl_collective)
    add_hardware_test(collective)
    target_link_libraries(hardware_collective PRIVATE assay_collective)
  endif()
endif()
