# Writes FILE, which CTest reads: a test for each suite of the GoogleTest program PROGRAM that FILTER lets through, named AREA.suite. All
# cases of a suite run in one process, which loads the program and makes what the cases share once; a failure shows every case.
# CMake runs this file after the program is linked; see unit_suites in unit/unit.cmake.
execute_process(COMMAND ${PROGRAM} --gtest_list_tests --gtest_filter=${FILTER} OUTPUT_VARIABLE listed COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "(^|\n)[^ \n]+\\." suites "${listed}")
set(names "")
foreach(suite IN LISTS suites)
  string(STRIP "${suite}" suite)
  string(REGEX REPLACE "^([^/]+/)?([^/]+)(/.*)?\\.$" "\\2" name "${suite}")  # several sets of values are one suite
  list(APPEND names ${name})
  list(APPEND cases_of_${name} "${suite}*")
endforeach()
list(REMOVE_DUPLICATES names)
if(NOT names)
  message(FATAL_ERROR "${PROGRAM} has no tests in ${FILTER}")
endif()
set(text "")
foreach(name IN LISTS names)
  list(JOIN cases_of_${name} ":" cases)
  string(APPEND text "add_test([=[${AREA}.${name}]=] [=[${PROGRAM}]=] [=[--gtest_filter=${cases}]=])\n"
    "set_tests_properties([=[${AREA}.${name}]=] PROPERTIES ${PROPERTIES})\n")
endforeach()
file(WRITE ${FILE} "${text}")
