# An installation with the probes of GPUs by NVML alone, judged on made-up nodes.
set(gpu_installation ${CMAKE_BINARY_DIR}/e2e_gpu)
add_custom_command(OUTPUT ${gpu_installation}/stamp
  COMMAND ${CMAKE_COMMAND} -E make_directory ${gpu_installation}/bin ${gpu_installation}/libexec/assay/probes
  COMMAND ${CMAKE_COMMAND} -E copy_if_different $<TARGET_FILE:assay> $<TARGET_FILE:assay-node> $<TARGET_FILE:assay-report>
    ${gpu_installation}/bin
  COMMAND ${CMAKE_COMMAND} -E copy_if_different $<TARGET_FILE:health_gpu> $<TARGET_FILE:gpu_attestation>
    ${gpu_installation}/libexec/assay/probes
  COMMAND ${CMAKE_COMMAND} -E touch ${gpu_installation}/stamp
  DEPENDS assay assay-node assay-report health_gpu gpu_attestation)
add_custom_target(e2e_gpu_installation ALL DEPENDS ${gpu_installation}/stamp)

find_package(Python3 3.9 REQUIRED COMPONENTS Interpreter)
foreach(name gpu_health gpu_attestation)
  add_test(NAME e2e.${name} COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/e2e/${name}_test.py)
  set_tests_properties(e2e.${name} PROPERTIES LABELS e2e SKIP_RETURN_CODE 77 TIMEOUT 900
    ENVIRONMENT "ASSAY_E2E=${gpu_installation};ASSAY_FAKE_NVML_LIBRARY=$<TARGET_FILE:fake_nvml>;PYTHONDONTWRITEBYTECODE=1")
endforeach()

# The same of AMD: every probe of its GPUs, and made-up libraries that a test puts where the agent looks for those of a bundle.
set(amd_installation ${CMAKE_BINARY_DIR}/e2e_amd)
set(amd_probes health_amd amd_gemm amd_hbm_bandwidth amd_host_link amd_peer_bandwidth rccl_collective)
list(TRANSFORM amd_probes REPLACE "(.+)" "$<TARGET_FILE:\\1>" OUTPUT_VARIABLE amd_programs)
add_custom_command(OUTPUT ${amd_installation}/stamp
  COMMAND ${CMAKE_COMMAND} -E make_directory ${amd_installation}/bin ${amd_installation}/libexec/assay/probes
  COMMAND ${CMAKE_COMMAND} -E copy_if_different $<TARGET_FILE:assay> $<TARGET_FILE:assay-node> $<TARGET_FILE:assay-report>
    ${amd_installation}/bin
  COMMAND ${CMAKE_COMMAND} -E copy_if_different ${amd_programs} ${amd_installation}/libexec/assay/probes
  COMMAND ${CMAKE_COMMAND} -E touch ${amd_installation}/stamp
  DEPENDS assay assay-node assay-report ${amd_probes})
add_custom_target(e2e_amd_installation ALL DEPENDS ${amd_installation}/stamp)
set(amd_fakes fake_amdhip64 fake_hiprtc fake_hipblaslt fake_rccl fake_amd_smi_26 fake_amd_smi_25)
list(TRANSFORM amd_fakes REPLACE "(.+)" "$<TARGET_FILE:\\1>" OUTPUT_VARIABLE amd_libraries)
string(REPLACE ";" ":" amd_libraries "${amd_libraries}")
add_test(NAME e2e.amd_node COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/e2e/amd_node_test.py)
add_test(NAME e2e.amd_node_of_eight COMMAND ${CMAKE_COMMAND} -E env ASSAY_WHOLE_NODE=1 $<TARGET_FILE:Python3::Interpreter>
  ${CMAKE_CURRENT_SOURCE_DIR}/e2e/amd_node_test.py -k a_healthy_node CONFIGURATIONS cluster)
set_tests_properties(e2e.amd_node e2e.amd_node_of_eight PROPERTIES LABELS e2e SKIP_RETURN_CODE 77 TIMEOUT 900
  ENVIRONMENT "ASSAY_E2E=${amd_installation};ASSAY_FAKE_AMD=${amd_libraries};PYTHONDONTWRITEBYTECODE=1")
set_tests_properties(e2e.amd_node_of_eight PROPERTIES LABELS "e2e;cluster")
