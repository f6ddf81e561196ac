# The documents against the build: they need every probe of it, so they use the build tree itself and no installation of fakes.
find_package(Python3 3.9 REQUIRED COMPONENTS Interpreter)
foreach(part Text ProbeTable Commands)
  string(TOLOWER ${part} name)
  add_test(NAME e2e.documents_${name} COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/e2e/documents_test.py ${part})
  set_tests_properties(e2e.documents_${name} PROPERTIES LABELS e2e TIMEOUT 300
    ENVIRONMENT "ASSAY_E2E=${CMAKE_BINARY_DIR};ASSAY_WITH_CUDA=${ASSAY_WITH_CUDA};ASSAY_WITH_VERBS=${ASSAY_VERBS};PYTHONDONTWRITEBYTECODE=1")
endforeach()
# Some fifty commands, 9 s of CPU time: on a machine that is starved by builds they took more than 300 s.
set_tests_properties(e2e.documents_commands PROPERTIES RESOURCE_LOCK meeting_ports TIMEOUT 900)
