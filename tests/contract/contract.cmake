# The contract of every probe that asks NVML, on a made-up node: without a driver only their skips are seen.
foreach(probe health_gpu power_sampler)
  add_test(NAME contract.${probe}_simulated COMMAND contract_test $<TARGET_FILE:${probe}>)
  set_tests_properties(contract.${probe}_simulated PROPERTIES LABELS contract
    ENVIRONMENT "LD_LIBRARY_PATH=$<TARGET_FILE_DIR:fake_nvml>;ASSAY_FAKE_NVML=${CMAKE_CURRENT_SOURCE_DIR}/fakes/nvml/healthy.json")
endforeach()
# Every probe of AMD GPUs on two made-up ones.
set(amd_node "ASSAY_FAKE_AMDHIP=gpus=2 memory=96 slow=20" "ASSAY_FAKE_AMD_SMI={\"count\": 2, \"gpu\": {\"cache_kb\": 64}}")
list(APPEND amd_node
  "ASSAY_LIBRARY_PATH=$<TARGET_FILE_DIR:fake_amdhip64>:$<TARGET_FILE_DIR:fake_amd_smi_26>:$<TARGET_FILE_DIR:fake_rccl>")
function(amd_contract probe)
  add_test(NAME contract.${probe}_simulated COMMAND contract_test $<TARGET_FILE:${probe}> ${ARGN})
  set_tests_properties(contract.${probe}_simulated PROPERTIES LABELS contract ENVIRONMENT "${amd_node}")
endfunction()
amd_contract(health_amd)
amd_contract(rccl_collective)
amd_contract(amd_gemm --m=16 --n=16 --k=128 --sample-length=10ms --trials=1)
amd_contract(amd_hbm_bandwidth --size=1MiB --slice=1MiB --passes=0 --min-samples=2 --max-samples=2 --warmup-limit=0s)
amd_contract(amd_host_link --size=1MiB)
amd_contract(amd_peer_bandwidth --size=1MiB)
