# An installation of its own, with fake_probe and fake_fabric as its only probes, and the tests that run it from the outside.
add_executable(fake_probe fakes/fake_probe.cpp)
target_link_libraries(fake_probe PRIVATE assay_core)
add_executable(fake_fabric fakes/fake_fabric.cpp)
target_link_libraries(fake_fabric PRIVATE assay_core)
set(installation ${CMAKE_BINARY_DIR}/e2e)
add_custom_command(OUTPUT ${installation}/stamp
  COMMAND ${CMAKE_COMMAND} -E make_directory ${installation}/bin ${installation}/libexec/assay/probes
  COMMAND ${CMAKE_COMMAND} -E copy_if_different $<TARGET_FILE:assay> $<TARGET_FILE:assay-node> $<TARGET_FILE:assay-report>
    $<TARGET_FILE:assay-fleet> ${installation}/bin
  COMMAND ${CMAKE_COMMAND} -E copy_if_different $<TARGET_FILE:fake_probe> $<TARGET_FILE:fake_fabric> ${installation}/libexec/assay/probes
  COMMAND ${CMAKE_COMMAND} -E copy_directory ${CMAKE_BINARY_DIR}/share/doc ${installation}/share/doc
  COMMAND ${CMAKE_COMMAND} -E touch ${installation}/stamp
  DEPENDS assay assay-node assay-report assay-fleet fake_probe fake_fabric)
add_custom_target(e2e_installation ALL DEPENDS ${installation}/stamp)

find_package(Python3 3.9 REQUIRED COMPONENTS Interpreter)
foreach(area accept board bundle doctor draw import launchers localise resume rise schedule space attempts simulate ssh_nodes survival)
  add_test(NAME e2e.${area} COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/e2e/${area}_test.py)
  set_tests_properties(e2e.${area} PROPERTIES LABELS e2e SKIP_RETURN_CODE 77 TIMEOUT 900  # a minute on a quiet machine
    ENVIRONMENT "ASSAY_E2E=${installation};PYTHONDONTWRITEBYTECODE=1")
endforeach()
