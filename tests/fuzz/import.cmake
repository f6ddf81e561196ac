# Its seeds are the recorded outputs that the unit tests read.
add_executable(fuzz_import fuzz/import_fuzz.cpp)
target_link_libraries(fuzz_import PRIVATE assay_import fuzz_driver)
product_first(fuzz_import)
add_test(NAME fuzz.import COMMAND fuzz_import ${CMAKE_CURRENT_SOURCE_DIR}/golden/imports ${ASSAY_FUZZ_INPUTS})
set_tests_properties(fuzz.import PROPERTIES LABELS fuzz)
