# storage_protocols beside an object server that misbehaves; the probe signs, the server checks. Most ways to misbehave make readers wait for their whole time, so they
# are with the heavy tests of storage: -C storage -L storage.
find_package(Python3 3.9 REQUIRED COMPONENTS Interpreter)
set(protocols_environment "ASSAY_E2E=${CMAKE_BINARY_DIR};STORAGE_PROTOCOLS=$<TARGET_FILE:storage_protocols>;PYTHONDONTWRITEBYTECODE=1")
add_test(NAME e2e.protocols COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/e2e/protocols_test.py Signature Protocols)
set_tests_properties(e2e.protocols PROPERTIES LABELS e2e TIMEOUT 300 ENVIRONMENT "${protocols_environment}")
add_test(NAME e2e.protocols_lies COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/e2e/protocols_test.py Lies CONFIGURATIONS storage)
set_tests_properties(e2e.protocols_lies PROPERTIES LABELS "e2e;storage" TIMEOUT 300 ENVIRONMENT "${protocols_environment}")
