add_test(NAME e2e.readme COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/e2e/readme.sh $<TARGET_FILE:assay> ${CMAKE_SOURCE_DIR}/README.md ${ASSAY_WITH_CUDA})
set_tests_properties(e2e.readme PROPERTIES LABELS e2e)
