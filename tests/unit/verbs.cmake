add_executable(unit_verbs unit/verbs/verbs_facts_test.cpp unit/verbs/verbs_messages_test.cpp unit/verbs/verbs_affinity_test.cpp)
target_link_libraries(unit_verbs PRIVATE assay_verbs_facts GTest::gtest_main)
gtest_discover_tests(unit_verbs PROPERTIES LABELS unit)

if(TARGET verbs_bandwidth)
  # add_fake(TARGET NAME FOLDER SOURCE): a library under the name that the probes open.
  function(add_fake target name folder source)
    add_library(${target} SHARED ${source})
    target_link_libraries(${target} PRIVATE assay_flags ${CMAKE_DL_LIBS})
    target_include_directories(${target} SYSTEM PRIVATE ${ASSAY_VERBS_INCLUDE})
    set_target_properties(${target} PROPERTIES PREFIX "" OUTPUT_NAME ${name} SUFFIX .so.1
      LIBRARY_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/fakes/${folder})
  endfunction()
  add_fake(fake_verbs libibverbs verbs fakes/fake_verbs.cpp)
  add_fake(fake_cuda libcuda cuda fakes/fake_cuda.cpp)
  # The same before they knew of dma-buf, and libraries that have none of the functions.
  add_fake(fake_verbs_without_dmabuf libibverbs verbs/no_dmabuf fakes/fake_verbs.cpp)
  add_fake(fake_cuda_without_dmabuf libcuda cuda/no_dmabuf fakes/fake_cuda.cpp)
  target_compile_definitions(fake_verbs_without_dmabuf PRIVATE ASSAY_WITHOUT_DMABUF)
  target_compile_definitions(fake_cuda_without_dmabuf PRIVATE ASSAY_WITHOUT_DMABUF)
  add_fake(old_verbs libibverbs old_verbs fakes/fake_library.cpp)
  add_fake(old_cuda libcuda old_cuda fakes/fake_library.cpp)
  add_executable(unit_verbs_process unit/verbs/verbs_process_test.cpp unit/verbs/verbs_gpu_test.cpp)
  target_link_libraries(unit_verbs_process PRIVATE assay_core GTest::gtest_main)
  target_compile_definitions(unit_verbs_process PRIVATE
    VERBS_BANDWIDTH="$<TARGET_FILE:verbs_bandwidth>" VERBS_LATENCY="$<TARGET_FILE:verbs_latency>" VERBS_TRAFFIC="$<TARGET_FILE:verbs_traffic>"
    VERBS_PORT="$<TARGET_FILE:verbs_port>"
    ASSAY_FAKE_VERBS_FOLDER="${CMAKE_CURRENT_BINARY_DIR}/fakes/verbs"
    ASSAY_FAKE_CUDA_FOLDER="${CMAKE_CURRENT_BINARY_DIR}/fakes/cuda"
    ASSAY_OLD_CUDA_FOLDER="${CMAKE_CURRENT_BINARY_DIR}/fakes/old_cuda"
    ASSAY_OLD_VERBS_FOLDER="${CMAKE_CURRENT_BINARY_DIR}/fakes/old_verbs")
  add_dependencies(unit_verbs_process fake_verbs fake_cuda fake_verbs_without_dmabuf fake_cuda_without_dmabuf old_verbs
    old_cuda verbs_bandwidth verbs_latency verbs_traffic verbs_port)
  gtest_discover_tests(unit_verbs_process PROPERTIES LABELS unit)
  add_executable(unit_peer_verbs unit/workloads/peer_verbs_test.cpp)
  target_link_libraries(unit_peer_verbs PRIVATE assay_cluster_checkpoint GTest::gtest_main)
  target_compile_definitions(unit_peer_verbs PRIVATE ASSAY_FAKE_VERBS_FOLDER="${CMAKE_CURRENT_BINARY_DIR}/fakes/verbs")
  add_dependencies(unit_peer_verbs fake_verbs)
  gtest_discover_tests(unit_peer_verbs PROPERTIES LABELS unit)
endif()
