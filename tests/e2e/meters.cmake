# power_bmc, power_agreement and power_cap on a fake of the kernel's IPMI driver; power_feed against snmpd, ipmi_sim, a device of libmodbus and HTTPS services. What is not installed
# is a skip with its name. They take two minutes, so they are in a configuration of their own: ctest --preset dev -C meters -L meters.
find_package(Python3 3.9 REQUIRED COMPONENTS Interpreter)
find_path(ASSAY_MODBUS_INCLUDE modbus/modbus.h)
find_library(ASSAY_MODBUS_LIBRARY modbus)
find_path(ASSAY_OPENIPMI_INCLUDE OpenIPMI/mcserv.h)
set(meter_environment "POWER_FEED=$<TARGET_FILE:power_feed>" PYTHONDONTWRITEBYTECODE=1)
if(ASSAY_MODBUS_INCLUDE AND ASSAY_MODBUS_LIBRARY)
  add_executable(fake_modbus fakes/fake_modbus.cpp)
  target_link_libraries(fake_modbus PRIVATE ${ASSAY_MODBUS_LIBRARY})
  special(meters fake_modbus)
  list(APPEND meter_environment "FAKE_MODBUS=$<TARGET_FILE:fake_modbus>")
endif()
if(ASSAY_OPENIPMI_INCLUDE)
  add_library(fake_dcmi MODULE fakes/fake_dcmi.cpp)
  special(meters fake_dcmi)
  list(APPEND meter_environment "FAKE_DCMI=$<TARGET_FILE:fake_dcmi>")
endif()
add_library(fake_ipmi_device MODULE fakes/fake_ipmi_device.cpp)
special(meters fake_ipmi_device)
list(APPEND meter_environment "FAKE_IPMI_DEVICE=$<TARGET_FILE:fake_ipmi_device>" "POWER_BMC=$<TARGET_FILE:power_bmc>"
  "POWER_AGREEMENT=$<TARGET_FILE:power_agreement>" "POWER_CAP=$<TARGET_FILE:power_cap>")
add_test(NAME e2e.power_in_band COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/e2e/power_in_band_test.py
  CONFIGURATIONS meters)
set_tests_properties(e2e.power_in_band PROPERTIES FIXTURES_REQUIRED special_meters LABELS meters TIMEOUT 300 ENVIRONMENT "${meter_environment}")
add_test(NAME cluster.bmc_guest COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/cluster/bmc_guest_test.py CONFIGURATIONS meters)
set_tests_properties(cluster.bmc_guest PROPERTIES FIXTURES_REQUIRED special_meters LABELS "cluster;meters" SKIP_RETURN_CODE 77 TIMEOUT 900
  ENVIRONMENT "${meter_environment};ASSAY_E2E=${CMAKE_BINARY_DIR};PYTHONPATH=${CMAKE_CURRENT_SOURCE_DIR}/e2e")
add_test(NAME e2e.meters COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/e2e/meters_test.py CONFIGURATIONS meters)
set_tests_properties(e2e.meters PROPERTIES FIXTURES_REQUIRED special_meters LABELS meters TIMEOUT 300 ENVIRONMENT "${meter_environment}")

# The meters of a site during a run; the plant behind them is simulated by the test. It runs the build's own programs.
add_test(NAME e2e.site_meters COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/e2e/site_meters_test.py)
set_tests_properties(e2e.site_meters PROPERTIES LABELS "e2e;measures" SKIP_RETURN_CODE 77 TIMEOUT 300
  ENVIRONMENT "ASSAY_E2E=${CMAKE_BINARY_DIR};PYTHONDONTWRITEBYTECODE=1")
# A load of over a minute, as an energy needs one.
add_test(NAME e2e.efficiency COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/e2e/efficiency_test.py CONFIGURATIONS meters)
set_tests_properties(e2e.efficiency PROPERTIES LABELS meters SKIP_RETURN_CODE 77 TIMEOUT 300
  ENVIRONMENT "ASSAY_E2E=${CMAKE_BINARY_DIR};PYTHONDONTWRITEBYTECODE=1")
add_test(NAME e2e.failover COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/e2e/failover_test.py CONFIGURATIONS meters)
set_tests_properties(e2e.failover PROPERTIES LABELS meters SKIP_RETURN_CODE 77 TIMEOUT 300
  ENVIRONMENT "ASSAY_E2E=${CMAKE_BINARY_DIR};PYTHONDONTWRITEBYTECODE=1")
# The other end of the cable; skipped without snmpd.
add_test(NAME e2e.switches COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/e2e/switches_test.py CONFIGURATIONS meters)
set_tests_properties(e2e.switches PROPERTIES LABELS meters SKIP_RETURN_CODE 77 TIMEOUT 300
  ENVIRONMENT "ASSAY_E2E=${CMAKE_BINARY_DIR};PYTHONDONTWRITEBYTECODE=1")
# What changes settings, and whether they are put back; its zone of RAPL is made up.
add_test(NAME e2e.settings COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/e2e/settings_test.py)
set_tests_properties(e2e.settings PROPERTIES LABELS e2e TIMEOUT 300 ENVIRONMENT "ASSAY_E2E=${CMAKE_BINARY_DIR};PYTHONDONTWRITEBYTECODE=1")
