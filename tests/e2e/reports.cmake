add_test(NAME e2e.dossier COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/e2e/dossier.sh $<TARGET_FILE:assay-report> $<TARGET_FILE:make_run>)
set_tests_properties(e2e.dossier PROPERTIES LABELS e2e)
