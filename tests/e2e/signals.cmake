# An installation with the probes of early signs, whose drives are made up and whose ports are virtual.
set(signals_installation ${CMAKE_BINARY_DIR}/e2e_signals)
add_custom_command(OUTPUT ${signals_installation}/stamp
  COMMAND ${CMAKE_COMMAND} -E make_directory ${signals_installation}/bin ${signals_installation}/libexec/assay/probes
  COMMAND ${CMAKE_COMMAND} -E copy_if_different $<TARGET_FILE:assay> $<TARGET_FILE:assay-node> $<TARGET_FILE:assay-report>
    $<TARGET_FILE:assay-fleet> ${signals_installation}/bin
  COMMAND ${CMAKE_COMMAND} -E copy_if_different $<TARGET_FILE:fake_probe> $<TARGET_FILE:health_drive> $<TARGET_FILE:health_links>
    $<TARGET_FILE:tpm_quote>
    ${signals_installation}/libexec/assay/probes
  COMMAND ${CMAKE_COMMAND} -E touch ${signals_installation}/stamp
  DEPENDS assay assay-node assay-report assay-fleet fake_probe health_drive health_links tpm_quote)
add_custom_target(e2e_signals_installation ALL DEPENDS ${signals_installation}/stamp)

find_package(Python3 3.9 REQUIRED COMPONENTS Interpreter)
add_test(NAME e2e.signals COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/e2e/signals_test.py)
set_tests_properties(e2e.signals PROPERTIES LABELS e2e SKIP_RETURN_CODE 77 TIMEOUT 900
  ENVIRONMENT "ASSAY_E2E=${signals_installation};PYTHONDONTWRITEBYTECODE=1")

# Needs swtpm and tpm2-tools, and is a skip without them.
add_test(NAME e2e.tpm COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/e2e/tpm_test.py)
set_tests_properties(e2e.tpm PROPERTIES LABELS e2e SKIP_RETURN_CODE 77 TIMEOUT 900
  ENVIRONMENT "ASSAY_E2E=${signals_installation};PYTHONDONTWRITEBYTECODE=1")
