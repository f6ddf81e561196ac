# What CONTRIBUTING says of style, as far as a program can see it: include arrows, sizes, layout.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
add_test(NAME style.arrows COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/style/arrows.py ${PROJECT_SOURCE_DIR})
add_test(NAME style.sizes COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/style/sizes.py ${PROJECT_SOURCE_DIR})
add_test(NAME style.prints COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/style/prints.py ${PROJECT_SOURCE_DIR})
add_test(NAME style.format COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/style/format.py ${PROJECT_SOURCE_DIR})
add_test(NAME style.prose COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/style/prose.py ${PROJECT_SOURCE_DIR})
# The same on a tree with four comparisons with prose: all must be found.
add_test(NAME style.prose_planted COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/style/prose.py
  ${CMAKE_CURRENT_SOURCE_DIR}/style/planted)
set_tests_properties(style.prose_planted PROPERTIES PASS_REGULAR_EXPRESSION "1 files, 4 places" LABELS style)
set_tests_properties(style.arrows style.sizes style.prints style.prose style.format PROPERTIES LABELS style)
