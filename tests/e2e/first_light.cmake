# The command for a machine with a GPU, over stub programs: it needs no GPU, and of this build only that its profiles are planned.
find_package(Python3 3.9 REQUIRED COMPONENTS Interpreter)
add_test(NAME e2e.first_light COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/e2e/first_light_test.py)
set_tests_properties(e2e.first_light PROPERTIES LABELS e2e TIMEOUT 900 ENVIRONMENT
  "PYTHONDONTWRITEBYTECODE=1;ASSAY=$<$<TARGET_EXISTS:cuda_gemm>:$<TARGET_FILE:assay>>")
add_test(NAME e2e.yardsticks COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/e2e/yardsticks_test.py)
set_tests_properties(e2e.yardsticks PROPERTIES LABELS e2e)
