add_test(NAME e2e.dossier COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/e2e/dossier.sh $<TARGET_FILE:assay-report> $<TARGET_FILE:make_run>)
set_tests_properties(e2e.dossier PROPERTIES LABELS e2e)
# What can be done to a dossier, one row after the other: text cases of e2e/attacks, and what is code.
find_package(Python3 3.9 REQUIRED COMPONENTS Interpreter)
add_library(shift_clock MODULE e2e/shift_clock.cpp)
set(attack_areas tamper signer doctored key holder policy expected waiver proof joint)
foreach(area IN LISTS attack_areas)
  add_test(NAME e2e.attacks_${area} COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/e2e/attack_cases.py ${area})
endforeach()
foreach(area certificate joint_policy)
  add_test(NAME e2e.attacks_${area} COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/e2e/${area}_test.py)
endforeach()
add_test(NAME e2e.attack_cases COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/e2e/attack_cases_test.py)
list(TRANSFORM attack_areas PREPEND e2e.attacks_ OUTPUT_VARIABLE attack_tests)
set_tests_properties(${attack_tests} e2e.attacks_certificate e2e.attacks_joint_policy e2e.attack_cases PROPERTIES LABELS e2e TIMEOUT 900 ENVIRONMENT
  "ASSAY=$<TARGET_FILE:assay>;ASSAY_REPORT=$<TARGET_FILE:assay-report>;MAKE_RUN=$<TARGET_FILE:make_run>;SHIFT_CLOCK=$<TARGET_FILE:shift_clock>;PYTHONDONTWRITEBYTECODE=1")
add_test(NAME e2e.transcripts COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/e2e/transcript_test.py)
set_tests_properties(e2e.transcripts PROPERTIES LABELS e2e TIMEOUT 300 ENVIRONMENT
  "ASSAY=$<TARGET_FILE:assay>;MAKE_RUN=$<TARGET_FILE:make_run>;SHIFT_CLOCK=$<TARGET_FILE:shift_clock>;PYTHONDONTWRITEBYTECODE=1")
# Two runs side by side, runs in the formats of other programs, and on paper.
foreach(area compare exports printed requirements)
  add_test(NAME e2e.${area} COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/e2e/${area}_test.py)
  set_tests_properties(e2e.${area} PROPERTIES LABELS e2e TIMEOUT 900 ENVIRONMENT
    "ASSAY=$<TARGET_FILE:assay>;ASSAY_REPORT=$<TARGET_FILE:assay-report>;MAKE_RUN=$<TARGET_FILE:make_run>;PYTHONDONTWRITEBYTECODE=1")
endforeach()
