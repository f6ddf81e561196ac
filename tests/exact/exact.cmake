# The arithmetic of verdicts and reports, built a second time for another processor, and what both builds must say alike.
file(GLOB_RECURSE arithmetic_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/probes/core/*.cpp ${CMAKE_SOURCE_DIR}/orchestrator/*.cpp
  ${CMAKE_SOURCE_DIR}/reports/*.cpp)
# By name, wherever the file lies: files in which numbers are computed.
set(computing portable_math statistics scale decision judge fleet_model plot curve axis captions level charts flag_register fleet_levels nights
  count_and_state)
list(JOIN computing "|" computing_pattern)
list(FILTER arithmetic_sources INCLUDE REGEX "/(${computing_pattern})\\.cpp$")
list(LENGTH arithmetic_sources found)
list(LENGTH computing wanted)
math(EXPR wanted "${wanted} + 1")  # there are two nights.cpp
if(NOT found EQUAL wanted)
  message(FATAL_ERROR "tests/exact: ${found} files with arithmetic where ${wanted} were known: ${arithmetic_sources}")
endif()

add_executable(exact_figures exact/figures.cpp)
target_link_libraries(exact_figures PRIVATE assay_dossier assay_rehearse)
special(cluster exact_figures)

set(exact_environment "ASSAY_E2E=${CMAKE_BINARY_DIR}/e2e;MAKE_RUN=$<TARGET_FILE:make_run>;FIGURES=$<TARGET_FILE:exact_figures>")
add_test(NAME exact.another_libm_gives_the_same_bytes COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/exact/same_bytes libm
  CONFIGURATIONS cluster)
set_tests_properties(exact.another_libm_gives_the_same_bytes PROPERTIES LABELS exact FIXTURES_REQUIRED special_cluster SKIP_RETURN_CODE 77 ENVIRONMENT "${exact_environment}")

if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
  # The objects come before the libraries, and the first definition of a function is used: a release compiles the files of a room
  # together, so a member of a library holds others beside the replaced ones. A char has no sign here, as on Arm.
  add_library(exact_other OBJECT ${arithmetic_sources})
  target_link_libraries(exact_other PRIVATE assay_dossier assay_nightly)
  target_compile_options(exact_other PRIVATE -march=x86-64-v3 -O3 -funsigned-char)
  add_executable(exact_figures_other exact/figures.cpp $<TARGET_OBJECTS:exact_other>)
  target_compile_options(exact_figures_other PRIVATE -march=x86-64-v3 -O3 -funsigned-char)
  target_link_libraries(exact_figures_other PRIVATE assay_dossier assay_nightly assay_rehearse)
  add_executable(exact_report_other $<TARGET_OBJECTS:assay-report> $<TARGET_OBJECTS:exact_other>)
  set_target_properties(exact_report_other PROPERTIES LINKER_LANGUAGE CXX)
  target_link_libraries(exact_report_other PRIVATE assay_joint assay_nightly assay_rehearse assay_dossier)
  add_test(NAME exact.another_build_gives_the_same_bytes
    COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/exact/same_bytes builds $<TARGET_FILE:exact_figures_other> $<TARGET_FILE:exact_report_other>
    CONFIGURATIONS cluster)
  set_tests_properties(exact.another_build_gives_the_same_bytes PROPERTIES LABELS exact FIXTURES_REQUIRED special_cluster SKIP_RETURN_CODE 77 ENVIRONMENT "${exact_environment}")
  special(cluster exact_other exact_figures_other exact_report_other)
  target_link_options(exact_figures_other PRIVATE -Wl,--allow-multiple-definition)
  target_link_options(exact_report_other PRIVATE -Wl,--allow-multiple-definition)
endif()
