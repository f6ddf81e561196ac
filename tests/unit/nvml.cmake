add_executable(unit_nvml unit/nvml/nvml_test.cpp unit/nvml/gpu_watch_test.cpp unit/nvml/gpu_health_test.cpp)
target_link_libraries(unit_nvml PRIVATE assay_nvml health_facts GTest::gtest_main)
target_compile_definitions(unit_nvml PRIVATE FAKE_NVML="$<TARGET_FILE:fake_nvml>" FAKE_NVML_STATES="${CMAKE_CURRENT_SOURCE_DIR}/fakes/nvml"
  HEALTH_GPU="$<TARGET_FILE:health_gpu>" HEALTH_INVENTORY="$<TARGET_FILE:health_inventory>" POWER_SAMPLER="$<TARGET_FILE:power_sampler>")
add_dependencies(unit_nvml fake_nvml health_gpu health_inventory power_sampler)
gtest_discover_tests(unit_nvml PROPERTIES LABELS unit)

# The contract of every probe that asks NVML, on a made-up node: without a driver only their skips are seen.
foreach(probe health_gpu power_sampler)
  add_test(NAME contract.${probe}_simulated COMMAND contract_test $<TARGET_FILE:${probe}>)
  set_tests_properties(contract.${probe}_simulated PROPERTIES LABELS contract
    ENVIRONMENT "LD_LIBRARY_PATH=$<TARGET_FILE_DIR:fake_nvml>;ASSAY_FAKE_NVML=${CMAKE_CURRENT_SOURCE_DIR}/fakes/nvml/healthy.json")
endforeach()

# A node that warms up, whose load is switched, and whose limits are watched: its machine and its GPUs are made up.
add_executable(unit_soak unit/power/steadiness_test.cpp unit/power/thermal_soak_test.cpp unit/power/step_watch_test.cpp unit/power/power_cap_test.cpp
  unit/power/load_engine_test.cpp unit/power/load_bank_test.cpp)
target_link_libraries(unit_soak PRIVATE power_steadiness power_step_watch power_load power_told GTest::gtest_main)
target_compile_definitions(unit_soak PRIVATE FAKE_NVML="$<TARGET_FILE:fake_nvml>" FAKE_NVML_STATES="${CMAKE_CURRENT_SOURCE_DIR}/fakes/nvml"
  THERMAL_SOAK="$<TARGET_FILE:thermal_soak>" POWER_CAP="$<TARGET_FILE:power_cap>" LOAD_BANK="$<TARGET_FILE:load_bank>")
add_dependencies(unit_soak fake_nvml thermal_soak power_cap load_bank)
gtest_discover_tests(unit_soak PROPERTIES LABELS unit)
