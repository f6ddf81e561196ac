add_test(NAME e2e.dossier COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/e2e/dossier.sh $<TARGET_FILE:assay-report> $<TARGET_FILE:make_run>)
set_tests_properties(e2e.dossier PROPERTIES LABELS e2e)
# What can be done to a dossier, one row of docs/ATTACKS.md after the other.
find_package(Python3 3.9 REQUIRED COMPONENTS Interpreter)
add_library(shift_clock MODULE e2e/shift_clock.cpp)
foreach(area tamper signer doctored expected key holder certificate policy waiver proof joint joint_policy)
  set(attempts e2e/${area}_test.py)
  if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/e2e/attacks/${area}.cases)
    set(attempts e2e/attack_cases.py ${area})
  endif()
  list(TRANSFORM attempts PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/ AT 0)
  add_test(NAME e2e.attacks_${area} COMMAND Python3::Interpreter ${attempts})
  set_tests_properties(e2e.attacks_${area} PROPERTIES LABELS e2e TIMEOUT 900 ENVIRONMENT
    "ASSAY=$<TARGET_FILE:assay>;ASSAY_REPORT=$<TARGET_FILE:assay-report>;MAKE_RUN=$<TARGET_FILE:make_run>;SHIFT_CLOCK=$<TARGET_FILE:shift_clock>;PYTHONDONTWRITEBYTECODE=1")
endforeach()
add_test(NAME e2e.transcripts COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/e2e/transcript_test.py)
set_tests_properties(e2e.transcripts PROPERTIES LABELS e2e TIMEOUT 300 ENVIRONMENT
  "ASSAY=$<TARGET_FILE:assay>;MAKE_RUN=$<TARGET_FILE:make_run>;SHIFT_CLOCK=$<TARGET_FILE:shift_clock>;PYTHONDONTWRITEBYTECODE=1")
