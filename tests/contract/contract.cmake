# The contract of every probe that asks NVML, on a made-up node: without a driver only their skips are seen.
foreach(probe health_gpu power_sampler)
  add_test(NAME contract.${probe}_simulated COMMAND contract_test $<TARGET_FILE:${probe}>)
  set_tests_properties(contract.${probe}_simulated PROPERTIES LABELS contract
    ENVIRONMENT "LD_LIBRARY_PATH=$<TARGET_FILE_DIR:fake_nvml>;ASSAY_FAKE_NVML=${CMAKE_CURRENT_SOURCE_DIR}/fakes/nvml/healthy.json")
endforeach()
# The same of AMD SMI.
add_test(NAME contract.health_amd_simulated COMMAND contract_test $<TARGET_FILE:health_amd>)
set_tests_properties(contract.health_amd_simulated PROPERTIES LABELS contract
  ENVIRONMENT "ASSAY_LIBRARY_PATH=$<TARGET_FILE_DIR:fake_amd_smi_26>")
# The same of RCCL between two made-up GPUs.
add_test(NAME contract.rccl_collective_simulated COMMAND contract_test $<TARGET_FILE:rccl_collective>)
set_tests_properties(contract.rccl_collective_simulated PROPERTIES LABELS contract ENVIRONMENT
  "ASSAY_LIBRARY_PATH=$<TARGET_FILE_DIR:fake_amdhip64>:$<TARGET_FILE_DIR:fake_amd_smi_26>:$<TARGET_FILE_DIR:fake_rccl>;ASSAY_FAKE_AMDHIP=gpus=2 memory=64")
