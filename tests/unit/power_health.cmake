add_executable(unit_power_health unit/power/rapl_test.cpp unit/health/smbios_test.cpp unit/health/machine_test.cpp unit/health/inventory_test.cpp
  unit/health/drive_test.cpp unit/health/links_test.cpp unit/health/limits_test.cpp)
target_link_libraries(unit_power_health PRIVATE power_instruments health_facts GTest::gtest_main)
target_compile_definitions(unit_power_health PRIVATE
  POWER_SAMPLER="$<TARGET_FILE:power_sampler>" HEALTH_INVENTORY="$<TARGET_FILE:health_inventory>"
  HEALTH_DRIVE="$<TARGET_FILE:health_drive>" HEALTH_LINKS="$<TARGET_FILE:health_links>"
  HEALTH_LIMITS="$<TARGET_FILE:health_limits>")
add_dependencies(unit_power_health power_sampler health_inventory health_drive health_links health_limits)
gtest_discover_tests(unit_power_health PROPERTIES LABELS unit)
