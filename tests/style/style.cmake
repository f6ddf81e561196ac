# What CONTRIBUTING says of style, as far as a program can see it: include arrows, sizes, layout.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
add_test(NAME style.arrows COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/style/arrows.py ${PROJECT_SOURCE_DIR})
add_test(NAME style.sizes COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/style/sizes.py ${PROJECT_SOURCE_DIR})
add_test(NAME style.prints COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/style/prints.py ${PROJECT_SOURCE_DIR})
add_test(NAME style.format COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/style/format.py ${PROJECT_SOURCE_DIR})
add_test(NAME style.python COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/style/python.py ${PROJECT_SOURCE_DIR})
set_tests_properties(style.arrows style.sizes style.prints style.format style.python PROPERTIES LABELS style)
